"""What is done with jobs besides running them: queued again, ended for a dead worker, cancelled."""

from procrastinate.jobs import Status

from portal.database.connection import server_time
from portal.database.pool import transaction_connection
from portal.queue.app import Queue, database_errors


async def queue_again(job_id: int, queue: Queue) -> None:
    """Queue a job again that a worker took or that failed."""
    await queue.job_manager.retry_job_by_id_async(job_id=job_id, retry_at=await server_time())


async def end_job(job_id: int, queue: Queue) -> None:
    """End a job whose worker will not; the lock it holds is free again."""
    await queue.job_manager.finish_job_by_id_async(
        job_id=job_id, status=Status.ABORTED, delete_job=False
    )


async def cancel_job(job_id: int, queue: Queue) -> None:
    """Cancel a job that waits, in the current transaction; one that runs is told to end."""
    with database_errors():
        await queue.job_manager.cancel_job_by_id_async(
            job_id, abort=True, connection=transaction_connection()
        )
