"""Puts the jobs of a video into the queue, within the transaction that makes them necessary.

And whose turn it is: the priorities of jobs.

What is soon done goes first, and nothing waits for ever: each video has a time by which it is due,
and the one due earliest goes next. That time is when the video began to wait plus an allowance.

Of files that wait for a look the allowance grows with the square root of their size, which is all
that is known of them:

    1 MB  1 hour      100 MB  10 hours      1 GB  1.3 days      100 GB  13 days

Of encodes it is so many times what the first pass is expected to take on the worker that looked:

    2 s  7 minutes      1 minute  3.3 hours      10 minutes  1.4 days      2 hours or more  14 days

So a hundred long videos sent at once do not hold up a short one that comes after them: they are
due long after it, and worked off before they are. A long one in turn is overtaken by short ones
only until it is due. A pass under way gives way to a first pass that is due before it
(`processing.encoding`); equal videos go first come, first served; a job that is released or tried
again keeps its place. Ladders are completed, in the order of their files' sizes, when no video
waits for its first pass; and when nothing waits, several workers share a pass.
"""

from datetime import UTC, datetime
from math import sqrt
from uuid import UUID

from procrastinate import PsycopgConnector
from procrastinate.jobs import Status

from portal.database.connection import server_time
from portal.database.models import Video
from portal.database.pool import transaction_connection
from portal.queue.app import Queue, database_errors, queue_app
from portal.queue.rows import emptiest_lane, queued_at, wake_waiting_job
from portal.telemetry.tracing import current_trace_context

MB = 1_000_000
ALLOWANCE_S = 3600
ALLOWANCE_PER_ENCODE_S = 200
MAX_ALLOWANCE_S = 14 * 24 * 3600
# The queue's priorities are 32 bits wide; seconds since then are enough until 2050.
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
COMPLETION_OFFSET = 1_000_000_000
# Behind all others; the queue's are 32 bits wide.
SHARE_PRIORITY = -2_000_000_000
# Looks into files, and what needs no encoder. Nobody is refused only after another's film.
PREPARE_QUEUE = "prepare"
TRANSCODE_QUEUE = "transcode"
# Short jobs, which don't wait for the slots that transcoding takes. The name is stored.
SIDE_QUEUE = "chores"
WEBHOOK_QUEUE = "webhooks"
# Enqueuing uses the connection of the current transaction, so this app needs no address.
DELIVERIES = queue_app(PsycopgConnector())
# They wait for other servers.
IMPORT_QUEUE = "imports"
# Of workers that have a model; they stand still while there are passes to make.
SPEECH_QUEUE = "speech"
QUEUES = (
    PREPARE_QUEUE,
    TRANSCODE_QUEUE,
    SIDE_QUEUE,
    WEBHOOK_QUEUE,
    IMPORT_QUEUE,
    SPEECH_QUEUE,
)
# An import is due this long after it was asked for, for each unfinished import of its owner.
ALLOWANCE_PER_IMPORT_S = 3600
# Slow imports go behind all others.
SLOW_IMPORT_OFFSET = 1_000_000_000
# Someone is looking on.
POSTER_PRIORITY = 10


def look_priority(size_bytes: int, *, since: datetime) -> int:
    """The priority of looking into a file that waits since then; the highest goes first."""
    return _priority(since, ALLOWANCE_S * sqrt(size_bytes / MB))


def encode_priority(expected_s: float, *, since: datetime) -> int:
    """The priority of a first pass that encodes, and is expected to take so long."""
    return _priority(since, min(MAX_ALLOWANCE_S, ALLOWANCE_PER_ENCODE_S * expected_s))


def completion_priority(size_bytes: int, *, since: datetime) -> int:
    """The priority of completing a ladder: after every first pass."""
    return look_priority(size_bytes, since=since) - COMPLETION_OFFSET


def slow_import_priority(priority: int) -> int:
    """Return the priority of an import that was slow, behind all others; unchanged if it is."""
    return priority if priority < -SLOW_IMPORT_OFFSET else priority - SLOW_IMPORT_OFFSET


def _priority(since: datetime, allowance_s: float) -> int:
    return -round((since - EPOCH).total_seconds() + allowance_s)


async def defer_transcode(video: Video, queue: Queue, *, since: datetime | None = None) -> int:
    """Queue the job that looks into a video's file; returns the job's id.

    Its priority counts from `since`, or from the video's creation. Its lock is not the video's, nor
    is that of a quick storyboard: so a worker takes what they queue as soon as it is notified, and
    not at a poll after they ended.
    """
    lock = f"look:{video.id}"
    priority = look_priority(video.size_bytes, since=since or video.created_at)
    return await _defer(
        "portal:transcode", PREPARE_QUEUE, video.id, queue, lock=lock, priority=priority
    )


