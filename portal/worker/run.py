"""Worker process: its clients, its queues, its tasks, and its end.

A task calls one function. Its name is stored with its jobs, so it stays. A task gets an id, reads
the state again, and skips finished work, so it may run any number of times.
"""

import asyncio
import logging
import math
import os
import random
import shutil
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

from procrastinate import BaseRetryStrategy, Blueprint, JobContext, RetryDecision
from procrastinate.jobs import Job
from procrastinate.signals import on_stop

from portal.config import Config
from portal.database.connection import open_database, server_time
from portal.database.outages import is_outage, skipped_in_outage
from portal.errors import StorageUnavailable
from portal.maintenance import janitor
from portal.maintenance.recovery import recover_forever
from portal.processing import (
    encoding,
    first_pass,
    later_passes,
    parts,
    removal,
    storyboards,
)
from portal.processing.attempts import LEASE_S, HeldByAnother
from portal.processing.encoding import Preempted, Tools
from portal.processing.sources import SourceInterrupted
from portal.processing.tries import is_out_of_memory
from portal.queue import enqueue
from portal.queue.app import Queue, WorkerConnector, queue_app
from portal.queue.rows import import_waits
from portal.retry import Backoff
from portal.statistics.folding import fold_forever
from portal.storage.bucket import Storage, open_storage
from portal.telemetry import tracing
from portal.telemetry.logs import configure_logging
from portal.text import error_words
from portal.transcoding.errors import DiskFull
from portal.transcoding.probing.probe import SourceLimits
from portal.videos import captions, downloads, imports, posters, transcription
from portal.videos.fetching import GivesWay
from portal.webhooks import sending

logger = logging.getLogger(__name__)

# Longest delay of a job whose notification was missed.
FETCH_INTERVAL_S = 2
# Mean pause between two looks for a pass that an idle worker can help with.
HELP_INTERVAL_S = 1
# Two, so that one job can wait for storage while the other one cuts a frame.
SIDE_CONCURRENCY = 2
# Jobs wait for receivers; a slow receiver takes at most four slots.
WEBHOOK_CONCURRENCY = 20
# Each import holds a part of about 16 MiB in memory; an account takes at most four slots.
IMPORT_CONCURRENCY = 8
# Each webhook and import may hold a thread while a name server doesn't answer. Python's default on
# two cores is 6, for all other blocking calls, too.
THREADS = WEBHOOK_CONCURRENCY + IMPORT_CONCURRENCY + 16
FAILURE_PAUSE_S = 5.0
INTERRUPTION_PAUSE_S = 10.0
# Pauses while storage is unreachable or denied, or a disk is full: the operator may have to act.
OUTAGE_BACKOFF = Backoff(first_s=10.0, cap_s=120.0)


class Retries(BaseRetryStrategy):
    """Retry of every job: at once if the worker ends, after a pause if the job failed.

    There is no limit here: attempts and tries are counted when they begin.
    """

    def __init__(self, *, failure_pause_s: float = FAILURE_PAUSE_S) -> None:
        self._failure_pause_s = failure_pause_s

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        """Return the pause before the next try, and its priority (called by procrastinate)."""
        if isinstance(exception, GivesWay):
            return RetryDecision(priority=enqueue.slow_import_priority(job.priority))
        pause_s = round(self._pause_s(exception, failures=job.attempts + 1))
        if pause_s > FAILURE_PAUSE_S:
            logger.warning(
                "Job waits for %s s: %s",
                pause_s,
                error_words(exception),
                extra={"action": "job_waits", "job_id": job.id, "task": job.task_name},
            )
        return RetryDecision(retry_in={"seconds": pause_s})

    def _pause_s(self, exception: BaseException, *, failures: int) -> float:
        match exception:
            case asyncio.CancelledError() | Preempted():
                return 0.0
            case removal.Unsettled():
                return removal.SETTLE_S
            case HeldByAnother():
                return LEASE_S
            # Interruptions are counted, and storage answers.
            case SourceInterrupted():
                return INTERRUPTION_PAUSE_S
            case StorageUnavailable() | DiskFull():
                return OUTAGE_BACKOFF.pause_s(failures)
            case _ if is_out_of_memory(exception):
                return OUTAGE_BACKOFF.pause_s(failures)
            case _ if is_outage(exception):
                return INTERRUPTION_PAUSE_S
        return self._failure_pause_s


