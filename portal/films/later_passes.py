"""Later passes, which make the other renditions of a playable version. Each pass is one job.

Rows are committed before the master playlist names their files.
"""

import logging
from functools import partial
from uuid import UUID

from portal.database.connection import retry_outage
from portal.films import attempts, renditions
from portal.films.attempts import Failure, LeaseLost, OpenAttempt
from portal.films.makers import maker_of
from portal.films.outputs import put_master
from portal.films.passes import closed_afterwards
from portal.films.progress import Reports, held
from portal.films.sources import SourceChanged
from portal.queue.tools import Tools
from portal.transcoding import errors

logger = logging.getLogger(__name__)


async def complete_ladder(version_id: UUID, tools: Tools) -> None:
    """Make the next missing renditions of a playable version, in one pass.

    Raises `HeldByAnother`, or the error that interrupted the pass; the job then has to run again.
    """
    attempt = await renditions.begin_next(version_id, worker=tools.worker)
    if attempt is not None:
        await make_missing(attempt, tools)


async def make_missing(attempt: OpenAttempt, tools: Tools) -> None:
    """Carry out a later pass, and queue another one if renditions are missing.

    The version stays ready. An invalid source fails the missing renditions.
    """
    async with closed_afterwards(attempt, tools):
        try:
            async with held(attempt) as reports:
                await _later_pass(attempt, tools, reports)
            finish = partial(renditions.finish_pass, attempt)
            is_complete = await retry_outage(finish)
        except (errors.SourceRejected, SourceChanged) as exc:
            logger.warning("Source refused: %s", exc.code, extra={"action": "source_rejected"})
            # The playlist may lack renditions that an earlier pass committed.
            await put_master(attempt.version, tools.storage)
            await renditions.fail_missing(attempt, Failure(str(exc.code), exc.detail))
        except LeaseLost:
            # The playlist may be older than the rows when the lease was lost.
            await put_master(attempt.version, tools.storage)
            raise
        else:
            logger.info("Pass is done", extra={"action": "pass_done", "is_last": is_complete})


async def _later_pass(attempt: OpenAttempt, tools: Tools, reports: Reports) -> None:
    """Make the targets of a later pass, record them, and write the master playlist."""
    if attempt.targets:
        output = await maker_of(attempt.version).make_missing(attempt, tools, reports)
        await retry_outage(partial(renditions.add, attempt, output))
    await attempts.hold(attempt)
    await put_master(attempt.version, tools.storage)
