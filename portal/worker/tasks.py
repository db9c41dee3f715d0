"""The queue's tasks: each calls one function; and when one is tried again.

Their names are stored with the jobs.

A task gets an id, re-reads the state, and skips what is done, so it may run any number of times.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID

import psycopg
from procrastinate import BaseRetryStrategy, Blueprint, JobContext, RetryDecision
from procrastinate.jobs import Job

from portal.errors import StorageUnavailable, Unavailable
from portal.maintenance import janitor
from portal.processing import passes, removal
from portal.processing.attempts import LEASE_S, HeldByAnother
from portal.processing.encoding import Preempted, Tools
from portal.processing.removal import SETTLE_S, Unsettled
from portal.processing.sources import SourceInterrupted
from portal.queue.enqueue import (
    IMPORT_QUEUE,
    PREPARE_QUEUE,
    SIDE_QUEUE,
    TRANSCODE_QUEUE,
    WEBHOOK_QUEUE,
)
from portal.retry import Backoff
from portal.telemetry.tracing import traced_job
from portal.text import error_words
from portal.transcoding.errors import DiskFull
from portal.videos import imports, posters
from portal.webhooks import sending

logger = logging.getLogger(__name__)

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
        """When to try again; procrastinate asks for it."""
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
            case Unsettled():
                return SETTLE_S
            case HeldByAnother():
                return LEASE_S
            # Its tries are counted, and storage answers.
            case SourceInterrupted():
                return INTERRUPTION_PAUSE_S
            case StorageUnavailable() | DiskFull():
                return OUTAGE_BACKOFF.pause_s(failures)
            case Unavailable() | psycopg.OperationalError():
                return INTERRUPTION_PAUSE_S
        return self._failure_pause_s


tasks = Blueprint()

# As `telemetry.tracing.current_trace_context` gives it.
Cause = Mapping[str, str] | None

# A round of the janitor is long, and nobody waits for it.
JANITOR_PAUSE_S = 60


@tasks.task(name="transcode", queue=PREPARE_QUEUE, pass_context=True, retry=Retries())
async def transcode_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Look into a video's file: make it failed, or playable, or queue its encode.

    Version 0.4.0 put this job into the queue of encodes; from there it is carried out, too.
    """
    with _work_on(context, video_id, cause) as tools:
        await passes.make_playable(UUID(video_id), tools, may_encode=False)


@tasks.task(name="encode", queue=TRANSCODE_QUEUE, pass_context=True, retry=Retries())
async def encode_video(context: JobContext, video_id: str, cause: Cause = None) -> None:
    """Make a video playable by encoding, or failed."""
    with _work_on(context, video_id, cause) as tools:
        await passes.make_playable(UUID(video_id), tools, may_encode=True)


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


@tasks.task(name="send_webhook", queue=WEBHOOK_QUEUE, pass_context=True, retry=Retries())
async def send_webhook(context: JobContext, delivery_id: int) -> None:
    """Send an event to a webhook, if that is due."""
    job = context.job
    with traced_job(job.task_name, None, delivery_id=delivery_id, job_id=job.id or 0):
        await sending.send(delivery_id, config=context.additional_context["config"])


@tasks.task(name="import", queue=IMPORT_QUEUE, pass_context=True, retry=Retries())
async def import_file(context: JobContext, import_id: str, cause: Cause = None) -> None:
    """Fetch a file and publish it."""
    config, tools = context.additional_context["config"], context.additional_context["tools"]
    job = context.job
    with traced_job(job.task_name, cause, video_id=import_id, job_id=job.id or 0):
        await imports.run(UUID(import_id), config=config, storage=tools.storage, queue=tools.queue)


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
