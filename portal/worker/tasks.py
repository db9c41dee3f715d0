"""The worker: procrastinate's tasks, and when they are retried.

A task gets an id, re-reads the state, and skips what is done, so it may run any number of times.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
from procrastinate import BaseRetryStrategy, Blueprint, JobContext, RetryDecision
from procrastinate.signals import on_stop

from portal.database.connection import server_time
from portal.errors import Unavailable
from portal.maintenance import janitor
from portal.maintenance.recovery import recover_forever
from portal.processing import attempts, passes, renditions
from portal.processing.attempts import LEASE_S, HeldByAnother
from portal.queue.connector import PatientConnector
from portal.queue.enqueue import CHORES_QUEUE, JANITOR_TASK, TRANSCODE_QUEUE
from portal.telemetry import tracing
from portal.telemetry.logs import configure_logging
from portal.telemetry.trace_context import traced_job
from portal.transcoding.errors import DiskFull
from portal.videos import deletion, posters
from portal.videos.deletion import SETTLE_S, Unsettled
from portal.videos.publishing import TRANSCODE_FAILED
from portal.web.resources import Resources, open_resources

if TYPE_CHECKING:
    from procrastinate.jobs import Job

    from portal.config import Config

logger = logging.getLogger(__name__)
tasks = Blueprint()

# As `trace_context.current_trace_context` gives it.
Cause = Mapping[str, str] | None

# Should the news of a new job be missed, it is found within this time.
FETCH_INTERVAL_S = 2
OUTAGE_PAUSE_S = 10
FAILURE_PAUSE_S = 5
# A round of the janitor is long, and nobody waits for it.
JANITOR_PAUSE_S = 60
# One waits for storage while the other cuts a frame.
CHORES_CONCURRENCY = 2
EXHAUSTED_MESSAGE = (
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)


class _TryAgain(BaseRetryStrategy):
    """Hands work back to the queue: at once when stopped, after a pause when something failed.

    There is no limit here; attempts and tries are counted, and exhausted, when one begins.
    """

    def __init__(self, *, failure_pause_s: int = FAILURE_PAUSE_S) -> None:
        self._failure_pause_s = failure_pause_s

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, Unsettled):
            return RetryDecision(retry_in={"seconds": SETTLE_S})
        if isinstance(exception, HeldByAnother):
            return RetryDecision(retry_in={"seconds": LEASE_S})
        if isinstance(exception, Unavailable | DiskFull | psycopg.OperationalError):
            return RetryDecision(retry_in={"seconds": OUTAGE_PAUSE_S})
        return RetryDecision(retry_in={"seconds": self._failure_pause_s})


@tasks.task(name="transcode", queue=TRANSCODE_QUEUE, pass_context=True, retry=_TryAgain())
async def transcode_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make a video playable, or failed."""
    resources: Resources = context.additional_context["resources"]
    with _work_on(context, video_id, cause):
        work_dir = _own_work_dir(resources.config.work_dir)
        try:
            attempt = await attempts.begin(UUID(video_id), worker=_worker_name())
        except attempts.AttemptsExhausted:
            await attempts.fail_video(
                UUID(video_id), code=TRANSCODE_FAILED, message=EXHAUSTED_MESSAGE
            )
            return
        if attempt is not None:
            await passes.make_playable(attempt, resources, work_dir=work_dir)


@tasks.task(name="complete", queue=TRANSCODE_QUEUE, pass_context=True, retry=_TryAgain())
async def complete_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make what is missing of a playable video's ladder, in one pass."""
    resources: Resources = context.additional_context["resources"]
    with _work_on(context, video_id, cause):
        work_dir = _own_work_dir(resources.config.work_dir)
        attempt = await renditions.begin_completion(UUID(video_id), worker=_worker_name())
        if attempt is not None:
            await passes.make_missing(attempt, resources, work_dir=work_dir)


