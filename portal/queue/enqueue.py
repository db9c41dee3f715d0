"""Puts the jobs of a video into the queue, within the transaction that makes them necessary.

Which of the waiting ones is next is decided in `priority`.
"""

from datetime import datetime
from uuid import UUID

from portal.database.models import Video
from portal.database.pool import transaction_connection
from portal.queue.app import Queue, database_errors
from portal.queue.priority import completion_priority, encode_priority, look_priority
from portal.queue.rows import queued_at
from portal.telemetry.spans import current_trace_context

# Looks into files, and what needs no encoder. Nobody is refused only after another's film.
PREPARE_QUEUE = "prepare"
TRANSCODE_QUEUE = "transcode"
# Short jobs, which don't wait for the slots that transcoding takes. The name is stored.
SIDE_QUEUE = "chores"
QUEUES = (PREPARE_QUEUE, TRANSCODE_QUEUE, SIDE_QUEUE)
# Someone is looking on.
POSTER_PRIORITY = 10
# Addresses that were given out work until it is done.


async def defer_transcode(video: Video, queue: Queue, *, since: datetime | None = None) -> int:
    """Queue the job that looks into a video's file; returns the job's id.

    Its priority counts from `since`, or from the video's creation. It has a lock of its own, as has
    a quick storyboard: what it queues for other slots is taken at once, by the news of it, and not
    at the next poll after this one ended.
    """
    lock = f"look:{video.id}"
    priority = look_priority(video.size_bytes, since=since or video.created_at)
    return await _defer(
        "portal:transcode", PREPARE_QUEUE, video.id, queue, lock=lock, priority=priority
    )


async def defer_encode(video: Video, queue: Queue, *, expected_s: float) -> int:
    """Queue the job that makes a video playable by encoding for so long; returns the job's id.

    Its priority counts from when the look was asked for.
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


async def defer_removal(video_id: UUID, queue: Queue) -> int:
    """Queue the job that removes a deleted video's files; returns the job's id.

    Its lock lets it begin only once a pass that was under way has ended. A look, which may copy,
    and a quick storyboard end soon after their video is gone.
    """
    return await _defer("portal:remove", SIDE_QUEUE, video_id, queue)


async def defer_poster(video_id: UUID, number: int, queue: Queue) -> int:
    """Queue the job that cuts a poster; returns the job's id.

    It has a lock of its own: completing a long video's ladder takes hours, and does not mind.
    """
    lock, priority = f"poster:{video_id}", POSTER_PRIORITY
    return await _defer(
        "portal:poster", SIDE_QUEUE, video_id, queue, lock=lock, priority=priority, number=number
    )


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
