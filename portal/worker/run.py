"""The worker's process: what it opens, the queues it works off, its tasks, and how it ends.

A task calls one function. Its name is stored with the jobs. It gets an id, re-reads the state, and
skips what is done, so it may run any number of times.
"""

import asyncio
import logging
import math
import os
import random
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
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
from portal.processing import helping, passes, removal, runs
from portal.processing.attempts import LEASE_S, HeldByAnother
from portal.processing.encoding import Preempted, Tools
from portal.processing.sources import SourceInterrupted
from portal.queue import enqueue
from portal.queue.app import WorkerConnector, queue_app
from portal.queue.rows import import_waits
from portal.retry import Backoff
from portal.storage.bucket import Storage, open_storage
from portal.telemetry import tracing
from portal.telemetry.logs import configure_logging
from portal.text import error_words
from portal.transcoding.errors import DiskFull
from portal.transcoding.probing.probe import SourceLimits
from portal.videos import captions, imports, posters, transcription
from portal.videos.fetching import GivesWay
from portal.webhooks import sending

logger = logging.getLogger(__name__)

# Should the news of a new job be missed, it is found within this time.
FETCH_INTERVAL_S = 2
# One waits for storage while the other cuts a frame.
SIDE_CONCURRENCY = 2
# They wait for receivers, of which a slow one has four at most.
WEBHOOK_CONCURRENCY = 20
# Each holds a part in memory, of 16 MiB or little more; an account has four at most.
IMPORT_CONCURRENCY = 8
# Each webhook and import may hold one for as long as a name server doesn't answer. Python's own
# number is 6 on two cores, for everything else that may not block the event loop as well.
THREADS = WEBHOOK_CONCURRENCY + IMPORT_CONCURRENCY + 16
FAILURE_PAUSE_S = 5.0
INTERRUPTION_PAUSE_S = 10.0
# Storage that is away or denied, a disk that is full: someone may have to see to it.
OUTAGE_BACKOFF = Backoff(first_s=10.0, cap_s=120.0)


class Retries(BaseRetryStrategy):
    """Queues work again: at once when the worker is stopped, after a pause when something failed.

    There is no limit here; attempts and tries are counted, and exhausted, when one begins.
    """

    def __init__(self, *, failure_pause_s: float = FAILURE_PAUSE_S) -> None:
        self._failure_pause_s = failure_pause_s

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        """Return when to try again, and with which priority; procrastinate asks for it."""
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
            # Its tries are counted, and storage answers.
            case SourceInterrupted():
                return INTERRUPTION_PAUSE_S
            case StorageUnavailable() | DiskFull():
                return OUTAGE_BACKOFF.pause_s(failures)
            case _ if is_outage(exception):
                return INTERRUPTION_PAUSE_S
        return self._failure_pause_s


# What a cgroup gives of each period (cgroup v2).
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
tasks = Blueprint()

# As `telemetry.tracing.current_trace_context` gives it.
Cause = Mapping[str, str] | None

# A round of the janitor is long, and nobody waits for it.
JANITOR_PAUSE_S = 60


@tasks.task(name="transcode", queue=enqueue.PREPARE_QUEUE, pass_context=True, retry=Retries())
async def transcode_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Look into a video's file: make it failed, or playable, or queue its encode."""
    with _work_on(context, video_id, cause) as tools:
        await passes.make_playable(UUID(video_id), tools, may_encode=False)


