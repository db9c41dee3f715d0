"""Looks for work that nobody does: abandoned videos, stuck and pointless jobs, stale multiparts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from procrastinate.jobs import Status
from tortoise.connection import get_connection

from portal.errors import ListingRefused
from portal.maintenance import janitor, recovery, side_jobs
from portal.maintenance.consistency import repairs
from portal.maintenance.consistency.findings import Kind
from portal.processing.attempts import LEASE_S
from portal.queue.rows import DEAD_AFTER_S
from portal.storage.keys import UPLOAD_FOLDER
from portal.storage.listing import open_multiparts
from portal.storage.objects import OpenMultipart

if TYPE_CHECKING:
    from portal.maintenance.consistency.compare import Comparison

STUCK = f"""
SELECT job.id, job.task_name, job.args->>'video_id' AS video_id
FROM procrastinate_jobs job
LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
WHERE job.status = 'doing'
  AND (coalesce(worker.last_heartbeat < now() - make_interval(secs => %s), true)
    AND NOT EXISTS (
      SELECT 1 FROM procrastinate_events WHERE job_id = job.id AND type = 'started'
        AND at > now() - make_interval(secs => %s)
    )
    OR ({recovery.ENDED_UNHEARD}))
ORDER BY job.id
"""  # noqa: S608 - put together from constants
STUCK_VALUES = [DEAD_AFTER_S, DEAD_AFTER_S, *recovery.ENDED_UNHEARD_VALUES]
# One that runs finds out for itself, and a removal ends a moment after its row.
WITHOUT_VIDEO = """
SELECT job.id, job.task_name, job.args->>'video_id' AS video_id
FROM procrastinate_jobs job
WHERE job.status = 'todo' AND job.args->>'video_id' IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM videos WHERE id = (job.args->>'video_id')::uuid)
  AND NOT EXISTS (SELECT 1 FROM deletions WHERE video_id = (job.args->>'video_id')::uuid)
ORDER BY job.id
"""

Row = Mapping[str, Any]


async def examine_work(run: Comparison) -> None:
    """Report work and jobs that don't fit each other."""
    await _examine_abandoned(run)
    database = get_connection("default")
    for row in await database.execute_query_dict(WITHOUT_VIDEO):
        repair = partial(_cancel, row, run)
        await run.report.add(Kind.JOB_WITHOUT_VIDEO, _job(row), repair)
    for row in await database.execute_query_dict(STUCK, STUCK_VALUES):
        await run.report.add(Kind.JOB_STUCK, _job(row), partial(_end_stuck, row, run))


async def examine_multiparts(run: Comparison) -> None:
    """Report unfinished uploads in parts that the database did not record, or never issued."""
    try:
        async for page in open_multiparts(UPLOAD_FOLDER, run.storage):
            old = [it for it in page if it.begun_at < run.limits.unrecorded_since]
            unrecorded = await janitor.unrecorded(old)
            unknown = [it for it in old if it.begun_at < run.limits.idle_since]
            unknown = await janitor.unknown(unknown)
            for found in (*unrecorded, *unknown):
                subject = f"{found.key}, begun {found.begun_at:%Y-%m-%d %H:%M}"
                repair = partial(_abort, found, run)
                await run.report.add(Kind.MULTIPART_STALE, subject, repair)
    except ListingRefused:
        return


async def _examine_abandoned(run: Comparison) -> None:
    database = get_connection("default")
    videos = await database.execute_query_dict(recovery.ABANDONED, [LEASE_S, LEASE_S])
    again = repairs.once(partial(_recover_videos, run))
    for row in videos:
        subject = f"video {row['video_id']}, job {row['job_id']}"
        await run.report.add(Kind.WORK_ABANDONED, subject, again)
    again = repairs.once(partial(_recover_chores, run))
    for row in await database.execute_query_dict(side_jobs.ABANDONED):
        subject = f"{row['kind']} of video {row['video_id']}"
        await run.report.add(Kind.WORK_ABANDONED, subject, again)


async def _recover_videos(run: Comparison) -> str:
    await recovery.recover_abandoned(run.resources)
    return ""


async def _recover_chores(run: Comparison) -> str:
    await side_jobs.recover_chores(run.resources)
    return ""


async def _cancel(row: Row, run: Comparison) -> str:
    await run.resources.queue.job_manager.cancel_job_by_id_async(row["id"])
    return ""


async def _end_stuck(row: Row, run: Comparison) -> str:
    if await _is_stuck(row):
        await run.resources.queue.job_manager.finish_job_by_id_async(
            job_id=row["id"], status=Status.ABORTED, delete_job=False
        )
    return ""


async def _is_stuck(row: Row) -> bool:
    """Whether it still is: work that was abandoned may have been queued again by now."""
    found = await get_connection("default").execute_query_dict(STUCK, STUCK_VALUES)
    return any(each["id"] == row["id"] for each in found)


async def _abort(found: OpenMultipart, run: Comparison) -> str:
    await run.storage.multiparts.abort(found.key, found.multipart_id)
    return ""


def _job(row: Row) -> str:
    return f"job {row['id']} {row['task_name']} of {row['video_id'] or 'no video'}"