@tasks.task(name="remove", queue=CHORES_QUEUE, pass_context=True, retry=_TryAgain())
async def remove_files(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Remove what storage holds of a deleted video."""
    resources: Resources = context.additional_context["resources"]
    with _work_on(context, video_id, cause):
        await deletion.remove_files(UUID(video_id), storage=resources.storage)


@tasks.task(name="poster", queue=CHORES_QUEUE, pass_context=True, retry=_TryAgain())
async def make_poster(context: JobContext, video_id: str, number: int, cause: Cause = None) -> None:
    """Cut the frame that an editor wants as a video's poster."""
    resources: Resources = context.additional_context["resources"]
    with _work_on(context, video_id, cause):
        await posters.make_poster(
            UUID(video_id),
            number,
            storage=resources.storage,
            queue=resources.queue,
            work_dir=_own_work_dir(resources.config.work_dir),
        )


@tasks.periodic(cron=janitor.CRON)
@tasks.task(
    name="janitor",
    queue=CHORES_QUEUE,
    # One that waits is enough.
    queueing_lock=JANITOR_TASK,
    pass_context=True,
    retry=_TryAgain(failure_pause_s=JANITOR_PAUSE_S),
)
async def tidy(context: JobContext, timestamp: int) -> None:
    """Remove from storage what nobody needs any more."""
    await janitor.tidy(context.additional_context["resources"])


async def work(config: Config) -> None:
    """Be a worker, as a process of its own."""
    configure_logging(config)
    tracing.start("worker")
    try:
        async with open_resources(config) as resources:
            # The queue would wait for a database that is away without a word.
            await server_time()
            await run_worker(resources)
    finally:
        await tracing.flush()


async def run_worker(resources: Resources) -> None:
    """Work off the queues until SIGTERM or SIGINT; running jobs are then handed back at once."""
    queue, connector = resources.queue, PatientConnector(resources.config.database_url)
    queue.add_tasks_from(tasks, namespace="portal")
    remove_leftovers(resources.config.work_dir)
    ending = asyncio.Event()
    with queue.replace_connector(connector), on_stop(ending.set):
        async with queue.open_async(), asyncio.TaskGroup() as group:
            name = _worker_name()
            logger.info("Worker begins", extra={"action": "worker_begins", "worker": name})
            concurrency = resources.config.worker_concurrency
            running = [
                group.create_task(_serve(TRANSCODE_QUEUE, resources, concurrency)),
                group.create_task(_serve(CHORES_QUEUE, resources, CHORES_CONCURRENCY)),
                group.create_task(recover_forever(resources, ending)),
                group.create_task(ending.wait()),
            ]
            try:
                # What can't go on ends the rest, too.
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            finally:
                connector.is_ending = True
                ending.set()
            for task in running:
                task.cancel()


def remove_leftovers(work_dir: Path) -> None:
    """Remove what killed workers of this machine left in the work folder.

    Called before a worker begins: what bears its own process id is another's. In a container
    each one gets the id of the one before it.
    """
    for folder in work_dir.glob("worker-*"):
        process_id = folder.name.removeprefix("worker-")
        if process_id == str(os.getpid()) or not Path(f"/proc/{process_id}").exists():
            shutil.rmtree(folder, ignore_errors=True)


async def _serve(queue_name: str, resources: Resources, concurrency: int) -> None:
    """Work off one queue. Chores have a lane of their own: they don't wait for long transcodes."""
    await resources.queue.run_worker_async(
        queues=[queue_name],
        name=_worker_name(),
        concurrency=concurrency,
        fetch_job_polling_interval=FETCH_INTERVAL_S,
        additional_context={"resources": resources},
        shutdown_graceful_timeout=0,
        delete_jobs="never",
        install_signal_handlers=False,
    )


def _work_on(context: JobContext, video_id: str, cause: Cause) -> AbstractContextManager[None]:
    job = context.job
    return traced_job(job.task_name, cause, video_id=video_id, job_id=job.id or 0)


def _worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _own_work_dir(work_dir: Path) -> Path:
    own = work_dir / f"worker-{os.getpid()}"
    own.mkdir(parents=True, exist_ok=True)
    return own
