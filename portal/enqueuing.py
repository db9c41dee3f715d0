"""Puts the jobs of a video into the queue, within the transaction that makes them necessary."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from portal.database import transaction
from portal.models import Video, VideoStatus

if TYPE_CHECKING:
    from procrastinate import App as Queue
    from psycopg import AsyncConnection

TRANSCODE_TASK = "portal:transcode"
COMPLETE_TASK = "portal:complete"
TRANSCODE_QUEUE = "transcode"
# Every waiting video is made playable before any ladder is completed.
COMPLETE_PRIORITY = -10


async def defer_transcode(video_id: UUID, queue: Queue, connection: AsyncConnection[Any]) -> int:
    """Queue the job that makes a video playable; returns the job's id."""
    task = queue.configure_task(
        TRANSCODE_TASK, queue=TRANSCODE_QUEUE, lock=_lock(video_id), connection=connection
    )
    return await task.defer_async(video_id=str(video_id))


async def defer_completion(video_id: UUID, queue: Queue, connection: AsyncConnection[Any]) -> int:
    """Queue the job that completes a ready video's ladder; returns the job's id."""
    task = queue.configure_task(
        COMPLETE_TASK,
        queue=TRANSCODE_QUEUE,
        lock=_lock(video_id),
        priority=COMPLETE_PRIORITY,
        connection=connection,
    )
    return await task.defer_async(video_id=str(video_id))


async def replace_job(video_id: UUID, former_job_id: int, *, queue: Queue) -> None:
    """Give a video whose job was lost a new one, unless someone else did so meanwhile."""
    async with transaction() as connection:
        video = await Video.filter(id=video_id).select_for_update().get_or_none()
        if video is None:
            return
        if video.status is VideoStatus.PROCESSING and video.transcode_job_id == former_job_id:
            video.transcode_job_id = await defer_transcode(video_id, queue, connection)
            video.updated_at = datetime.now(UTC)
            await video.save(update_fields=["transcode_job_id", "updated_at"])
        elif video.status is VideoStatus.READY and video.complete_job_id == former_job_id:
            video.complete_job_id = await defer_completion(video_id, queue, connection)
            await video.save(update_fields=["complete_job_id"])


def _lock(video_id: UUID) -> str:
    """The queue runs one job of a video at a time."""
    return f"video:{video_id}"
