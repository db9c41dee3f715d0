"""Finds work that a dead worker or a lost job left behind, and queues it again.

The status of jobs is not enough: a job may stay in `doing` when its worker dies, or its row may be
lost. What counts is a video with unfinished work that no live lease and no waiting job covers.
The reverse happens, too: work is done, but its worker could not record that, so the job stays in
`doing` and holds the lock that the video's next job waits for.

All times are the database's. When its clock, or that of a worker that asked for a pause, was set by
hours, times that lie too far ahead are brought back to what they can have been at most.
"""

from __future__ import annotations

import asyncio
import logging
import math

import psycopg

from portal.database.connection import fetch_rows, retry_outage, server_time
from portal.maintenance.rows import ABANDONED_VIDEOS, LEFT_RUNNING, limit_ends
from portal.maintenance.side_jobs import recover_side_jobs
from portal.processing.attempts import LEASE_S
from portal.queue.app import Queue, QueueUnavailable
from portal.queue.enqueue import replace_job
from portal.queue.jobs import end_job, queue_again
from portal.queue.rows import resume_paused

logger = logging.getLogger(__name__)

RECOVERY_INTERVAL_S = 5


async def recover_forever(queue: Queue, ending: asyncio.Event) -> None:
    """Look for abandoned work every few seconds; runs in every worker until that ends."""
    # It is cancelled, too; but the queue's pool may forget a cancellation.
    while not ending.is_set():
        try:
            await limit_ends()
            await recover_abandoned(queue)
            await finish_left_running(queue)
            await recover_side_jobs(queue)
            await resume_paused(after_success=True)
        except (psycopg.Error, QueueUnavailable):
            logger.warning("Recovery failed", exc_info=True, extra={"action": "recovery_failed"})
            await retry_outage(server_time, timeout_s=math.inf)
            # No lease could be renewed meanwhile; workers that live do so first.
            await asyncio.sleep(LEASE_S)
        await asyncio.sleep(RECOVERY_INTERVAL_S)


async def recover_abandoned(queue: Queue) -> int:
    """Queue again what was left behind; returns how many videos that were.

    A video that two workers see at once is queued once.
    """
    rows = await fetch_rows(ABANDONED_VIDEOS)
    for row in rows:
        logger.warning(
            "Abandoned video is queued again",
            extra={"action": "recover", "video_id": str(row["video_id"]), "job_id": row["job_id"]},
        )
        if row["status"] in ("doing", "failed"):
            await queue_again(row["job_id"], queue)
        else:
            await replace_job(row["video_id"], row["job_id"], queue=queue)
    return len(rows)


async def finish_left_running(queue: Queue) -> int:
    """End the jobs whose work is done and that nobody else will; returns how many that were."""
    rows = await fetch_rows(LEFT_RUNNING)
    for row in rows:
        logger.warning(
            "Job that was left running is closed",
            extra={"action": "close_job", "job_id": row["id"], "task": row["task_name"]},
        )
        await end_job(row["id"], queue)
    return len(rows)
