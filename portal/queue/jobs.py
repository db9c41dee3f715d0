"""Kinds of background jobs: how each is enqueued, how long it may take, and what requires it.

A job is enqueued in the transaction that makes it necessary, and the row that requires it has its
id. What a worker does for it is named in the tuple of tasks of its package, so that modules below
the work can enqueue it.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from portal.database.connection import server_time
from portal.database.pool import transaction_connection
from portal.queue.app import IN_TRANSACTION, database_errors
from portal.queue.priorities import MAX_ALLOWANCE_S, due_priority
from portal.queue.rows import count_request
from portal.telemetry.tracing import current_trace_context

# Queue of probes and of passes without an encoder, so that a file is refused without waiting for
# other videos' encodes.
PREPARE_QUEUE = "prepare"
TRANSCODE_QUEUE = "transcode"
# Queue of short jobs, apart from the slots of transcoding. The name is stored.
SIDE_QUEUE = "chores"
WEBHOOK_QUEUE = "webhooks"
# Queue of jobs that wait for other servers.
IMPORT_QUEUE = "imports"
# Queue of joined files, which may take as long as copying a whole video.
DOWNLOAD_QUEUE = "downloads"
# Queue of the work of each minute, which must not wait for other jobs.
MINUTE_QUEUE = "minutes"
# Queue of workers that have a speech model. Its jobs pause while passes wait.
SPEECH_QUEUE = "speech"
QUEUES = (
    PREPARE_QUEUE,
    TRANSCODE_QUEUE,
    SIDE_QUEUE,
    WEBHOOK_QUEUE,
    IMPORT_QUEUE,
    DOWNLOAD_QUEUE,
    MINUTE_QUEUE,
    SPEECH_QUEUE,
)
# Numbers of recent jobs of a requester after each of which further ones are due `MAX_ALLOWANCE_S`
# later. With more numbers, more long videos of a requester would go before a short one.
MANY_JOBS = (3, 10)
# Account whose request queues the jobs of the current task, or address if there is no account.
# Empty for the portal's own work.
REQUESTER: ContextVar[str] = ContextVar("requester", default="")


class RunAgain(Exception):
    """A job has to run again, which counts as no failure."""

    # Pause before it, in seconds.
    pause_s: float = 0.0

    def next_priority(self, priority: int) -> int | None:
        """Return the priority of the next run, from that of this one; None keeps it.

        Jobs with a higher one go first. Subclasses override this.
        """
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Required:
    """Rows of `table` that must have a job of the kind while the SQL `condition` holds for them.

    The column `job_id` has the id of a row's job. `arguments` maps the job's arguments to the
    columns with their values, which together identify the row. A job that has vanished from the
    queue is replaced: `replace` is awaited with the arguments and the id of that job, or, without
    it, a new job is enqueued and its id written into the row.
    """

    table: str
    condition: str
    arguments: Mapping[str, str]
    job_id: str = "job_id"
    replace: Callable[[Mapping[str, Any], int | None], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """A kind of background job: how jobs are enqueued, how long they may take, how they return.

    Each job in `queue` is stored with the `name`. `lock` is a format string for the arguments; jobs
    with the same result run one at a time, those with an empty one at any time. Jobs go in the
    order in which they are due, which is `allowance_s` after they were enqueued. A run should take
    at most `longest_s`. Twice that time after it began, another run begins, unless the SQL
    condition `is_under_way` holds for the job's row, whose alias is `job`. At most `max_tries` runs
    may end by an error, or with the process of their worker.
    """

    name: str
    queue: str
    lock: str = ""
    allowance_s: float = 0.0
    longest_s: float = 60.0
    is_under_way: str = "false"
    max_tries: int = 3
    required: Required | None = None

    @property
    def task_name(self) -> str:
        """Return the name of the worker's task."""
        return f"portal:{self.name}"

    async def enqueue(
        self, *, priority: int | None = None, lock: str | None = None, **arguments: UUID | str | int
    ) -> int:
        """Enqueue a job in the current transaction, and return its id.

        The job counts for its requester, and has a lower priority after many recent ones.
        """
        if priority is None:
            priority = due_priority(await server_time(), self.allowance_s)
        requester = REQUESTER.get()
        if requester:
            recent = await count_request(requester)
            priority -= MAX_ALLOWANCE_S * sum(recent >= many for many in MANY_JOBS)
        values = {**arguments, "cause": current_trace_context()}
        return await self.insert(priority, values, lock=lock)

    async def insert(
        self,
        priority: int,
        arguments: Mapping[str, Any],
        *,
        lock: str | None = None,
        at: datetime | None = None,
    ) -> int:
        """Insert a job for this time, or for now, in the current transaction, and return its id."""
        job = IN_TRANSACTION.configure_task(
            self.task_name,
            queue=self.queue,
            lock=lock or self.lock.format(**arguments) or None,
            priority=priority,
            schedule_at=at,
            connection=transaction_connection(),
        )
        values = {name: _plain(value) for name, value in arguments.items()}
        with database_errors():
            return await job.defer_async(**values)


def _plain(value: Any) -> Any:
    """Return an argument as JSON can have it."""
    return str(value) if isinstance(value, UUID) else value


async def cancel_job(job_id: int) -> None:
    """Cancel a waiting job in the current transaction, or ask a running job to end."""
    with database_errors():
        await IN_TRANSACTION.job_manager.cancel_job_by_id_async(
            job_id, abort=True, connection=transaction_connection()
        )
