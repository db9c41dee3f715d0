"""Finds work that a dead worker or a lost job left behind, and queues it again.

The queue's own word is not enough: a job may stay in `doing` when its worker dies, or its row may
be lost. What counts is a video with unfinished work that no live lease and no waiting job covers.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg
from procrastinate.exceptions import ConnectorException
from tortoise.connection import get_connection

from portal.attempts import LEASE_S
from portal.chores import recover_chores
from portal.enqueuing import replace_job

if TYPE_CHECKING:
    from portal.resources import Resources

logger = logging.getLogger(__name__)

RECOVERY_INTERVAL_S = 5

# A job that started, or whose attempt ended, a moment ago is still being seen to by its worker.
ABANDONED = """
WITH unfinished AS (
  SELECT id, transcode_job_id AS job_id FROM videos WHERE status = 'processing'
  UNION ALL
  SELECT id, complete_job_id FROM videos WHERE status = 'ready' AND complete_job_id IS NOT NULL
)
SELECT unfinished.id AS video_id, unfinished.job_id, job.status::text AS status
FROM unfinished
LEFT JOIN procrastinate_jobs job ON job.id = unfinished.job_id
WHERE job.status IS DISTINCT FROM 'todo'
  AND NOT EXISTS (
    SELECT 1 FROM attempts attempt
    WHERE attempt.video_id = unfinished.id
      AND (attempt.outcome IS NULL AND attempt.lease_expires_at > now()
           OR attempt.finished_at > now() - make_interval(secs => %s))
  )
  AND NOT EXISTS (
    SELECT 1 FROM procrastinate_events event
    WHERE event.job_id = job.id AND event.type = 'started'
      AND event.at > now() - make_interval(secs => %s)
  )
"""


async def recover_forever(resources: Resources) -> None:
    """Look for abandoned work every few seconds; runs in every worker."""
    while True:
        try:
            await recover_abandoned(resources)
            await recover_chores(resources)
        except (psycopg.Error, ConnectorException):
            logger.warning("Recovery failed", exc_info=True, extra={"action": "recovery_failed"})
        await asyncio.sleep(RECOVERY_INTERVAL_S)


async def recover_abandoned(resources: Resources) -> int:
    """Queue again what was left behind; returns how many videos that were.

    A video that two workers see at once is queued once.
    """
    rows = await get_connection("default").execute_query_dict(ABANDONED, [LEASE_S, LEASE_S])
    for row in rows:
        logger.warning(
            "Abandoned video is queued again",
            extra={"action": "recover", "video_id": str(row["video_id"]), "job_id": row["job_id"]},
        )
        if row["status"] in ("doing", "failed"):
            await resources.queue.job_manager.retry_job_by_id_async(
                job_id=row["job_id"], retry_at=datetime.now(UTC)
            )
        else:
            await replace_job(row["video_id"], row["job_id"], queue=resources.queue)
    return len(rows)
