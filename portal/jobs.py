"""The worker: procrastinate's tasks, when they are retried, and recovery of abandoned work.

A task gets an id, re-reads the state, and skips what is done, so it may run any number of times.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
from procrastinate import BaseRetryStrategy, Blueprint, JobContext, RetryDecision
from procrastinate.exceptions import ConnectorException
from tortoise.connection import get_connection

from portal import attempts
from portal.attempts import LEASE_S, HeldByAnother, LeaseLost, OpenAttempt
from portal.database import server_time
from portal.errors import ObjectMissing, Unavailable
from portal.logs import configure_logging, log_context
from portal.models import Outcome
from portal.publishing import TRANSCODE_QUEUE, enqueue_transcode
from portal.resources import Resources, open_resources
from portal.storage import Storage, output_prefix
from portal.transcoding import Output, SourceRejected, TranscodeFailed, transcode
from portal.transcoding.process import first_error

if TYPE_CHECKING:
    from procrastinate.jobs import Job

    from portal.config import Config

logger = logging.getLogger(__name__)
tasks = Blueprint()

RECOVERY_INTERVAL_S = 5
OUTAGE_PAUSE_S = 10
FAILURE_PAUSE_S = 5
# Long enough for a slow source; ffmpeg reads it by ranges for as long as it encodes.
SOURCE_URL_TTL_S = 24 * 3600
# Failure codes of the worker's own, beside those of a refused source.
SOURCE_CHANGED = "source_changed"
TRANSCODE_FAILED = "transcode_failed"
EXHAUSTED_MESSAGE = (
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)
CHANGED_MESSAGE = "The uploaded file was changed or removed after it was sent. Upload it again."

ABANDONED = """
SELECT video.id AS video_id, video.transcode_job_id AS job_id, job.status::text AS status
FROM videos video
LEFT JOIN procrastinate_jobs job ON job.id = video.transcode_job_id
WHERE video.status = 'processing'
  AND job.status IS DISTINCT FROM 'todo'
  AND NOT EXISTS (
    SELECT 1 FROM attempts
    WHERE attempts.video_id = video.id AND outcome IS NULL AND lease_expires_at > now()
  )
  AND NOT EXISTS (
    SELECT 1 FROM procrastinate_events event
    WHERE event.job_id = job.id AND event.type = 'started'
      AND event.at > now() - make_interval(secs => %s)
  )
