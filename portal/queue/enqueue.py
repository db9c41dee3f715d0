"""Enqueuing of jobs within the transaction that makes them necessary, and their priorities.

Short work goes first, and no video waits for ever: each video has a due time, and the one due
earliest goes next. The due time is when the video began to wait plus an allowance.

For files that wait to be probed the allowance grows with the square root of the file's size, since
nothing else is known of them yet:

    1 MB  1 hour      100 MB  10 hours      1 GB  1.3 days      100 GB  13 days

For encodes it is a multiple of the expected time of the first pass on the worker that probed:

    2 s  7 minutes      1 minute  3.3 hours      10 minutes  1.4 days      2 hours or more  14 days

So a hundred long videos sent at once don't hold up a short one that arrives after them, and short
videos overtake a long one only until it is due. A running pass gives way to a first pass that is
due before it (`processing.encoding`). Equal videos go first come, first served; a released or
repeated job keeps its place. Ladders are completed, in the order of their files' sizes, when no
video waits for its first pass. When no job waits, several workers share a pass.

No requester delays the others by more than a few jobs. After some in a short time, of any kind and
whether or not they still wait, further ones are due later than almost everything that others
request meanwhile (`MANY_JOBS`). Among these further ones the same order holds.
"""

from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from math import sqrt
from uuid import UUID

from portal.database.connection import server_time
from portal.database.models import Version
from portal.database.pool import transaction_connection
from portal.queue.app import IN_TRANSACTION, database_errors
from portal.queue.rows import (
    count_request,
    emptiest_import_lane,
    priority_of,
    wake_waiting_job,
)
from portal.telemetry.tracing import current_trace_context

MB = 1_000_000
ALLOWANCE_S = 3600
ALLOWANCE_PER_ENCODE_S = 200
MAX_ALLOWANCE_S = 14 * 24 * 3600
# Start of the seconds that priorities count. Priorities have 32 bits, which last until 2050.
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
COMPLETION_OFFSET = 1_000_000_000
# Priority behind all other jobs, within 32 bits.
SHARE_PRIORITY = -2_000_000_000
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
# Queue of workers that have a speech model. Its jobs pause while passes wait.
SPEECH_QUEUE = "speech"
QUEUES = (
    PREPARE_QUEUE,
    TRANSCODE_QUEUE,
    SIDE_QUEUE,
    WEBHOOK_QUEUE,
    IMPORT_QUEUE,
    DOWNLOAD_QUEUE,
    SPEECH_QUEUE,
)
# Offset that puts slow imports behind all others.
SLOW_IMPORT_OFFSET = 1_000_000_000
# Numbers of recent jobs of a requester after each of which further ones are due `MAX_ALLOWANCE_S`
# later. With more numbers, more long videos of a requester would go before a short one.
MANY_JOBS = (3, 10)
# Account whose request queues the jobs of the current task, or address if there is no account.
# Empty for the portal's own work.
REQUESTER: ContextVar[str] = ContextVar("requester", default="")


def look_priority(size_bytes: int, *, since: datetime) -> int:
    """Return the priority of probing a file that waits since then. The highest goes first."""
    return _due_priority(since, _look_allowance_s(size_bytes))


def encode_priority(expected_s: float, *, since: datetime) -> int:
    """Return the priority of a first pass that encodes for the expected time."""
    return _due_priority(since, min(MAX_ALLOWANCE_S, ALLOWANCE_PER_ENCODE_S * expected_s))


def completion_priority(size_bytes: int, *, since: datetime) -> int:
    """Return the priority of completing a ladder, which is below that of every first pass."""
    return look_priority(size_bytes, since=since) - COMPLETION_OFFSET


def slow_import_priority(priority: int) -> int:
    """Return the priority of an import after it proved slow, behind those that did not."""
    return priority if priority < -SLOW_IMPORT_OFFSET else priority - SLOW_IMPORT_OFFSET


def _look_allowance_s(size_bytes: int) -> float:
    return ALLOWANCE_S * sqrt(size_bytes / MB)


def _due_priority(since: datetime, allowance_s: float) -> int:
    return -round((since - EPOCH).total_seconds() + allowance_s)


def _looked_at_bytes(version: Version) -> int:
    """Return the size of the film that the first job of a version reads or copies; 0 for a cut."""
    # A cut of a large file is as short as one of a small file, but a new video copies the film.
    is_cut = version.base_id is not None and version.id != version.video_id
    return 0 if is_cut else version.size_bytes


async def _due_since(version: Version) -> datetime:
    """Return the time from which the due time of a version's probe was counted.

    This is the time of the request. It is days later if the requester had many recent jobs.
    """
    priority = await priority_of(version.transcode_job_id)
    if priority is None:
        return version.created_at
    since_s = -priority - _look_allowance_s(_looked_at_bytes(version))
    return EPOCH + timedelta(seconds=since_s)


async def defer_transcode(version: Version, *, since: datetime | None = None) -> int:
    """Enqueue the job that probes a version's file, and return the job's id.

    Its priority counts from `since`, by default from the version's creation. It has its own lock:
    otherwise a worker would find the job that it enqueues only at a poll after it ended.
    """
    return await _defer(
        "portal:transcode",
        PREPARE_QUEUE,
        lock=f"look:{version.id}",
        priority=look_priority(_looked_at_bytes(version), since=since or version.created_at),
        version_id=str(version.id),
    )


