"""The worker's process: what it opens, the queues it works off, and how it ends."""

import asyncio
import logging
import os
import shutil
import socket
from pathlib import Path

from procrastinate.signals import on_stop

from portal.config import Config
from portal.database.connection import open_database, server_time
from portal.maintenance.recovery import recover_forever
from portal.processing.encoding import Tools
from portal.queue.app import WorkerConnector, queue_app
from portal.queue.enqueue import (
    IMPORT_QUEUE,
    PREPARE_QUEUE,
    SIDE_QUEUE,
    TRANSCODE_QUEUE,
    WEBHOOK_QUEUE,
)
from portal.storage.bucket import Storage, open_storage
from portal.telemetry import tracing
from portal.telemetry.logs import configure_logging
from portal.transcoding.probing.probe import SourceLimits
from portal.worker.tasks import tasks

logger = logging.getLogger(__name__)

# Should the news of a new job be missed, it is found within this time.
FETCH_INTERVAL_S = 2
# One waits for storage while the other cuts a frame.
SIDE_CONCURRENCY = 2
# They wait for receivers, of which a slow one has four at most.
WEBHOOK_CONCURRENCY = 20
# Each holds a part in memory, of 16 MiB or little more; an account has four at most.
IMPORT_CONCURRENCY = 8
# One that waited for another to the same receiver is found within this time.
WEBHOOK_FETCH_INTERVAL_S = 0.5


async def work(config: Config) -> None:
    """Be a worker, as a process of its own."""
    configure_logging(config)
    tracing.start("worker")
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
            }
            running = [
                *(group.create_task(_serve(it, config, tools, slots[it])) for it in slots),
                group.create_task(recover_forever(queue, ending)),
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


async def _serve(queue_name: str, config: Config, tools: Tools, concurrency: int) -> None:
    """Work off one queue; each has slots of its own, so that only encodes wait for encodes."""
    await tools.queue.run_worker_async(
        queues=[queue_name],
        name=tools.worker,
        concurrency=concurrency,
        fetch_job_polling_interval=(
            WEBHOOK_FETCH_INTERVAL_S if queue_name == WEBHOOK_QUEUE else FETCH_INTERVAL_S
        ),
        additional_context={"config": config, "tools": tools},
        shutdown_graceful_timeout=0,
        delete_jobs="never",
        install_signal_handlers=False,
    )
