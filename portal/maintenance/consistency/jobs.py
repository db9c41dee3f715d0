"""Looks for work that nobody does: abandoned videos, stuck and pointless jobs, stale multiparts."""

from functools import partial

from portal.database.connection import Row, fetch_rows, transaction
from portal.maintenance import janitor, recovery
from portal.maintenance.consistency import repairs
from portal.maintenance.consistency.comparison import Comparison
from portal.maintenance.consistency.findings import Difference
from portal.maintenance.consistency.rows import STUCK, WITHOUT_VIDEO
from portal.maintenance.rows import ABANDONED_SIDE_JOBS, ABANDONED_VIDEOS
from portal.queue.jobs import cancel_job, end_job
from portal.storage.errors import ListingRefused
from portal.storage.keys import UPLOAD_FOLDER
from portal.storage.listing import open_multiparts


async def examine_work(run: Comparison) -> None:
    """Report work and jobs that don't fit each other."""
    await _examine_abandoned(run)
    for row in await fetch_rows(WITHOUT_VIDEO):
        await run.report.add(
            Difference.JOB_WITHOUT_VIDEO, _job(row), partial(_cancel, row["id"], run)
        )
    for row in await fetch_rows(STUCK):
        await run.report.add(Difference.JOB_STUCK, _job(row), partial(_end_stuck, row, run))


async def examine_multiparts(run: Comparison) -> None:
    """Report unfinished uploads in parts that the database did not record, or never issued."""
    try:
        async for page in open_multiparts(UPLOAD_FOLDER, run.storage):
            old = [it for it in page if it.begun_at < run.cutoffs.unrecorded_since]
            unrecorded = await janitor.unrecorded(old)
            unknown = [it for it in old if it.begun_at < run.cutoffs.idle_since]
            unknown = await janitor.unknown(unknown)
            for found in (*unrecorded, *unknown):
                subject = f"{found.key}, begun {found.begun_at:%Y-%m-%d %H:%M}"
                repair = partial(run.storage.multiparts.abort, found.key, found.multipart_id)
                await run.report.add(Difference.MULTIPART_STALE, subject, repair)
    except ListingRefused:
        return


async def _examine_abandoned(run: Comparison) -> None:
    videos, side_jobs = await fetch_rows(ABANDONED_VIDEOS), await fetch_rows(ABANDONED_SIDE_JOBS)
    subjects = [f"video {row['video_id']}, job {row['job_id']}" for row in videos]
    subjects += [f"{row['kind']} of video {row['video_id']}" for row in side_jobs]
    again = repairs.once(partial(_recover, run))
    for subject in subjects:
        await run.report.add(Difference.WORK_ABANDONED, subject, again)


async def _recover(run: Comparison) -> None:
    await recovery.recover_abandoned(run.queue)
    await recovery.recover_side_jobs(run.queue)


async def _cancel(job_id: int, run: Comparison) -> None:
    async with transaction():
        await cancel_job(job_id, run.queue)


async def _end_stuck(row: Row, run: Comparison) -> None:
    # Once more: work that was abandoned may have been queued again by now.
    if any(each["id"] == row["id"] for each in await fetch_rows(STUCK)):
        await end_job(row["id"], run.queue)


def _job(row: Row) -> str:
    return f"job {row['id']} {row['task_name']} of {row['video_id'] or 'no video'}"
