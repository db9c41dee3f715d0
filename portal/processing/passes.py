"""A pass of a worker over a source, under a lease: its steps, and its end.

A pass copies what can be copied, encodes the rest in parts, and assembles the renditions. Sound and
poster are made beside the picture. While a pass encodes, the queue is watched for videos that have
to go before it. Each attempt writes into its own folder, except for the master playlist, which has
one address from the first pass on and is written again after each later pass.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from portal.concurrency import running, task_group
from portal.database.models import Outcome
from portal.database.outages import is_temporary
from portal.errors import DatabaseUnavailable, Unavailable
from portal.processing import attempts, parts
from portal.processing.attempts import Failure, LeaseLost, OpenAttempt
from portal.processing.encoding import SOON_S, Preempted, encode_missing, watch_queue
from portal.processing.outputs import StorageSink
from portal.processing.progress import Progress, Reports, Stage
from portal.processing.removal import remove_again
from portal.processing.sources import Source, SourceInterrupted, probed_source
from portal.queue.tools import Tools
from portal.queue.tries import is_interruption, is_out_of_memory
from portal.telemetry.tracing import span
from portal.text import error_words
from portal.transcoding import errors
from portal.transcoding.encoding.assembly import PassOutput, assemble
from portal.transcoding.encoding.encode import copy_streams, encode_sound
from portal.transcoding.encoding.parts import PartsDontJoin, Pass, Rendition
from portal.transcoding.encoding.pictures import put_poster
from portal.transcoding.packaging.hls import MediaPlaylist
from portal.transcoding.planning.ladder import Plan, even_starts_s

logger = logging.getLogger(__name__)

# Share of copying in the progress of a pass that also encodes.
COPY_SHARE = 0.1


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


async def make_renditions(
    attempt: OpenAttempt,
    tools: Tools,
    reports: Reports,
    source: Source,
    plan: Plan,
    *,
    reference: MediaPlaylist | None = None,
) -> PassOutput:
    """Make all renditions of a plan, and a poster unless there is a reference.

    Segments begin at the same times as those of the reference, the playlist of a rendition of an
    earlier pass. Parts that don't join are made again as one part. Raises as the steps do, or
    `Preempted`.
    """
    version = attempt.version
    job_id = version.complete_job_id if reference else version.first_job_id
    make = partial(_make_once, attempt, tools, reports, source, plan, reference)
    is_done_soon = partial(_is_done_soon, reports.progress, is_first=reference is None)
    has_encodes = plan.ladder_s > 0
    watching = running(watch_queue(job_id or 0, is_done_soon)) if has_encodes else nullcontext()
    async with watching:
        try:
            return await make(may_divide=True)
        except PartsDontJoin as exc:
            fields = {"action": "begins_anew", "attempt": attempt.number}
            logger.warning("Pass restarts: %s", exc, extra=fields)
            await parts.forget(attempt)
            return await make(may_divide=False)


def _is_done_soon(progress: Progress, *, is_first: bool) -> bool:
    """Return whether a pass is so far that it is finished rather than preempted."""
    is_close = is_first and progress.eta_s is not None and progress.eta_s <= SOON_S
    return is_close or progress.stage is Stage.FINISHING


async def _make_once(
    attempt: OpenAttempt,
    tools: Tools,
    reports: Reports,
    source: Source,
    plan: Plan,
    reference: MediaPlaylist | None,
    *,
    may_divide: bool,
) -> PassOutput:
    """Copy, encode and assemble all renditions of a plan."""
    probe = source.probe
    sink = StorageSink(tools.storage, attempt.video_id, attempt.number, attempt)
    storing: dict[str, Any] = {"sink": sink, "work_dir": tools.work_dir}
    reports.progress.reach(Stage.TRANSCODING)
    async with task_group() as tasks:
        poster = None
        if reference is None:
            poster = tasks.create_task(put_poster(source.url, probe, **storing))
        copied = await _copy(source, plan, reports, storing)
        sound = tasks.create_task(
            encode_sound(
                source.url,
                probe,
                plan,
                audio=[rung for rung in plan.audio if rung.name not in copied],
                subtitles=plan.subtitles,
                on_stored=reports.note_stored,
                **storing,
            )
        )
        of_pass = _pass_of(source, plan, copied, reference)
        report, encoded, folder = await encode_missing(
            of_pass, attempt, may_divide=may_divide, progress=reports.progress, tools=tools
        )
        heard, audio, subtitles = await sound
        reports.progress.reach(Stage.FINISHING, 1.0)
        folders = {} if folder == attempt.number else dict.fromkeys(encoded, folder)
        with span("finish"):
            try:
                output = await assemble(
                    probe,
                    plan,
                    {**copied, **encoded, **audio},
                    subtitles=subtitles,
                    report=report + heard,
                    reference=reference,
                    sink=replace(sink, folders=folders),
                )
            except errors.TranscodeFailed as exc:
                # Otherwise the next attempt would find the same parts, and fail again.
                if exc.code == errors.FailCode.SOURCE_UNREACHABLE:
                    await parts.discard_doubtful(attempt)
                raise
        has_poster = poster is not None and await poster
    reports.progress.finish()
    return replace(output, folders=folders, has_poster=has_poster)


def _pass_of(
    source: Source,
    plan: Plan,
    copied: Mapping[str, Rendition],
    reference: MediaPlaylist | None,
) -> Pass:
    """Return the pass that encodes the renditions of a plan that were not copied.

    Its segments begin with those of a copied picture, or else of the reference, or at even times.
    """
    starts_s: Sequence[float] | None
    copied_names = [rung.name for rung in plan.video if rung.name in copied]
    if copied_names:
        starts_s = copied[copied_names[0]].playlist().starts_s
    elif reference:
        starts_s = reference.starts_s
    else:
        starts_s = even_starts_s(plan, source.probe.video)
    return Pass(
        source_url=source.url,
        probe=source.probe,
        plan=plan,
        rungs=[rung for rung in plan.video if rung.name not in copied],
        starts_s=starts_s,
    )


async def _copy(
    source: Source, plan: Plan, reports: Reports, storing: Mapping[str, Any]
) -> dict[str, Rendition]:
    """Copy the streams that the plan copies; return the renditions."""
    copied = [rung.name for rung in plan.video if rung.copied]
    if not copied:
        return {}
    is_alone = len(plan.video) == 1
    share = 1.0 if is_alone else COPY_SHARE

    async def report(written_s: float) -> None:
        reports.progress.reach(Stage.TRANSCODING, share * written_s / source.probe.duration_s)

    renditions = await copy_streams(source.url, source.probe, plan, on_progress=report, **storing)
    if not is_alone:
        # Viewers of the unfinished film need copied sound beside the encoded picture.
        for name in renditions.keys() - copied:
            for segment in renditions[name].segments:
                reports.note_stored(name, segment)
    return renditions
