"""Worker process: its clients, its queues, its tasks, and its end."""

import asyncio
import logging
import math
import os
import random
import shutil
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from portal.features import FEATURES
from portal.films import parts
from portal.films.sources import SourceInterrupted
from portal.maintenance import janitor
from portal.maintenance.recovery import recover_forever
from portal.queue.app import Queue, WorkerConnector, queue_app
from portal.queue.jobs import (
    DOWNLOAD_QUEUE,
    IMPORT_QUEUE,
    MINUTE_QUEUE,
    PREPARE_QUEUE,
    SIDE_QUEUE,
    SPEECH_QUEUE,
    TRANSCODE_QUEUE,
    WEBHOOK_QUEUE,
    RunAgain,
)
from portal.queue.tools import Tools
from portal.queue.tries import is_out_of_memory
from portal.retry import Backoff
from portal.storage.bucket import Storage, open_storage
from portal.telemetry import tracing
from portal.telemetry.logs import configure_logging
from portal.text import error_words
from portal.transcoding.errors import DiskFull
from portal.videos.feature import Run

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
        pause_s = round(self._pause_s(exception, failures=job.attempts + 1))
        if pause_s > FAILURE_PAUSE_S:
            logger.warning(
                "Job waits for %s s: %s",
                pause_s,
                error_words(exception),
                extra={"action": "job_waits", "job_id": job.id, "task": job.task_name},
            )
        priority = None
        if isinstance(exception, RunAgain):
            priority = exception.next_priority(job.priority)
        return RetryDecision(retry_in={"seconds": pause_s}, priority=priority)

    def _pause_s(self, exception: BaseException, *, failures: int) -> float:
        match exception:
            case asyncio.CancelledError():
                return 0.0
            case RunAgain():
                return exception.pause_s
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

# Trace context of the request that queued a job, by `telemetry.tracing.current_trace_context`.
Cause = Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Values that all jobs of this process share; `encoding` has the ids of running encodes."""

    tools: Tools
    encoding: set[int] = field(default_factory=set)


def worker_tasks() -> Blueprint:
    """Return the tasks of all kinds of jobs, and the periodic ones."""
    tasks = Blueprint()
    for feature in FEATURES:
        for job, run in feature.jobs:
            task = tasks.task(name=job.name, queue=job.queue, pass_context=True, retry=Retries())
            task(partial(_run_job, run))
    janitor_task = tasks.task(
        name="janitor",
        queue=SIDE_QUEUE,
        # A single job may wait at a time.
        queueing_lock="portal:janitor",
        pass_context=True,
        retry=Retries(failure_pause_s=JANITOR_PAUSE_S),
    )
    tasks.periodic(cron=janitor.CRON)(janitor_task(_tidy))
    # Without another try, because the next minute is one.
    minute_task = tasks.task(
        name="each_minute", queue=MINUTE_QUEUE, queueing_lock="portal:each_minute"
    )
    tasks.periodic(cron="* * * * *")(minute_task(_run_each_minute))
    return tasks


async def _run_job(
    run: Run, context: JobContext, cause: Cause = None, **arguments: str | int
) -> None:
    """Run a job with its arguments, and trace it."""
    worker: Worker = context.additional_context["worker"]
    job = context.job
    job_id = job.id or 0
    ids = {name: str(value) for name, value in arguments.items() if name.endswith("_id")}
    values = {**arguments, **{name: UUID(value) for name, value in ids.items()}}
    with tracing.traced_job(job.task_name, cause, **ids, job_id=job_id):
        worker.tools.work_dir.mkdir(parents=True, exist_ok=True)
        if job.queue == TRANSCODE_QUEUE:
            worker.encoding.add(job_id)
            worker.tools.busy.set()
        try:
            tools = replace(worker.tools, job_id=job_id, priority=job.priority)
            await run(tools=tools, **values)
        finally:
            worker.encoding.discard(job_id)
            if not worker.encoding:
                worker.tools.busy.clear()


async def _tidy(context: JobContext, timestamp: int) -> None:
    """Run the janitor: remove unused files, and old jobs, audit lines and rows of features.

    Raises `StorageUnavailable`. procrastinate passes the `timestamp`, which isn't used.
    """
    tools: Tools = context.additional_context["worker"].tools
    await janitor.tidy(tools.config, storage=tools.storage)


async def _run_each_minute(timestamp: int) -> None:
    """Run the work that features have each minute. procrastinate passes the unused `timestamp`."""
    for feature in FEATURES:
        if feature.each_minute is not None:
            await feature.each_minute()


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
    queue.add_tasks_from(worker_tasks(), namespace="portal")
    remove_leftovers(config.work_dir)
    open_threads()
    worker = Worker(tools=tools)
    ending = asyncio.Event()
    with on_stop(ending.set):
        async with queue.open_async(), asyncio.TaskGroup() as group:
            logger.info("Worker begins", extra={"action": "worker_begins", "worker": tools.worker})
            slots = {
                PREPARE_QUEUE: config.worker_prepare_concurrency,
                TRANSCODE_QUEUE: config.worker_concurrency,
                SIDE_QUEUE: SIDE_CONCURRENCY,
                WEBHOOK_QUEUE: WEBHOOK_CONCURRENCY,
                IMPORT_QUEUE: IMPORT_CONCURRENCY,
                # Each file takes twice its size of the work folder.
                DOWNLOAD_QUEUE: 1,
                MINUTE_QUEUE: 1,
            }
            if config.captions_model:
                slots[SPEECH_QUEUE] = 1
            running = [
                *(group.create_task(_serve(queue, name, slots[name], worker)) for name in slots),
                group.create_task(recover_forever(ending)),
                group.create_task(_help_forever(worker, ending)),
                *(
                    group.create_task(feature.work_beside(ending))
                    for feature in FEATURES
                    if feature.work_beside is not None
                ),
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
        config=config,
        storage=storage,
        work_dir=config.work_dir / f"worker-{os.getpid()}",
    )


async def _help_forever(worker: Worker, ending: asyncio.Event) -> None:
    """Offer help with another worker's pass while a slot for encodes is free and no job waits."""
    while not ending.is_set():
        # Random pauses keep workers from looking all at once.
        await asyncio.sleep(random.uniform(0.5, 1.5) * HELP_INTERVAL_S)  # noqa: S311
        # Sharing is optional: skip it while the database is away.
        with skipped_in_outage():
            if len(worker.encoding) < worker.tools.config.worker_concurrency:
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
        # Jobs of minutes would soon outnumber all others.
        delete_jobs="always" if queue_name == MINUTE_QUEUE else "never",
        install_signal_handlers=False,
    )
