"""Finds work that a dead worker or a lost job left behind, and queues it again.

The status of jobs is not enough: a job may stay in `doing` when its worker dies, or its row may be
lost. What counts is a video with unfinished work that no live lease and no waiting job covers, and
a removal or poster that was promised (a row), whose lease expired and that no waiting job
will do.
A video that was deleted and not brought back in time is work of this kind, too: its row says so,
and no job has to be kept for it.
The reverse happens, too: work is done, but its worker could not record that, so the job stays in
`doing` and holds the lock that the video's next job waits for.

All times are the database's. When its clock, or that of a worker that asked for a pause, was set by
hours, times that lie too far ahead are brought back to what they can have been at most.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping

import psycopg

from portal.database.connection import Row, fetch_rows, retry_outage, server_time, transaction
from portal.database.deletion_models import Deletion
from portal.database.lease import renewed
from portal.database.models import PosterRequest, Video
from portal.database.rows import NOW, lock_video
from portal.database.states import VideoStatus
from portal.maintenance import rows
from portal.maintenance.rows import limit_ends
from portal.processing import removal
from portal.processing.attempts import LEASE_S
from portal.queue.app import Queue, QueueUnavailable
from portal.queue.enqueue import (
    defer_completion,
    defer_poster,
    defer_removal,
    defer_transcode,
)
from portal.queue.jobs import end_job, queue_again
from portal.queue.rows import resume_paused
from portal.videos.deletion import finish_deletions

logger = logging.getLogger(__name__)

RECOVERY_INTERVAL_S = 5
PROMISES: Mapping[str, type[Deletion | PosterRequest]] = {
    "removal": Deletion,
    "poster": PosterRequest,
}


async def recover_forever(queue: Queue, ending: asyncio.Event) -> None:
    """Look for abandoned work every few seconds; runs in every worker until that ends."""
    # It is cancelled, too; but the queue's pool may forget a cancellation.
    while not ending.is_set():
        try:
            await limit_ends()
            await recover_abandoned(queue)
            await finish_left_running(queue)
            await recover_side_jobs(queue)
            await finish_deletions(queue=queue)
            await resume_paused(after_success=True)
        except (psycopg.Error, QueueUnavailable):
            logger.warning("Recovery failed", exc_info=True, extra={"action": "recovery_failed"})
            await retry_outage(server_time, timeout_s=math.inf)
            # No lease could be renewed meanwhile; workers that live do so first.
            await asyncio.sleep(LEASE_S)
        await asyncio.sleep(RECOVERY_INTERVAL_S)


async def recover_abandoned(queue: Queue) -> int:
    """Queue transcodes again that were left behind; returns how many videos that were.

    A video that two workers see at once is queued once.
    """
    return await _recover(rows.ABANDONED_VIDEOS, "video", _replace_transcode, queue)


async def recover_side_jobs(queue: Queue) -> int:
    """Likewise removals and posters.

    A removal also waits for the lock that a dead worker's transcode still holds in the queue; a
    live one has found out within its lease that its video is gone.
    """
    for row in await fetch_rows(rows.LOCK_HOLDERS):
        await end_job(row["id"], queue)
    return await _recover(rows.ABANDONED_SIDE_JOBS, "side job", _replace_side_job, queue)


async def finish_left_running(queue: Queue) -> int:
    """End the jobs whose work is done and that nobody else will; returns how many that were."""
    left = await fetch_rows(rows.LEFT_RUNNING)
    for row in left:
        logger.warning(
            "Job that was left running is closed",
            extra={"action": "close_job", "job_id": row["id"], "task": row["task_name"]},
        )
        await end_job(row["id"], queue)
    return len(left)


async def _recover(
    query: str, what: str, replace: Callable[[Row, Queue], Awaitable[None]], queue: Queue
) -> int:
    abandoned = await fetch_rows(query)
    for row in abandoned:
        known = {"kind": row["kind"], "video_id": str(row["video_id"]), "job_id": row["job_id"]}
        logger.warning("Abandoned %s is queued again", what, extra={"action": "recover", **known})
        if row["status"] in ("doing", "failed"):
            await queue_again(row["job_id"], queue)
        else:
            await replace(row, queue)
    return len(abandoned)


async def _replace_transcode(row: Row, queue: Queue) -> None:
    """Give a video whose job was lost a new one, unless someone else did so meanwhile."""
    async with transaction():
        video = await lock_video(row["video_id"])
        if video is None:
            return
        found = Video.filter(id=video.id)
        if video.status is VideoStatus.PROCESSING and video.first_job_id == row["job_id"]:
            job_id = await defer_transcode(video, queue)
            await found.update(transcode_job_id=job_id, encode_job_id=None, updated_at=NOW)
        elif video.status is VideoStatus.READY and video.complete_job_id == row["job_id"]:
            await found.update(complete_job_id=await defer_completion(video, queue))


async def _replace_side_job(row: Row, queue: Queue) -> None:
    """Give a side job that was lost a successor, likewise."""
    video_id, kind = row["video_id"], row["kind"]
    promise = PROMISES[kind].filter(video_id=video_id, job_id=row["job_id"])
    async with transaction():
        if not await promise.select_for_update().exists():
            return
        if kind == "removal":
            job_id = await defer_removal(video_id, queue)
        else:
            job_id = await defer_poster(video_id, row["number"], queue)
        await promise.update(job_id=job_id, lease_expires_at=renewed(removal.LEASE_S))
