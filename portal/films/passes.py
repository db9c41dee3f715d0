"""A pass of a worker over a source, under a lease: its source, and its end.

Each attempt writes into its own folder, except for the master playlist, which has one address from
the first pass on and is written again after each later pass.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from portal.database.models import Outcome
from portal.database.outages import is_temporary
from portal.errors import DatabaseUnavailable, Unavailable
from portal.films import attempts
from portal.films.attempts import Failure, LeaseLost, OpenAttempt
from portal.films.encoding import Preempted
from portal.films.removal import remove_again
from portal.films.sources import Source, SourceInterrupted, probed_source
from portal.queue.tools import Tools
from portal.queue.tries import is_interruption, is_out_of_memory
from portal.text import error_words
from portal.transcoding import errors

logger = logging.getLogger(__name__)


@asynccontextmanager
async def closed_afterwards(attempt: OpenAttempt, tools: Tools) -> AsyncIterator[None]:
    """Close the attempt after the block, however it ends; a lost lease is only logged.

    If the video was deleted in the meantime, its new files are removed.
    """
    outcome = Outcome.FAILED
    failure = None
    logger.info("Pass begun", extra={"action": "pass_begun", "attempt": attempt.number})
    try:
        yield
    except LeaseLost:
        # If only the lease of a part was lost, the attempt is still open.
        outcome = Outcome.HANDED_BACK
        logger.warning("Lease lost, work discarded", extra={"action": "lease_lost"})
    except Preempted:
        outcome = Outcome.HANDED_BACK
        logger.info("Pass is preempted", extra={"action": "preempted", "attempt": attempt.number})
        raise
    except BaseException as exc:
        if is_interruption(exc):
            outcome = Outcome.HANDED_BACK
            failure = _interruption_reason(exc)
            reason = failure.detail if failure else "the job is cancelled or the worker ends"
            logger.warning("Pass released: %s", reason, extra={"action": "handed_back"})
        elif isinstance(exc, errors.TranscodeFailed):
            logger.warning("%s: %s", exc, exc.detail, extra={"action": "transcode_failed"})
            failure = Failure(exc.code, exc.detail)
        else:
            failure = Failure("internal_error", type(exc).__name__)
        raise
    finally:
        if not await attempts.release(attempt, outcome, failure):
            storage_key = attempt.version.storage_key
            await remove_again(attempt.video_id, storage_key)


def _interruption_reason(exc: BaseException) -> Failure | None:
    """Return the reason of an interruption, for the operator.

    None if the worker ends or the job is cancelled.
    """
    cause = errors.without_signatures(error_words(exc.__cause__ or exc))
    if isinstance(exc, SourceInterrupted):
        return Failure(errors.FailCode.SOURCE_UNREACHABLE, cause)
    if isinstance(exc, errors.DiskFull):
        return Failure("disk_full", str(exc))
    if is_out_of_memory(exc):
        return Failure(errors.FailCode.OUT_OF_MEMORY, f"this machine lacks memory: {cause}")
    if isinstance(exc, Unavailable):
        return Failure(exc.code, cause)
    if is_temporary(exc):
        return Failure(DatabaseUnavailable.code, cause)
    return None


def source_of(attempt: OpenAttempt, tools: Tools) -> AbstractAsyncContextManager[Source]:
    """Return the context of an attempt's checked source, as `probed_source`."""
    return probed_source(
        attempt.version, tools.storage, tools.limits, interruptions=attempt.interruptions
    )
