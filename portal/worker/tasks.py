"""The queue's tasks: each calls one service. Their names are stored with the jobs.

A task gets an id, re-reads the state, and skips what is done, so it may run any number of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from procrastinate import Blueprint, JobContext

from portal.config import Config
from portal.maintenance import janitor
from portal.processing.removal import remove_files as remove_files_of
from portal.processing.service import Transcoder
from portal.queue.app import Queue
from portal.queue.enqueue import JANITOR_TASK, SIDE_QUEUE, TRANSCODE_QUEUE
from portal.storage.bucket import Storage
from portal.telemetry.trace_context import caused_work
from portal.videos import posters
from portal.worker.retries import Retries

tasks = Blueprint()

# As `telemetry.trace_context.current_cause` gives it.
Cause = Mapping[str, str] | None

# A round of the janitor is long, and nobody waits for it.
JANITOR_PAUSE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What the tasks of this process work with; files go below `work_dir`."""

    config: Config
    storage: Storage
    queue: Queue
    transcoder: Transcoder
    work_dir: Path


@tasks.task(name="transcode", queue=TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def transcode_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make a video playable, or failed."""
    with _work_on(context, video_id, cause) as worker:
        await worker.transcoder.make_playable(UUID(video_id))


@tasks.task(name="complete", queue=TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def complete_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make what is missing of a playable video's ladder, in one pass."""
    with _work_on(context, video_id, cause) as worker:
        await worker.transcoder.complete(UUID(video_id))


@tasks.task(name="remove", queue=SIDE_QUEUE, pass_context=True, retry=Retries())
async def remove_files(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Remove what storage holds of a deleted video."""
    with _work_on(context, video_id, cause) as worker:
        await remove_files_of(UUID(video_id), storage=worker.storage)


@tasks.task(name="poster", queue=SIDE_QUEUE, pass_context=True, retry=Retries())
async def make_poster(context: JobContext, video_id: str, number: int, cause: Cause = None) -> None:
    """Cut the frame that an editor wants as a video's poster."""
    with _work_on(context, video_id, cause) as worker:
        await posters.make_poster(
            UUID(video_id),
            number,
            storage=worker.storage,
            queue=worker.queue,
            work_dir=worker.work_dir,
        )


@tasks.periodic(cron=janitor.CRON)
@tasks.task(
    name="janitor",
    queue=SIDE_QUEUE,
    # One that waits is enough.
    queueing_lock=JANITOR_TASK,
    pass_context=True,
    retry=Retries(failure_pause_s=JANITOR_PAUSE_S),
)
async def tidy(context: JobContext, timestamp: int) -> None:
    """Remove what nobody needs any more from storage and from the queue."""
    worker: Worker = context.additional_context["worker"]
    await janitor.tidy(worker.config, storage=worker.storage, queue=worker.queue)


@contextmanager
def _work_on(context: JobContext, video_id: str, cause: Cause) -> Iterator[Worker]:
    worker: Worker = context.additional_context["worker"]
    job = context.job
    with caused_work(job.task_name, cause, video_id=video_id, job_id=job.id or 0):
        worker.work_dir.mkdir(parents=True, exist_ok=True)
        yield worker
