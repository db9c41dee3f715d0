"""Puts the jobs of a video into the queue, within the transaction that makes them necessary.

Which of the waiting ones is next is decided in `priority`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from portal.database.connection import transaction
from portal.database.models import Video, VideoStatus
from portal.database.rows import lock_video
from portal.queue.app import Queue, database_errors
from portal.queue.priority import completion_priority, first_pass_priority
from portal.telemetry.trace_context import current_trace_context

TRANSCODE_TASK = "portal:transcode"
COMPLETE_TASK = "portal:complete"
REMOVE_TASK = "portal:remove"
POSTER_TASK = "portal:poster"
JANITOR_TASK = "portal:janitor"
TRANSCODE_QUEUE = "transcode"
# Short jobs, which don't wait for the slots that transcoding takes. The name is stored.
SIDE_QUEUE = "chores"
# Someone is looking on.
POSTER_PRIORITY = 10


class Job(NamedTuple):
    """A job to queue. Of those with the same lock one runs at a time."""

    task: str
    queue: str
    lock: str
    priority: int = 0


async def defer_transcode(
    video_id: UUID,
    queue: Queue,
    connection: AsyncConnection[Any],
    *,
    size_bytes: int,
    since: datetime,
) -> int:
    """Queue the job that makes a video playable, which waits since then; returns the job's id."""
    priority = first_pass_priority(size_bytes, since=since)
    lock = video_lock(video_id)
    job = Job(TRANSCODE_TASK, TRANSCODE_QUEUE, lock, priority)
    return await _defer(job, queue, connection, video_id=str(video_id))


async def defer_completion(video: Video, queue: Queue, connection: AsyncConnection[Any]) -> int:
    """Queue the job that completes a ready video's ladder; returns the job's id."""
    priority = completion_priority(video.size_bytes, since=video.created_at)
    job = Job(COMPLETE_TASK, TRANSCODE_QUEUE, video_lock(video.id), priority)
    return await _defer(job, queue, connection, video_id=str(video.id))


async def defer_removal(video_id: UUID, queue: Queue, connection: AsyncConnection[Any]) -> int:
    """Queue the job that removes a deleted video's files; returns the job's id.

    Its lock lets it begin only once a transcode that was under way has ended.
    """
    job = Job(REMOVE_TASK, SIDE_QUEUE, video_lock(video_id))
    return await _defer(job, queue, connection, video_id=str(video_id))


async def defer_poster(
    video_id: UUID, number: int, queue: Queue, connection: AsyncConnection[Any]
) -> int:
    """Queue the job that cuts a poster; returns the job's id.

    It has a lock of its own: completing a long video's ladder takes hours, and does not mind.
    """
    job = Job(POSTER_TASK, SIDE_QUEUE, f"poster:{video_id}", POSTER_PRIORITY)
    return await _defer(job, queue, connection, video_id=str(video_id), number=number)


async def replace_job(video_id: UUID, former_job_id: int, *, queue: Queue) -> None:
    """Give a video whose job was lost a new one, unless someone else did so meanwhile."""
    async with transaction() as connection:
        video = await lock_video(video_id)
        if video is None:
            return
        if video.status is VideoStatus.PROCESSING and video.transcode_job_id == former_job_id:
            video.transcode_job_id = await defer_transcode(
                video_id,
                queue,
                connection,
                size_bytes=video.size_bytes,
                since=video.created_at,
            )
            video.updated_at = datetime.now(UTC)
            await video.save(update_fields=["transcode_job_id", "updated_at"])
        elif video.status is VideoStatus.READY and video.complete_job_id == former_job_id:
            video.complete_job_id = await defer_completion(video, queue, connection)
            await video.save(update_fields=["complete_job_id"])


def video_lock(video_id: UUID) -> str:
    """The queue runs one job of a video at a time."""
    return f"video:{video_id}"


async def _defer(
    job: Job, queue: Queue, connection: AsyncConnection[Any], **arguments: str | int
) -> int:
    task = queue.configure_task(
        job.task, queue=job.queue, lock=job.lock, priority=job.priority, connection=connection
    )
    with database_errors():
        return await task.defer_async(**arguments, cause=current_trace_context())