# CPU time of this cgroup in each period (cgroup v2).
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
# Pause after a failure of the janitor, which takes long and isn't urgent.
JANITOR_PAUSE_S = 60

tasks = Blueprint()
# Trace context of the request that queued a job, by `telemetry.tracing.current_trace_context`.
Cause = Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Values that all jobs of this process share; `encoding` has the ids of running encodes.

    `busy` is set while there are any.
    """

    config: Config
    tools: Tools
    encoding: set[int | None] = field(default_factory=set)
    busy: asyncio.Event = field(default_factory=asyncio.Event)


@tasks.task(name="transcode", queue=enqueue.PREPARE_QUEUE, pass_context=True, retry=Retries())
async def transcode_video(context: JobContext, version_id: str, cause: Cause = None) -> None:
    """Probe a file, then make its version failed, or playable by copying, or queue its encode."""
    with _work_on(context, cause, version_id=version_id) as tools:
        await first_pass.publish_version(UUID(version_id), tools, may_encode=False)


@tasks.task(name="encode", queue=enqueue.TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def encode_video(context: JobContext, version_id: str, cause: Cause = None) -> None:
    """Make a version playable by encoding, or failed."""
    with _work_on(context, cause, version_id=version_id) as tools:
        await first_pass.publish_version(UUID(version_id), tools, may_encode=True)


@tasks.task(name="complete", queue=enqueue.TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def complete_video(context: JobContext, version_id: str, cause: Cause = None) -> None:
    """Make the next missing renditions of a playable version, in one pass."""
    with _work_on(context, cause, version_id=version_id) as tools:
        await later_passes.complete_ladder(UUID(version_id), tools)


@tasks.task(name="share", queue=enqueue.TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def make_parts(context: JobContext, version_id: str, cause: Cause = None) -> None:
    """Make parts of a pass that another worker carries out."""
    with _work_on(context, cause, version_id=version_id) as tools:
        await encoding.help_with(UUID(version_id), tools, job_id=context.job.id or 0)


@tasks.task(name="remove", queue=enqueue.SIDE_QUEUE, pass_context=True, retry=Retries())
async def remove_files(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Remove the files of a deleted video from storage."""
    with _work_on(context, cause, video_id=video_id) as tools:
        await removal.remove_files(UUID(video_id), storage=tools.storage)


@tasks.task(name="poster", queue=enqueue.SIDE_QUEUE, pass_context=True, retry=Retries())
async def make_poster(context: JobContext, video_id: str, number: int, cause: Cause = None) -> None:
    """Make the poster that an editor requested."""
    with _work_on(context, cause, video_id=video_id) as tools:
        await posters.make_poster(
            UUID(video_id),
            number,
            storage=tools.storage,
            work_dir=tools.work_dir,
        )


@tasks.task(name="storyboard", queue=enqueue.SIDE_QUEUE, pass_context=True, retry=Retries())
async def make_storyboard(context: JobContext, version_id: str, cause: Cause = None) -> None:
    """Make a ready version's storyboard."""
    with _work_on(context, cause, version_id=version_id) as tools:
        await storyboards.make(UUID(version_id), tools)


