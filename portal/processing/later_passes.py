"""Later passes, which make the other renditions of a playable version. Each pass is one job.

Rows are committed before the master playlist names their files.
"""

import logging
from functools import partial
from uuid import UUID

from portal.database.connection import retry_outage
from portal.processing import attempts, cutting, renditions
from portal.processing.attempts import Failure, LeaseLost, OpenAttempt
from portal.processing.outputs import open_rendition, put_master
from portal.processing.passes import closed_afterwards, make_renditions, source_of
from portal.processing.progress import Reports, held
from portal.processing.sources import Source, SourceChanged
from portal.queue.tools import Tools
from portal.transcoding import errors
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.planning.ladder import plan_renditions

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
        make = _make_targets if attempt.version.keep is None else cutting.make_missing
        async with source_of(attempt, tools) as source:
            output = await make(attempt, tools, reports, source)
        await retry_outage(partial(renditions.add, attempt, output))
    await attempts.hold(attempt)
    await put_master(attempt.version, tools.storage)


async def _make_targets(
    attempt: OpenAttempt, tools: Tools, reports: Reports, source: Source
) -> PassOutput:
    """Encode the targets of a later pass over a whole film."""
    plan = plan_renditions(source.probe, may_copy=False)
    planned = {rung.name for rung in plan.video}
    await renditions.forget(attempt, set(attempt.targets) - planned)
    lowest = await renditions.lowest_complete(attempt.version)
    reference = (await open_rendition(lowest, attempt.video_id, tools.storage)).playlist
    pictures = plan.limited_to(attempt.targets, with_sound=False)
    return await make_renditions(attempt, tools, reports, source, pictures, reference=reference)
