"""Help another worker with its pass, by making one of its runs.

A failure here doesn't fail the video: a run at which helpers fail is left to the worker of the
pass, with the segments that they made.
"""

import logging

from portal.concurrency import task_group
from portal.database.connection import retry_outage
from portal.database.models import Video
from portal.processing import runs
from portal.processing.attempts import LeaseLost
from portal.processing.encoding import Preemption, Tools
from portal.processing.outputs import StorageSink
from portal.processing.progress import Heartbeat, under_lease
from portal.processing.removal import remove_again
from portal.processing.runs import HeldRun
from portal.processing.sources import SourceChanged, probed_source
from portal.transcoding import errors
from portal.transcoding.encoding.continuation import NotContinuable
from portal.transcoding.encoding.runs import make_run
from portal.transcoding.planning.ladder import plan_renditions

logger = logging.getLogger(__name__)

# Errors that the source, or the worker of the pass, may have caused.
FAULTS = (NotContinuable, SourceChanged, errors.SourceRejected, errors.TranscodeFailed)


async def make_run_of(run_id: int, tools: Tools, *, job_id: int) -> None:
    """Make a run that still waits for a helper. Raises the error that ended it early."""
    held = await runs.claim(run_id, worker=tools.worker, storage=tools.storage)
    video = await Video.get_or_none(id=held.row.video_id) if held else None
    if held is None or video is None:
        return
    fields = {"action": "run_begun", "first": held.run.first, "end": held.run.end}
    logger.info("Run begun", extra=fields)
    failures = 0
    try:
        await _make_held_run(held, video, tools, job_id)
        logger.info("Run is done", extra={"action": "run_done"})
    except LeaseLost:
        logger.info("Run is no longer needed", extra={"action": "run_lost"})
    except FAULTS as exc:
        failures = 1
        logger.warning("Run failed: %s", exc, extra={"action": "run_failed"})
        raise
    finally:
        await retry_outage(lambda: held.release(failures=failures))
        if not await Video.exists(id=video.id):
            await remove_again(video.id, video.storage_key, queue=tools.queue)


async def _make_held_run(held: HeldRun, video: Video, tools: Tools, job_id: int) -> None:
    row = held.row
    heartbeat = Heartbeat(video.id, None)
    heartbeat.held = held
    heartbeat.folders = dict.fromkeys(row.renditions, row.folder)
    async with (
        probed_source(video, tools.storage, tools.limits) as source,
        task_group() as tasks,
    ):
        watching = tasks.create_task(Preemption(job_id=job_id, is_first=False).watch())
        work = make_run(
            source.url,
            source.probe,
            plan_renditions(source.probe),
            held.run,
            names=row.renditions,
            sink=StorageSink(tools.storage, video.id, None, row.folder),
            work_dir=tools.work_dir,
            on_progress=heartbeat.report,
            on_made=heartbeat.note_stored,
        )
        report = await under_lease(heartbeat, work)
        watching.cancel()
    await retry_outage(heartbeat.beat)
    await held.finish(faults=report.faults, network_faults=report.network_faults)