@tasks.task(name="captions", queue=enqueue.SIDE_QUEUE, pass_context=True, retry=Retries())
async def store_captions(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Store saved captions, and name them in the master playlist."""
    with _work_on(context, cause, video_id=video_id) as tools:
        await captions.store(UUID(video_id), storage=tools.storage)


@tasks.task(name="download", queue=enqueue.DOWNLOAD_QUEUE, pass_context=True, retry=Retries())
async def make_download(
    context: JobContext, video_id: str, number: int, cause: Cause = None
) -> None:
    """Make a file for download from a video's segments."""
    with _work_on(context, cause, video_id=video_id) as tools:
        await downloads.make_file(number, storage=tools.storage, work_dir=tools.work_dir)


@tasks.task(name="transcribe", queue=enqueue.SPEECH_QUEUE, pass_context=True, retry=Retries())
async def write_captions(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Transcribe a video while no encode runs."""
    worker = _worker_of(context)
    model = worker.config.captions_model
    if model is None:
        raise LookupError("This worker has no model. Set CAPTIONS_MODEL.")
    with _work_on(context, cause, video_id=video_id) as tools:
        await transcription.make_captions(
            UUID(video_id),
            model=model,
            storage=tools.storage,
            work_dir=tools.work_dir,
            paused=worker.busy,
        )


@tasks.task(name="send_webhook", queue=enqueue.WEBHOOK_QUEUE, pass_context=True, retry=Retries())
async def send_webhook(context: JobContext, webhook_id: str, lane: int) -> None:
    """Send the due deliveries of one of a webhook's lanes."""
    config = _worker_of(context).config
    job = context.job
    with tracing.traced_job(job.task_name, None, webhook_id=webhook_id, job_id=job.id or 0):
        await sending.send(UUID(webhook_id), lane, config=config)


@tasks.task(name="import", queue=enqueue.IMPORT_QUEUE, pass_context=True, retry=Retries())
async def import_file(context: JobContext, import_id: str, cause: Cause = None) -> None:
    """Fetch a file and publish it."""
    worker = _worker_of(context)
    job = context.job
    job_id = job.id or 0
    above_priority = enqueue.slow_import_priority(job.priority)
    with tracing.traced_job(job.task_name, cause, video_id=import_id, job_id=job_id):
        await imports.run(
            UUID(import_id),
            config=worker.config,
            storage=worker.tools.storage,
            is_overtaken=partial(import_waits, job_id, above_priority),
        )


@tasks.periodic(cron=janitor.CRON)
@tasks.task(
    name="janitor",
    queue=enqueue.SIDE_QUEUE,
    # A single job may wait at a time.
    queueing_lock="portal:janitor",
    pass_context=True,
    retry=Retries(failure_pause_s=JANITOR_PAUSE_S),
)
async def tidy(context: JobContext, timestamp: int) -> None:
    """Remove unused files from storage, and old jobs from the queue."""
    worker = _worker_of(context)
    await janitor.tidy(worker.config, storage=worker.tools.storage)


def _worker_of(context: JobContext) -> Worker:
    worker: Worker = context.additional_context["worker"]
    return worker


@contextmanager
def _work_on(context: JobContext, cause: Cause, **ids: str) -> Iterator[Tools]:
    """Trace a job of a video or a version, and count it among the encodes if it is one."""
    worker = _worker_of(context)
    job = context.job
    with tracing.traced_job(job.task_name, cause, **ids, job_id=job.id or 0):
        worker.tools.work_dir.mkdir(parents=True, exist_ok=True)
        if job.queue == enqueue.TRANSCODE_QUEUE:
            worker.encoding.add(job.id)
            worker.busy.set()
        try:
            yield worker.tools
        finally:
            worker.encoding.discard(job.id)
            if not worker.encoding:
                worker.busy.clear()


async def work(config: Config) -> None:
    """Run a worker process."""
    configure_logging(config)
    tracing.start("worker")
    bound_cores(config.worker_cores)
    try:
        async with open_database(config), open_storage(config) as storage:
            # Without this query, the queue would wait silently for an unreachable database.
            await server_time()
            await _run(config, storage)
    finally:
        await tracing.flush()


async def _run(config: Config, storage: Storage) -> None:
    """Run jobs until SIGTERM or SIGINT; running jobs are then queued again at once."""
    connector = WorkerConnector(config.database_url)
    tools = _tools(config, storage)
    queue = queue_app(connector)
    queue.add_tasks_from(tasks, namespace="portal")
    remove_leftovers(config.work_dir)
    open_threads()
    worker = Worker(config=config, tools=tools)
    ending = asyncio.Event()
    with on_stop(ending.set):
        async with queue.open_async(), asyncio.TaskGroup() as group:
            logger.info("Worker begins", extra={"action": "worker_begins", "worker": tools.worker})
            slots = {
                enqueue.PREPARE_QUEUE: config.worker_prepare_concurrency,
                enqueue.TRANSCODE_QUEUE: config.worker_concurrency,
                enqueue.SIDE_QUEUE: SIDE_CONCURRENCY,
                enqueue.WEBHOOK_QUEUE: WEBHOOK_CONCURRENCY,
                enqueue.IMPORT_QUEUE: IMPORT_CONCURRENCY,
                # Each file takes twice its size of the work folder.
                enqueue.DOWNLOAD_QUEUE: 1,
            }
            if config.captions_model:
                slots[enqueue.SPEECH_QUEUE] = 1
            running = [
                *(group.create_task(_serve(queue, name, slots[name], worker)) for name in slots),
                group.create_task(recover_forever(ending)),
                group.create_task(_help_forever(worker, ending)),
                group.create_task(fold_forever(ending)),
                group.create_task(ending.wait()),
            ]
            try:
                # A task that ends, ends the others, too.
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            finally:
                connector.is_ending = True
                ending.set()
            for task in running:
                task.cancel()


def bound_cores(count: int, cpu_max: Path = CPU_MAX) -> None:
    """Restrict this process and its children to `count` cores; 0 takes the limit of its cgroup.

    ffmpeg starts as many threads as it has cores.
    """
    present = sorted(os.sched_getaffinity(0))
    if not count:
        # The file may be missing, or have "max" for no limit.
        with suppress(OSError, ValueError):
            quota_us, period_us = map(int, cpu_max.read_text().split())
            count = math.ceil(quota_us / period_us)
    if 0 < count < len(present):
        os.sched_setaffinity(0, random.sample(present, count))


def open_threads() -> None:
    """Give the running event loop enough threads, even if name servers don't answer."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))


def remove_leftovers(work_dir: Path) -> None:
    """Remove files of killed workers of this machine from the work folder.

    It is called before a worker begins, so a folder with its own process id is another's: in a
    container, each worker gets the process id of the previous one.
    """
    for folder in work_dir.glob("worker-*"):
        process_id = folder.name.removeprefix("worker-")
        if process_id == str(os.getpid()) or not Path(f"/proc/{process_id}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _tools(config: Config, storage: Storage) -> Tools:
    return Tools(
        worker=f"{socket.gethostname()}:{os.getpid()}",
        storage=storage,
        limits=SourceLimits(
            max_pixels=config.max_source_pixels,
            max_duration_s=config.max_source_duration_s,
            max_size_bytes=config.max_source_bytes,
            max_transcode_s=config.max_transcode_s,
        ),
        work_dir=config.work_dir / f"worker-{os.getpid()}",
    )


async def _help_forever(worker: Worker, ending: asyncio.Event) -> None:
    """Offer help with another worker's pass while a slot for encodes is free and no job waits."""
    while not ending.is_set():
        # Random pauses keep workers from looking all at once.
        await asyncio.sleep(random.uniform(0.5, 1.5) * HELP_INTERVAL_S)  # noqa: S311
        # Sharing is optional: skip it while the database is away.
        with skipped_in_outage():
            if len(worker.encoding) < worker.config.worker_concurrency:
                await parts.offer_help()


async def _serve(queue: Queue, queue_name: str, concurrency: int, worker: Worker) -> None:
    """Run the jobs of one queue; each has its own slots, so that only encodes wait for encodes."""
    await queue.run_worker_async(
        queues=[queue_name],
        name=worker.tools.worker,
        concurrency=concurrency,
        fetch_job_polling_interval=FETCH_INTERVAL_S,
        additional_context={"worker": worker},
        shutdown_graceful_timeout=0,
        delete_jobs="never",
        install_signal_handlers=False,
    )
