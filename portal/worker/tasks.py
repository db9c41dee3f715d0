"""The queue's tasks: each calls one passes. Their names are stored with the jobs.

A task gets an id, re-reads the state, and skips what is done, so it may run any number of times.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID

from procrastinate import Blueprint, JobContext

from portal.maintenance import janitor
from portal.processing import passes, removal
from portal.processing.encoding import Tools
from portal.queue.enqueue import PREPARE_QUEUE, SIDE_QUEUE, TRANSCODE_QUEUE
from portal.telemetry.spans import traced_job
from portal.videos import posters
from portal.worker.retries import Retries

tasks = Blueprint()

# As `telemetry.spans.current_trace_context` gives it.
Cause = Mapping[str, str] | None

# A round of the janitor is long, and nobody waits for it.
JANITOR_PAUSE_S = 60


@tasks.task(name="transcode", queue=PREPARE_QUEUE, pass_context=True, retry=Retries())
async def transcode_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Look into a video's file: make it failed, or playable, or queue its encode.

    Version 0.4.0 put this job into the queue of encodes; from there it is carried out, too.
    """
    with _work_on(context, video_id, cause) as tools:
        await passes.prepare(UUID(video_id), tools)


@tasks.task(name="encode", queue=TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def encode_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make a video playable by encoding, or failed."""
    with _work_on(context, video_id, cause) as tools:
        await passes.make_playable(UUID(video_id), tools)


@tasks.task(name="complete", queue=TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def complete_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make what is missing of a playable video's ladder, in one pass."""
    with _work_on(context, video_id, cause) as tools:
        await passes.complete_ladder(UUID(video_id), tools)


@tasks.task(name="remove", queue=SIDE_QUEUE, pass_context=True, retry=Retries())
async def remove_files(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Remove what storage holds of a deleted video."""
    with _work_on(context, video_id, cause) as tools:
        await removal.remove_files(UUID(video_id), storage=tools.storage)


@tasks.task(name="poster", queue=SIDE_QUEUE, pass_context=True, retry=Retries())
async def make_poster(context: JobContext, video_id: str, number: int, cause: Cause = None) -> None:
    """Cut the frame that an editor wants as a video's poster."""
    with _work_on(context, video_id, cause) as tools:
        await posters.make_poster(
            UUID(video_id),
            number,
            storage=tools.storage,
            queue=tools.queue,
            work_dir=tools.work_dir,
        )


@tasks.periodic(cron=janitor.CRON)
@tasks.task(
    name="janitor",
    queue=SIDE_QUEUE,
    # One that waits is enough.
    queueing_lock="portal:janitor",
    pass_context=True,
    retry=Retries(failure_pause_s=JANITOR_PAUSE_S),
)
async def tidy(context: JobContext, timestamp: int) -> None:
    """Remove what nobody needs any more from storage and from the queue."""
    config, tools = context.additional_context["config"], context.additional_context["tools"]
    await janitor.tidy(config, storage=tools.storage, queue=tools.queue)


@contextmanager
def _work_on(context: JobContext, video_id: str, cause: Cause) -> Iterator[Tools]:
    tools: Tools = context.additional_context["tools"]
    job = context.job
    with traced_job(job.task_name, cause, video_id=video_id, job_id=job.id or 0):
        tools.work_dir.mkdir(parents=True, exist_ok=True)
        yield tools
