"""Deleting a video: its record at once, its files by a job (see `processing.removal`).

A file that arrives long after, by an upload address that was still valid, is left to the janitor:
the row of `Tombstone` has it list storage once more when no address can be valid.
"""

import logging
from uuid import UUID

from portal.accounts.audit import AuditAction, note
from portal.database.connection import server_time, transaction
from portal.database.deletion_models import Tombstone
from portal.database.models import Attempt, PosterRequest, Upload, Video
from portal.database.move_models import Move
from portal.database.rows import lock_video
from portal.database.states import PosterState
from portal.errors import VideoNotFound
from portal.processing.removal import promise_removal
from portal.queue.app import Queue
from portal.queue.jobs import cancel_job

logger = logging.getLogger(__name__)


async def delete_video(video_id: UUID, *, queue: Queue) -> None:
    """Delete a video's record, and have its files removed; both or neither.

    Raises `VideoNotFound` when there is no such video, or someone else has just deleted it.
    """
    async with transaction():
        video = await lock_video(video_id)
        if video is None:
            raise VideoNotFound
        is_written = await _stop_work(video, queue)
        await promise_removal(video_id, video.storage_key, queue, is_written=is_written)
        # Attempts, renditions and a poster asked for go with it.
        await video.delete()
        await Upload.filter(key=video.storage_key).delete()
        await Tombstone.create(
            video_id=video_id,
            storage_key=video.storage_key,
            owner_id=video.owner_id,
            published_at=video.created_at,
            deleted_at=await server_time(),
        )
        # Nothing else tells from now on which one it was.
        await note(AuditAction.VIDEO_DELETED, video_id, detail={"title": video.title})
    logger.info("Video deleted", extra={"action": "delete", "video_id": str(video_id)})


async def was_deleted(video_id: UUID) -> bool:
    """Whether there was a video with this id, for as long as that is remembered."""
    return await Tombstone.exists(video_id=video_id)


async def _stop_work(video: Video, queue: Queue) -> bool:
    """Cancel a video's jobs; whether someone may be writing files of it at this moment."""
    poster = await PosterRequest.get_or_none(video_id=video.id)
    move = await Move.get_or_none(video_id=video.id)
    own = {video.transcode_job_id, video.encode_job_id, video.complete_job_id}
    for job_id in {*own, poster and poster.job_id, move and move.job_id}:
        if job_id is not None:
            await cancel_job(job_id, queue)
    is_cut = poster is not None and poster.state is PosterState.WORKING
    return (
        is_cut or move is not None or await Attempt.filter(video_id=video.id, outcome=None).exists()
    )
