"""When a job that did not end well is tried again."""

import asyncio
import logging

import psycopg
from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.jobs import Job

from portal.errors import StorageUnavailable, Unavailable
from portal.processing.attempts import LEASE_S, HeldByAnother
from portal.processing.encoding import Preempted
from portal.processing.removal import SETTLE_S, Unsettled
from portal.processing.sources import SourceInterrupted
from portal.retry import Backoff
from portal.text import error_words
from portal.transcoding.errors import DiskFull

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
