"""Finds removals and posters that a dead worker left behind, and queues them again.

As `recovery.py` does for transcodes: what counts is a promise (a row) whose lease ran out and
that no waiting job will keep. A removal also waits for the lock that a dead worker's transcode
still holds in the queue; a live one has found out within its lease that its video is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from procrastinate.jobs import Status
from tortoise.connection import get_connection

from portal.database.connection import server_time, transaction
from portal.database.models import Deletion, PosterRequest
from portal.queue.enqueue import defer_poster, defer_removal
from portal.videos.deletion import LEASE_END

if TYPE_CHECKING:
    from portal.web.resources import Resources

logger = logging.getLogger(__name__)

ABANDONED = """
WITH promised AS (
  SELECT 'removal' AS kind, video_id, NULL::int AS number, job_id, lease_expires_at FROM deletions
  UNION ALL
  SELECT 'poster', video_id, number, job_id, lease_expires_at FROM poster_requests
  WHERE state IN ('waiting', 'working')
)
SELECT promised.kind, promised.video_id, promised.number, promised.job_id,
       job.status::text AS status
FROM promised LEFT JOIN procrastinate_jobs job ON job.id = promised.job_id
WHERE promised.lease_expires_at < now() AND job.status IS DISTINCT FROM 'todo'
"""
# Transcodes of deleted videos whose workers are dead: they hold the lock of the removal.
HOLDERS = """
SELECT job.id FROM deletions
JOIN procrastinate_jobs job ON job.lock = 'video:' || deletions.video_id
WHERE deletions.lease_expires_at < now() AND job.status = 'doing' AND job.id <> deletions.job_id
"""


async def recover_chores(resources: Resources) -> int:
    """Queue again what was left behind; returns how many that were."""
    database = get_connection("default")
    for row in await database.execute_query_dict(HOLDERS):
        await resources.queue.job_manager.finish_job_by_id_async(
            job_id=row["id"], status=Status.ABORTED, delete_job=False
        )
    rows = await database.execute_query_dict(ABANDONED)
    for row in rows:
        logger.warning(
            "Abandoned chore is queued again",
            extra={"action": "recover", "chore": row["kind"], "video_id": str(row["video_id"])},
        )
        if row["status"] in ("doing", "failed"):
            await resources.queue.job_manager.retry_job_by_id_async(
                job_id=row["job_id"], retry_at=await server_time()
            )
        else:
            await _replace_job(row, resources)
    return len(rows)


async def _replace_job(row: Mapping[str, Any], resources: Resources) -> None:
    """Give a chore whose job was lost a new one, unless someone else did so meanwhile."""
    video_id, former = row["video_id"], row["job_id"]
    async with transaction() as connection:
        if row["kind"] == "removal":
            removal = Deletion.filter(video_id=video_id, job_id=former)
            if await removal.select_for_update().exists():
                job_id = await defer_removal(video_id, resources.queue, connection)
                await removal.update(job_id=job_id, lease_expires_at=LEASE_END)
        else:
            poster = PosterRequest.filter(video_id=video_id, job_id=former)
            if await poster.select_for_update().exists():
                job_id = await defer_poster(video_id, row["number"], resources.queue, connection)
                await poster.update(job_id=job_id, lease_expires_at=LEASE_END)
