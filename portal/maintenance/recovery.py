"""Finds work that a dead worker or a lost job left behind, and queues it again.

The queue's own word is not enough: a job may stay in `doing` when its worker dies, or its row may
be lost. What counts is a video with unfinished work that no live lease and no waiting job covers.
The reverse happens, too: work that is done, whose job stayed in `doing` since its worker died
before it could say so, or could not say so, and holds the lock that the video's next job waits for.

All times are the database's. Should its clock, or that of a worker that asked for a pause, be
set by hours, then what lies too far ahead is brought back to what it can have been at most.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING

import psycopg
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Status
from tortoise.connection import get_connection

from portal.database.connection import over_outage, server_time
from portal.maintenance.side_jobs import recover_chores
from portal.processing.attempts import LEASE_S
from portal.queue.enqueue import replace_job

if TYPE_CHECKING:
    from portal.web.resources import Resources

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
           OR abs(extract(epoch FROM now() - attempt.finished_at)) < %s)
  )
  AND NOT EXISTS (
    SELECT 1 FROM procrastinate_events event
    WHERE event.job_id = job.id AND event.type = 'started'
      AND abs(extract(epoch FROM now() - event.at)) < %s
  )
"""
# A job whose worker may live, but could not say that it ended: nothing refers to it, and nothing
# shows it to be running, or to have been a moment ago.
ENDED_UNHEARD = """
  job.task_name IN ('portal:transcode', 'portal:complete')
  AND NOT EXISTS (
    SELECT 1 FROM videos
    WHERE videos.id = (job.args->>'video_id')::uuid
      AND job.id = CASE videos.status
          WHEN 'processing' THEN videos.transcode_job_id ELSE videos.complete_job_id END
  )
  AND NOT EXISTS (
    SELECT 1 FROM attempts
    WHERE video_id = (job.args->>'video_id')::uuid
      AND (outcome IS NULL OR abs(extract(epoch FROM now() - finished_at)) < %s)
  )
  AND NOT EXISTS (
    SELECT 1 FROM tombstones
    WHERE video_id = (job.args->>'video_id')::uuid
      AND abs(extract(epoch FROM now() - deleted_at)) < %s
  )
  AND NOT EXISTS (
    SELECT 1 FROM procrastinate_events
    WHERE job_id = job.id AND type = 'started' AND abs(extract(epoch FROM now() - at)) < %s
  )
"""
ENDED_UNHEARD_VALUES = [LEASE_S] * 3
# Jobs that nothing refers to any more, and nobody works on.
LEFT_RUNNING = f"""
SELECT job.id, job.task_name FROM procrastinate_jobs job
LEFT JOIN videos video ON video.id = (job.args->>'video_id')::uuid
WHERE job.status = 'doing'
  AND job.id IS DISTINCT FROM CASE video.status
      WHEN 'processing' THEN video.transcode_job_id ELSE video.complete_job_id END
  AND NOT EXISTS (SELECT 1 FROM deletions WHERE job_id = job.id)
  AND NOT EXISTS (
    SELECT 1 FROM poster_requests WHERE job_id = job.id AND state IN ('waiting', 'working')
  )
  AND NOT EXISTS (
    SELECT 1 FROM attempts attempt
    WHERE attempt.video_id = video.id AND attempt.outcome IS NULL
      AND attempt.lease_expires_at > now()
  )
  AND (NOT EXISTS (
    SELECT 1 FROM procrastinate_workers worker
    WHERE worker.id = job.worker_id
      AND abs(extract(epoch FROM now() - worker.last_heartbeat)) < %s
  ) OR ({ENDED_UNHEARD}))
"""  # noqa: S608 - put together from constants
# A lease is never longer than this.
TOO_LONG_LEASES = """
UPDATE attempts SET lease_expires_at = now() + make_interval(secs => %s)
WHERE outcome IS NULL AND lease_expires_at > now() + make_interval(secs => %s)
"""
# Nor is a pause, or the lease of a chore, ever as long as two minutes.
TOO_LONG_PAUSES = (
    """UPDATE procrastinate_jobs SET scheduled_at = now()
    WHERE scheduled_at > now() + interval '2 minutes' AND status = 'todo'""",
    """UPDATE deletions SET settles_at = now() WHERE settles_at > now() + interval '2 minutes'""",
    """UPDATE deletions SET lease_expires_at = now()
    WHERE lease_expires_at > now() + interval '2 minutes'""",
    """UPDATE poster_requests SET lease_expires_at = now()
    WHERE lease_expires_at > now() + interval '2 minutes' AND state IN ('waiting', 'working')""",
)


async def recover_forever(resources: Resources, ending: asyncio.Event) -> None:
    """Look for abandoned work every few seconds; runs in every worker until that ends."""
    # It is cancelled, too; but the queue's pool may forget a cancellation.
    while not ending.is_set():
        try:
            await mend_clocks()
            await recover_abandoned(resources)
            await finish_left_running(resources)
            await recover_chores(resources)
        except (psycopg.Error, ConnectorException):
            logger.warning("Recovery failed", exc_info=True, extra={"action": "recovery_failed"})
            await over_outage(server_time, patience_s=math.inf)
            # No lease could be renewed meanwhile; workers that live do so first.
            await asyncio.sleep(LEASE_S)
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
                job_id=row["job_id"], retry_at=await server_time()
            )
        else:
            await replace_job(row["video_id"], row["job_id"], queue=resources.queue)
    return len(rows)


async def finish_left_running(resources: Resources) -> int:
    """Close the jobs whose work is done and that nobody else will; returns how many that were."""
    values = [LEASE_S, *ENDED_UNHEARD_VALUES]
    rows = await get_connection("default").execute_query_dict(LEFT_RUNNING, values)
    for row in rows:
        logger.warning(
            "Job that was left running is closed",
            extra={"action": "close_job", "job_id": row["id"], "task": row["task_name"]},
        )
        await resources.queue.job_manager.finish_job_by_id_async(
            job_id=row["id"], status=Status.ABORTED, delete_job=False
        )
    return len(rows)


async def mend_clocks() -> None:
    """Bring leases and pauses that end too far ahead back to their greatest length."""
    database = get_connection("default")
    await database.execute_query(TOO_LONG_LEASES, [LEASE_S, LEASE_S])
    for statement in TOO_LONG_PAUSES:
        await database.execute_query(statement)