"""


class SourceChanged(Exception):
    """The object under the storage key is not the one the video was created from."""


class _TryAgain(BaseRetryStrategy):
    """Hands work back to the queue: at once when stopped, after a pause when something failed.

    There is no limit here; attempts are counted, and exhausted, in `attempts.begin`.
    """

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, HeldByAnother):
            return RetryDecision(retry_in={"seconds": LEASE_S})
        if _is_outage(exception):
            return RetryDecision(retry_in={"seconds": OUTAGE_PAUSE_S})
        return RetryDecision(retry_in={"seconds": FAILURE_PAUSE_S})


@tasks.task(name="transcode", queue=TRANSCODE_QUEUE, pass_context=True, retry=_TryAgain())
async def transcode_video(context: JobContext, video_id: str) -> None:
    """Turn the raw file of a video into HLS, and the video ready or failed."""
    resources: Resources = context.additional_context["resources"]
    with log_context(video_id=video_id, job_id=context.job.id):
        try:
            attempt = await attempts.begin(UUID(video_id), worker=_worker_name())
        except attempts.AttemptsExhausted:
            await attempts.fail_video(
                UUID(video_id), code=TRANSCODE_FAILED, message=EXHAUSTED_MESSAGE
            )
            return
        if attempt is not None:
            await _run(attempt, resources)


async def _run(attempt: OpenAttempt, resources: Resources) -> None:
    """Carry out an attempt, and leave it closed however it ends."""
    outcome = Outcome.FAILED
    try:
        output = await _transcode_with_lease(attempt, resources)
        await attempts.publish_output(attempt, output)
        logger.info("Video is ready", extra={"action": "video_ready"})
    except SourceRejected as exc:
        logger.info("Source refused: %s", exc.code, extra={"action": "source_rejected"})
        await attempts.reject(attempt, code=exc.code, message=exc.message)
    except SourceChanged:
        logger.info("Source changed", extra={"action": "source_changed"})
        await attempts.reject(attempt, code=SOURCE_CHANGED, message=CHANGED_MESSAGE)
    except TranscodeFailed as exc:
        logger.warning("%s: %s", exc, exc.detail, extra={"action": "transcode_failed"})
        raise
    except LeaseLost:
        logger.warning("Lease lost, work discarded", extra={"action": "lease_lost"})
    except (asyncio.CancelledError, Unavailable, psycopg.OperationalError):
        outcome = Outcome.HANDED_BACK
        raise
    finally:
        await attempts.release(attempt, outcome)


async def _transcode_with_lease(attempt: OpenAttempt, resources: Resources) -> Output:
    heartbeat = attempts.Heartbeat(attempt)
    try:
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(heartbeat.beat_forever())
            output = await _transcode(attempt, resources, heartbeat)
            beating.cancel()
    except BaseExceptionGroup as failures:
        raise first_error(failures) from None
    return output


async def _transcode(
    attempt: OpenAttempt, resources: Resources, heartbeat: attempts.Heartbeat
) -> Output:
    video, storage = attempt.video, resources.storage
    await _check_source(attempt, storage)
    source_url = await storage.presign_internal_get(video.storage_key, ttl_s=SOURCE_URL_TTL_S)
    sink = StorageSink(storage, output_prefix(video.id, attempt.number))
    with TemporaryDirectory(dir=_own_work_dir(resources.config.work_dir)) as folder:
        try:
            return await transcode(
                source_url, sink=sink, work_dir=Path(folder), on_progress=heartbeat.report
            )
        except TranscodeFailed:
            # An outage of storage looks like a bad source to ffmpeg; it must not count as one.
            await _check_source(attempt, storage)
            raise


async def _check_source(attempt: OpenAttempt, storage: Storage) -> None:
    """Make sure that the object is still the one that was published."""
    try:
        source = await storage.head(attempt.video.storage_key)
    except ObjectMissing:
        raise SourceChanged from None
    if source.etag != attempt.video.source_etag:
        raise SourceChanged


@dataclass(frozen=True, slots=True)
class StorageSink:
    """Where the transcoder puts its output: a folder of the bucket."""

    storage: Storage
    prefix: str

    async def put(self, name: str, data: bytes | Path, content_type: str) -> None:
        """Write one output file under its name relative to the attempt."""
        await self.storage.put(self.prefix + name, data, content_type=content_type)


async def work(config: Config) -> None:
    """Be a worker, as a process of its own."""
    configure_logging(config)
    async with open_resources(config) as resources:
        # The queue would wait for a database that is away without a word.
        await server_time()
        await run_worker(resources)


async def run_worker(resources: Resources) -> None:
    """Work off the queue until SIGTERM or SIGINT; running jobs are then handed back at once."""
    resources.queue.add_tasks_from(tasks, namespace="portal")
    _remove_leftovers(resources.config.work_dir)
    async with resources.queue.open_async(), asyncio.TaskGroup() as group:
        recovery = group.create_task(_recover_forever(resources))
        await resources.queue.run_worker_async(
            queues=[TRANSCODE_QUEUE],
            name=_worker_name(),
            concurrency=resources.config.worker_concurrency,
            additional_context={"resources": resources},
            shutdown_graceful_timeout=0,
            delete_jobs="never",
        )
        recovery.cancel()


async def _recover_forever(resources: Resources) -> None:
    while True:
        try:
            await recover_abandoned(resources)
        except (psycopg.Error, ConnectorException):
            logger.warning("Recovery failed", exc_info=True, extra={"action": "recovery_failed"})
        await asyncio.sleep(RECOVERY_INTERVAL_S)


async def recover_abandoned(resources: Resources) -> int:
    """Queue again what a dead worker left behind; returns how many videos that were.

    Runs in every worker; a video that two of them see at once is queued once.
    """
    rows = await get_connection("default").execute_query_dict(ABANDONED, [LEASE_S])
    for row in rows:
        logger.warning(
            "Abandoned video is queued again",
            extra={"action": "recover", "video_id": str(row["video_id"]), "job_id": row["job_id"]},
        )
        if row["status"] in ("doing", "failed"):
            await resources.queue.job_manager.retry_job_by_id_async(
                job_id=row["job_id"], retry_at=datetime.now(UTC)
            )
        else:
            await enqueue_transcode(row["video_id"], row["job_id"], queue=resources.queue)
    return len(rows)


def _is_outage(exception: BaseException) -> bool:
    return isinstance(exception, Unavailable | psycopg.OperationalError)


def _worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _own_work_dir(work_dir: Path) -> Path:
    own = work_dir / f"worker-{os.getpid()}"
    own.mkdir(parents=True, exist_ok=True)
    return own


def _remove_leftovers(work_dir: Path) -> None:
    """Remove what killed workers of this machine left in the work folder."""
    for folder in work_dir.glob("worker-*"):
        if not Path(f"/proc/{folder.name.removeprefix('worker-')}").exists():
            shutil.rmtree(folder, ignore_errors=True)