async def defer_encode(video: Video, queue: Queue, *, expected_s: float) -> int:
    """Queue the job that makes a video playable by encoding; returns the job's id.

    It is expected to take `expected_s`. Its priority counts from when the look was asked for.
    """
    since = await queued_at(video.transcode_job_id) or video.created_at
    priority = encode_priority(expected_s, since=since)
    return await _defer("portal:encode", TRANSCODE_QUEUE, video.id, queue, priority=priority)


async def defer_completion(video: Video, queue: Queue, *, is_quick: bool = False) -> int:
    """Queue the job that completes a ready video; returns the job's id.

    What comes next of it is quick, or waits for an encoder's turn.
    """
    priority = completion_priority(video.size_bytes, since=video.created_at)
    queue_name, lock = (PREPARE_QUEUE, f"quick:{video.id}") if is_quick else (TRANSCODE_QUEUE, "")
    return await _defer(
        "portal:complete", queue_name, video.id, queue, lock=lock, priority=priority
    )


async def defer_share(video: Video, run_id: int, queue: Queue) -> int:
    """Queue the job that makes a run of another worker's pass; returns the job's id.

    Everything else goes before it.
    """
    lock = f"run:{run_id}"
    return await _defer(
        "portal:share",
        TRANSCODE_QUEUE,
        video.id,
        queue,
        lock=lock,
        priority=SHARE_PRIORITY,
        run_id=run_id,
    )


async def defer_removal(video_id: UUID, queue: Queue) -> int:
    """Queue the job that removes a deleted video's files; returns the job's id.

    Its lock lets it begin only once a pass that was under way has ended. A look, which may copy,
    and a quick storyboard end soon after their video is gone.
    """
    return await _defer("portal:remove", SIDE_QUEUE, video_id, queue)


async def defer_poster(video_id: UUID, number: int, queue: Queue) -> int:
    """Queue the job that cuts a poster; returns the job's id.

    Its lock is not the video's: completing a long ladder takes hours, and a poster can't wait.
    """
    lock, priority = f"poster:{video_id}", POSTER_PRIORITY
    return await _defer(
        "portal:poster", SIDE_QUEUE, video_id, queue, lock=lock, priority=priority, number=number
    )


async def defer_captions(video_id: UUID, queue: Queue) -> int:
    """Queue the job that stores a video's captions; returns the job's id."""
    lock = f"captions:{video_id}"
    return await _defer(
        "portal:captions", SIDE_QUEUE, video_id, queue, lock=lock, priority=POSTER_PRIORITY
    )


async def defer_transcription(video_id: UUID, queue: Queue) -> int:
    """Queue the job that writes down what is said in a video; returns the job's id."""
    lock = f"speech:{video_id}"
    return await _defer("portal:transcribe", SPEECH_QUEUE, video_id, queue, lock=lock)


async def defer_import(import_id: UUID, owner_id: UUID | None, queue: Queue) -> int:
    """Queue the job that fetches a file; returns the job's id.

    An account's imports wait in four lanes, and so take four slots at most. Each is due later for
    every unfinished one of its account: many don't delay another account's first.
    """
    lock, unfinished = await emptiest_lane(f"import:{owner_id}:")
    allowance_s = min(MAX_ALLOWANCE_S, ALLOWANCE_PER_IMPORT_S * unfinished)
    job = queue.configure_task(
        "portal:import",
        queue=IMPORT_QUEUE,
        lock=lock,
        priority=_priority(await server_time(), allowance_s),
        connection=transaction_connection(),
    )
    with database_errors():
        return await job.defer_async(import_id=str(import_id), cause=current_trace_context())


async def defer_delivery(webhook_id: UUID, lane: int, *, at: datetime | None = None) -> None:
    """Queue the job that sends what is due in a lane of a webhook, at this time or at once.

    Jobs of one lane share a lock, so that a slow receiver occupies at most four workers. A job that
    waits to start sends a new delivery too, so no other is queued then: it can't start before the
    current transaction ends. Two transactions that queue the first job of a lane queue one each.

    A job that is scheduled for later would hold up jobs with the same lock, unless they have a
    higher priority. Priorities therefore descend with the time.
    """
    lock = f"webhook:{webhook_id}:{lane}"
    if at is None and await wake_waiting_job(lock):
        return
    job = DELIVERIES.configure_task(
        "portal:send_webhook",
        queue=WEBHOOK_QUEUE,
        lock=lock,
        priority=_priority(at, 0) if at else 0,
        schedule_at=at,
        connection=transaction_connection(),
    )
    with database_errors():
        await job.defer_async(webhook_id=str(webhook_id), lane=lane)


async def _defer(
    task: str,
    queue_name: str,
    video_id: UUID,
    queue: Queue,
    *,
    priority: int = 0,
    lock: str = "",
    **arguments: int,
) -> int:
    """Of the jobs with the same lock, else of those of the same video, one runs at a time."""
    job = queue.configure_task(
        task,
        queue=queue_name,
        lock=lock or f"video:{video_id}",
        priority=priority,
        connection=transaction_connection(),
    )
    with database_errors():
        cause = current_trace_context()
        return await job.defer_async(video_id=str(video_id), **arguments, cause=cause)


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
