"""Passes of a worker over a source, under a lease: what makes a version playable, and complete.

Each attempt writes into its own folder, except for the master playlist, which has one address from
the first pass on and is written again after each later pass.

The files of a pass are stored before its rows are committed, so a killed worker loses at most the
part that it was encoding. The master playlist of a first pass is stored before the rows, too; that
of a later pass names files whose rows are committed.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol
from uuid import UUID

from portal.database.connection import retry_outage, transaction
from portal.database.models import Outcome, Version, VideoStatus
from portal.database.outages import is_temporary
from portal.errors import DatabaseUnavailable, Unavailable
from portal.films import attempts, cutting, renditions, whole_films
from portal.films.attempts import Failure, LeaseLost, OpenAttempt
from portal.films.encoding import Preempted
from portal.films.outputs import master_beside, put_master, write_master
from portal.films.progress import Reports, held
from portal.films.removal import remove_again, remove_source
from portal.films.sources import Source, SourceChanged, SourceInterrupted
from portal.films.version_hooks import VersionHook
from portal.films.versions import is_current
from portal.queue.tools import Tools
from portal.queue.tries import is_interruption, is_out_of_memory
from portal.storage.objects import output_prefix
from portal.telemetry.tracing import span
from portal.text import error_words
from portal.transcoding import errors
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.planning.ladder import Plan

logger = logging.getLogger(__name__)


class Maker(Protocol):
    """Makes the renditions of a version, in passes. The modules of makers have these functions."""

    async def make_first(
        self, attempt: OpenAttempt, tools: Tools, reports: Reports, *, may_encode: bool
    ) -> tuple[Source, PassOutput | Plan]:
        """Make the renditions with which a version is playable; return them with their source.

        If the version has to be encoded and this job may not encode (`may_encode`), return the plan
        in place of the renditions.
        Raises `SourceRejected`, `SourceChanged`, or the error that interrupted the work.
        """

    async def make_missing(
        self, attempt: OpenAttempt, tools: Tools, reports: Reports
    ) -> PassOutput:
        """Make further renditions, which the attempt names. Raises as `make_first`."""


def maker_of(version: Version) -> Maker:
    """Return the maker of a version's renditions."""
    return whole_films if version.keep is None else cutting


async def publish_version(
    version_id: UUID, tools: Tools, *, may_encode: bool, hooks: Sequence[VersionHook]
) -> None:
    """Make a processing version playable, or failed if its attempts are used up.

    The `hooks` follow when viewers get it. A version that has to be encoded is left to a job that
    `may_encode`. The file of a failed replacement is removed, because nothing uses it any more.
    Raises `HeldByAnother`, or the error that interrupted the pass, after which the job has to run
    again.
    """
    try:
        attempt = await attempts.begin(version_id, worker=tools.worker)
    except attempts.AttemptsExhausted:
        attempt = None
        code = attempts.TRANSCODE_FAILED
        async with transaction():
            await attempts.fail_version(version_id, code=code, message=attempts.EXHAUSTED_MESSAGE)
    if attempt:
        await make_playable(attempt, tools, may_encode=may_encode, hooks=hooks)
    failed = await Version.get_or_none(id=version_id, status=VideoStatus.FAILED)
    if failed is not None and not await is_current(failed):
        await remove_source(failed, tools.storage)


async def make_playable(
    attempt: OpenAttempt, tools: Tools, *, may_encode: bool = True, hooks: Sequence[VersionHook]
) -> None:
    """Make a version's first rendition; it is then ready, or failed if its source is invalid.

    If it has to be encoded and this job may not encode (`may_encode`), a job that may is queued
    instead. Raises the error that interrupted the work.
    """
    async with closed_afterwards(attempt, tools):
        try:
            async with held(attempt) as reports:
                maker = maker_of(attempt.version)
                source, result = await maker.make_first(
                    attempt, tools, reports, may_encode=may_encode
                )
                if isinstance(result, PassOutput):
                    prefix = output_prefix(attempt.video_id, attempt.number)
                    await write_master(tools.storage, prefix, master_beside(result))
        except (errors.SourceRejected, SourceChanged) as exc:
            logger.info("Source refused: %s", exc.code, extra={"action": "source_rejected"})
            failure = Failure(str(exc.code), exc.detail)
            await attempts.reject(attempt, failure, message=exc.message)
            return
        except whole_films.ShownCopyFailed as exc:
            await retry_outage(partial(renditions.forget_shown, attempt, exc.notes))
            raise
        if isinstance(result, Plan):
            queue_encode = partial(renditions.queue_encode, attempt, result, source)
            await retry_outage(queue_encode)
            fields = {"action": "encode_queued", "video_id": str(attempt.video_id)}
            logger.info("Encode is queued", extra=fields)
            return
        publish = partial(renditions.publish, attempt, result, source, hooks)
        with span("publish"):
            await retry_outage(publish)
        logger.info("Video is ready", extra={"action": "video_ready"})


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


@asynccontextmanager
async def closed_afterwards(attempt: OpenAttempt, tools: Tools) -> AsyncIterator[None]:
    """Close the attempt after the block, however it ends, and raise the error of the block.

    `LeaseLost` is logged and not raised. Interruptions hand the attempt back. An attempt that the
    block leaves open is closed as failed. If the version was deleted in the meantime, the removal
    of its files is queued, unless the video exists.
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
    except whole_films.ShownCopyFailed as exc:
        outcome = Outcome.HANDED_BACK
        failure = Failure(errors.Note.COPY_UNDELIVERABLE, str(exc))
        logger.warning("Shown copy failed: %s", exc, extra={"action": "shown_copy_failed"})
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