@tasks.task(name="encode", queue=enqueue.TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def encode_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make a video playable by encoding, or failed."""
    with _work_on(context, video_id, cause) as tools:
        await passes.make_playable(UUID(video_id), tools, may_encode=True)


@tasks.task(name="complete", queue=enqueue.TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def complete_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make what is missing of a playable video's ladder, in one pass."""
    with _work_on(context, video_id, cause) as tools:
        await passes.complete_ladder(UUID(video_id), tools)


@tasks.task(name="share", queue=enqueue.TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def make_run(context: JobContext, video_id: str, run_id: int, cause: Cause = None) -> None:
    """Make a part of a film that another worker encodes."""
    with _work_on(context, video_id, cause) as tools:
        await helping.make_run_of(run_id, tools, job_id=context.job.id or 0)


@tasks.task(name="remove", queue=enqueue.SIDE_QUEUE, pass_context=True, retry=Retries())
async def remove_files(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Remove what storage holds of a deleted video."""
    with _work_on(context, video_id, cause) as tools:
        await removal.remove_files(UUID(video_id), storage=tools.storage)


@tasks.task(name="poster", queue=enqueue.SIDE_QUEUE, pass_context=True, retry=Retries())
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


@tasks.task(name="captions", queue=enqueue.SIDE_QUEUE, pass_context=True, retry=Retries())
async def store_captions(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Store captions that were saved, and name them in the master playlist."""
    with _work_on(context, video_id, cause) as tools:
        await captions.store(UUID(video_id), storage=tools.storage, queue=tools.queue)


@tasks.task(name="transcribe", queue=enqueue.SPEECH_QUEUE, pass_context=True, retry=Retries())
async def write_captions(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Write down what is said in a video, while there are no passes to make."""
    config, busy = context.additional_context["config"], context.additional_context["busy"]
    with _work_on(context, video_id, cause) as tools:
        await transcription.make_captions(
            UUID(video_id),
            model=config.captions_model,
            storage=tools.storage,
            queue=tools.queue,
            work_dir=tools.work_dir,
            paused=busy,
        )


@tasks.task(name="send_webhook", queue=enqueue.WEBHOOK_QUEUE, pass_context=True, retry=Retries())
async def send_webhook(context: JobContext, webhook_id: str, lane: int) -> None:
    """Send a webhook what is due in one of its lanes."""
    config, job = context.additional_context["config"], context.job
    with tracing.traced_job(job.task_name, None, webhook_id=webhook_id, job_id=job.id or 0):
        await sending.send(UUID(webhook_id), lane, config=config)


@tasks.task(name="import", queue=enqueue.IMPORT_QUEUE, pass_context=True, retry=Retries())
async def import_file(context: JobContext, import_id: str, cause: Cause = None) -> None:
    """Fetch a file and publish it."""
    config, tools = context.additional_context["config"], context.additional_context["tools"]
    job = context.job
    job_id = job.id or 0
    above_priority = enqueue.slow_import_priority(job.priority)
    with tracing.traced_job(job.task_name, cause, video_id=import_id, job_id=job_id):
        await imports.run(
            UUID(import_id),
            config=config,
            storage=tools.storage,
            queue=tools.queue,
            is_overtaken=partial(import_waits, job_id, above_priority),
        )


@tasks.periodic(cron=janitor.CRON)
@tasks.task(
    name="janitor",
    queue=enqueue.SIDE_QUEUE,
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
    encoding: set[int | None] = context.additional_context["encoding"]
    busy: asyncio.Event = context.additional_context["busy"]
    with tracing.traced_job(job.task_name, cause, video_id=video_id, job_id=job.id or 0):
        tools.work_dir.mkdir(parents=True, exist_ok=True)
        if job.queue == enqueue.TRANSCODE_QUEUE:
            encoding.add(job.id)
            busy.set()
        try:
            yield tools
        finally:
            encoding.discard(job.id)
            if not encoding:
                busy.clear()


async def work(config: Config) -> None:
    """Be a worker, as a process of its own."""
    configure_logging(config)
    tracing.start("worker")
    bound_cores(config.worker_cores)
    try:
        async with open_database(config), open_storage(config) as storage:
            # The queue would wait for a database that is away without a word.
            await server_time()
            await _run(config, storage)
    finally:
        await tracing.flush()


async def _run(config: Config, storage: Storage) -> None:
    """Work off the queues until SIGTERM or SIGINT; running jobs are then queued again at once."""
    connector = WorkerConnector(config.database_url)
    tools = _tools(config, storage, connector)
    queue = tools.queue
    queue.add_tasks_from(tasks, namespace="portal")
    remove_leftovers(config.work_dir)
    open_threads()
    ending, encoding = asyncio.Event(), set[int | None]()
    shared = {"config": config, "tools": tools, "encoding": encoding, "busy": asyncio.Event()}
    with on_stop(ending.set):
        async with queue.open_async(), asyncio.TaskGroup() as group:
            logger.info("Worker begins", extra={"action": "worker_begins", "worker": tools.worker})
            slots = {
                enqueue.PREPARE_QUEUE: config.worker_prepare_concurrency,
                enqueue.TRANSCODE_QUEUE: config.worker_concurrency,
                enqueue.SIDE_QUEUE: SIDE_CONCURRENCY,
                enqueue.WEBHOOK_QUEUE: WEBHOOK_CONCURRENCY,
                enqueue.IMPORT_QUEUE: IMPORT_CONCURRENCY,
            }
            if config.captions_model:
                slots[enqueue.SPEECH_QUEUE] = 1
            running = [
                *(group.create_task(_serve(it, tools, slots[it], shared)) for it in slots),
                group.create_task(recover_forever(queue, ending)),
                group.create_task(_help_forever(config, tools, encoding, ending)),
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


def bound_cores(wanted: int, cpu_max: Path = CPU_MAX) -> None:
    """Keep this process, and what it will start, to so many cores; 0: to those of its cgroup.

    ffmpeg begins its threads by the cores it may run on.
    """
    present = sorted(os.sched_getaffinity(0))
    if not wanted:
        # Of no cgroup, or of one without a limit ("max").
        with suppress(OSError, ValueError):
            quota_us, period_us = map(int, cpu_max.read_text().split())
            wanted = math.ceil(quota_us / period_us)
    if 0 < wanted < len(present):
        os.sched_setaffinity(0, random.sample(present, wanted))


def open_threads() -> None:
    """Give the running event loop enough threads for name servers that don't answer."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))


def remove_leftovers(work_dir: Path) -> None:
    """Remove what killed workers of this machine left in the work folder.

    Called before a worker begins: what bears its own process id is another's. In a container
    each one gets the id of the one before it.
    """
    for folder in work_dir.glob("worker-*"):
        process_id = folder.name.removeprefix("worker-")
        if process_id == str(os.getpid()) or not Path(f"/proc/{process_id}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _tools(config: Config, storage: Storage, connector: WorkerConnector) -> Tools:
    return Tools(
        worker=f"{socket.gethostname()}:{os.getpid()}",
        storage=storage,
        queue=queue_app(connector),
        limits=SourceLimits(
            max_pixels=config.max_source_pixels,
            max_duration_s=config.max_source_duration_s,
            max_size_bytes=config.max_source_bytes,
            max_transcode_s=config.max_transcode_s,
        ),
        work_dir=config.work_dir / f"worker-{os.getpid()}",
    )


async def _help_forever(
    config: Config, tools: Tools, encoding: Collection[object], ending: asyncio.Event
) -> None:
    """Take work from who has the most of it, while a slot for encodes is free and none waits."""
    while not ending.is_set():
        # Not all at once.
        await asyncio.sleep(random.uniform(0.5, 1.5) * FETCH_INTERVAL_S)  # noqa: S311
        # Sharing is optional: skip it while the database is away.
        with skipped_in_outage():
            if len(encoding) < config.worker_concurrency:
                await runs.split(queue=tools.queue)


async def _serve(
    queue_name: str, tools: Tools, concurrency: int, shared: dict[str, object]
) -> None:
    """Work off one queue; each has slots of its own, so that only encodes wait for encodes.

    Jobs of encodes are in `encoding` of what all share while they run, and `busy` is set.
    """
    await tools.queue.run_worker_async(
        queues=[queue_name],
        name=tools.worker,
        concurrency=concurrency,
        fetch_job_polling_interval=FETCH_INTERVAL_S,
        additional_context=shared,
        shutdown_graceful_timeout=0,
        delete_jobs="never",
        install_signal_handlers=False,
    )
