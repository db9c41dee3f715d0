"""Finds removals and posters that a dead worker left behind, and queues them again.

As `recovery` does for transcodes: what counts is a promise (a row) whose lease expired and that no
waiting job will keep. A removal also waits for the lock that a dead worker's transcode still holds
in the queue; a live one has found out within its lease that its video is gone.
"""

from __future__ import annotations

import logging

from portal.database.connection import fetch_rows, transaction
from portal.database.lease import renewed
from portal.database.models import Deletion, PosterRequest
from portal.database.rows import Row
from portal.maintenance.rows import ABANDONED_SIDE_JOBS, LOCK_HOLDERS
from portal.processing.removal import LEASE_S
from portal.queue.app import Queue
from portal.queue.enqueue import defer_poster, defer_removal
from portal.queue.jobs import end_job, queue_again

logger = logging.getLogger(__name__)


async def recover_side_jobs(queue: Queue) -> int:
    """Queue again what was left behind; returns how many that were."""
    for row in await fetch_rows(LOCK_HOLDERS):
        await end_job(row["id"], queue)
    rows = await fetch_rows(ABANDONED_SIDE_JOBS)
    for row in rows:
        logger.warning(
            "Abandoned side job is queued again",
            extra={"action": "recover", "kind": row["kind"], "video_id": str(row["video_id"])},
        )
        if row["status"] in ("doing", "failed"):
            await queue_again(row["job_id"], queue)
        else:
            await _replace_job(row, queue)
    return len(rows)


async def _replace_job(row: Row, queue: Queue) -> None:
    """Give a side job that was lost a successor, unless someone else did so meanwhile."""
    video_id, former = row["video_id"], row["job_id"]
    async with transaction():
        if row["kind"] == "removal":
            removal = Deletion.filter(video_id=video_id, job_id=former)
            if await removal.select_for_update().exists():
                job_id = await defer_removal(video_id, queue)
                await removal.update(job_id=job_id, lease_expires_at=renewed(LEASE_S))
        else:
            poster = PosterRequest.filter(video_id=video_id, job_id=former)
            if await poster.select_for_update().exists():
                job_id = await defer_poster(video_id, row["number"], queue)
                await poster.update(job_id=job_id, lease_expires_at=renewed(LEASE_S))