async def defer_encode(version: Version, *, expected_s: float) -> int:
    """Enqueue the job that makes a version playable by encoding, and return the job's id.

    The encode is expected to take `expected_s`. Its priority counts from the same time as that of
    the probe.
    """
    since = await _due_since(version)
    return await _defer(
        "portal:encode",
        TRANSCODE_QUEUE,
        lock=f"video:{version.id}",
        priority=encode_priority(expected_s, since=since),
        version_id=str(version.id),
    )


async def defer_completion(version: Version) -> int:
    """Enqueue the job that completes a ready version's ladder, and return the job's id."""
    return await _defer(
        "portal:complete",
        TRANSCODE_QUEUE,
        lock=f"video:{version.id}",
        priority=completion_priority(version.size_bytes, since=await _due_since(version)),
        version_id=str(version.id),
    )


async def defer_share(version_id: UUID) -> int:
    """Enqueue the job that makes parts of another worker's pass, behind all other jobs."""
    return await _defer(
        "portal:share",
        TRANSCODE_QUEUE,
        lock=None,
        priority=SHARE_PRIORITY,
        version_id=str(version_id),
    )


async def defer_removal(video_id: UUID) -> int:
    """Enqueue the job that removes a deleted video's files, and return the job's id.

    Its lock makes it wait for a running pass. A probe, which may copy, and a storyboard end soon
    after their video is gone.
    """
    return await _defer(
        "portal:remove",
        SIDE_QUEUE,
        lock=f"video:{video_id}",
        priority=_due_priority(await server_time(), ALLOWANCE_S),
        video_id=str(video_id),
    )


async def defer_poster(video_id: UUID, number: int) -> int:
    """Enqueue the job that cuts a poster, and return the job's id.

    It has its own lock, since completing a long ladder takes hours.
    """
    return await _defer(
        "portal:poster",
        SIDE_QUEUE,
        lock=f"poster:{video_id}",
        video_id=str(video_id),
        number=number,
    )


async def defer_storyboard(version_id: UUID) -> int:
    """Enqueue the job that makes a ready version's storyboard, and return the job's id."""
    return await _defer(
        "portal:storyboard",
        SIDE_QUEUE,
        lock=f"storyboard:{version_id}",
        priority=_due_priority(await server_time(), ALLOWANCE_S),
        version_id=str(version_id),
    )


async def defer_captions(video_id: UUID) -> int:
    """Enqueue the job that stores a video's captions, and return the job's id."""
    return await _defer(
        "portal:captions",
        SIDE_QUEUE,
        lock=f"captions:{video_id}",
        video_id=str(video_id),
    )


async def defer_download(video_id: UUID, number: int) -> int:
    """Enqueue the job that makes the download with the id `number`, and return the job's id."""
    return await _defer(
        "portal:download",
        DOWNLOAD_QUEUE,
        lock=f"download:{number}",
        video_id=str(video_id),
        number=number,
    )


async def defer_transcription(video_id: UUID) -> int:
    """Enqueue the job that transcribes a video's speech, and return the job's id."""
    return await _defer(
        "portal:transcribe",
        SPEECH_QUEUE,
        lock=f"speech:{video_id}",
        video_id=str(video_id),
    )


async def defer_import(import_id: UUID, owner_id: UUID | None) -> int:
    """Enqueue the job that fetches a file, and return the job's id.

    The locks of four lanes limit an account to four slots.
    """
    return await _defer(
        "portal:import",
        IMPORT_QUEUE,
        lock=await emptiest_import_lane(f"import:{owner_id or REQUESTER.get()}:"),
        import_id=str(import_id),
    )


async def defer_delivery(webhook_id: UUID, lane: int, *, at: datetime | None = None) -> None:
    """Enqueue the job that sends due deliveries in a lane of a webhook, at this time or at once.

    Jobs of one lane share a lock, so that a slow receiver occupies at most four workers. A job that
    waits to start sends a new delivery too, so no other is enqueued then: it can't start before the
    current transaction ends. Two concurrent transactions may each enqueue a first job of a lane.

    A job that is scheduled for later would hold up jobs with the same lock, unless they have a
    higher priority. Priorities therefore descend with the time.
    """
    lock = f"webhook:{webhook_id}:{lane}"
    if at is None and await wake_waiting_job(lock):
        return
    job = IN_TRANSACTION.configure_task(
        "portal:send_webhook",
        queue=WEBHOOK_QUEUE,
        lock=lock,
        priority=_due_priority(at, 0) if at else 0,
        schedule_at=at,
        connection=transaction_connection(),
    )
    with database_errors():
        await job.defer_async(webhook_id=str(webhook_id), lane=lane)


async def _defer(
    task: str,
    queue_name: str,
    *,
    lock: str | None,
    priority: int | None = None,
    **arguments: str | int,
) -> int:
    """Enqueue a job in the current transaction. Jobs with the same lock run one at a time.

    Without a priority it is due now. The job counts for its requester, and has a lower priority
    after many recent ones.
    """
    if priority is None:
        priority = _due_priority(await server_time(), 0)
    requester = REQUESTER.get()
    if requester:
        recent = await count_request(requester)
        priority -= MAX_ALLOWANCE_S * sum(recent >= many for many in MANY_JOBS)
    job = IN_TRANSACTION.configure_task(
        task,
        queue=queue_name,
        lock=lock,
        priority=priority,
        connection=transaction_connection(),
    )
    with database_errors():
        return await job.defer_async(**arguments, cause=current_trace_context())


async def cancel_job(job_id: int) -> None:
    """Cancel a waiting job in the current transaction, or ask a running job to end."""
    with database_errors():
        await IN_TRANSACTION.job_manager.cancel_job_by_id_async(
            job_id, abort=True, connection=transaction_connection()
        )
