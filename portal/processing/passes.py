"""Passes of a worker over a source: the first makes a video playable, later ones its other sizes.

A pass runs under a lease, and closes its attempt however it ends. Each attempt writes into its own
folder, except for the master playlist, which has one address from the first pass on and is written
again after each later pass. Rows are committed before a master playlist names their files, so a
killed worker loses at most the part that it was encoding.
"""

import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from portal.concurrency import task_group
from portal.database.connection import retry_outage, transaction
from portal.database.models import Outcome
from portal.database.outages import is_outage
from portal.errors import DatabaseUnavailable, Unavailable
from portal.processing import attempts, parts, renditions
from portal.processing.attempts import Failure, LeaseLost, OpenAttempt
from portal.processing.encoding import SOON_S, Preempted, Tools, encode_missing, watch_queue
from portal.processing.outputs import (
    StorageSink,
    master_beside,
    open_rendition,
    put_master,
    write_master,
)
from portal.processing.progress import (
    Heartbeat,
    Progress,
    Stage,
    attempt_heartbeat,
    under_lease,
)
from portal.processing.removal import remove_again
from portal.processing.sources import (
    Source,
    SourceChanged,
    SourceInterrupted,
    probed_source,
)
from portal.processing.tries import is_interruption
from portal.storage.objects import output_prefix
from portal.telemetry.tracing import span
from portal.text import error_words
from portal.transcoding import errors
from portal.transcoding.encoding.assembly import PassOutput, assemble
from portal.transcoding.encoding.encode import copy_streams, encode_sound
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.parts import PartsDontJoin, Pass, Rendition
from portal.transcoding.encoding.pictures import make_storyboard, put_poster
from portal.transcoding.packaging.hls import MediaPlaylist
from portal.transcoding.planning.ladder import Plan, even_starts_s, plan_renditions
from portal.transcoding.planning.storyboard import plan_storyboard
from portal.transcoding.probing.facts import Probe

logger = logging.getLogger(__name__)

# Share of copying in the progress of a pass that also encodes.
COPY_SHARE = 0.1

Result = TypeVar("Result")


async def make_playable(attempt: OpenAttempt, tools: Tools, *, may_encode: bool = True) -> None:
    """Carry out a first pass: the video becomes ready, or failed if its source is invalid.

    A pass that has to encode is left to another job unless this one `may_encode`.
    """
    async with _closed_afterwards(attempt, tools):
        try:
            work = partial(_first_pass, attempt, tools, may_encode=may_encode)
            source, result = await _under_lease(attempt, work)
        except (errors.SourceRejected, SourceChanged) as exc:
            logger.info("Source refused: %s", exc.code, extra={"action": "source_rejected"})
            failure = Failure(str(exc.code), exc.detail)
            await attempts.reject(attempt, failure, message=exc.message)
            return
        if isinstance(result, Plan):
            queue_encode = partial(
                renditions.queue_encode, attempt, result, source, queue=tools.queue
            )
            await retry_outage(queue_encode)
            fields = {"action": "encode_queued", "video_id": str(attempt.video_id)}
            logger.info("Encode is queued", extra=fields)
            return
        publish = partial(renditions.publish, attempt, result, source, queue=tools.queue)
        with span("publish"):
            await retry_outage(publish)
        logger.info("Video is ready", extra={"action": "video_ready"})


async def make_missing(attempt: OpenAttempt, tools: Tools) -> None:
    """Carry out a later pass, and queue another one if renditions are missing.

    The video stays ready. An invalid source fails the missing renditions.
    """
    async with _closed_afterwards(attempt, tools):
        try:
            is_done = await _make_next(attempt, tools)
        except (errors.SourceRejected, SourceChanged) as exc:
            logger.warning("Source refused: %s", exc.code, extra={"action": "source_rejected"})
            # The playlist may lack renditions that an earlier pass committed.
            await put_master(attempt.video, tools.storage)
            await renditions.fail_missing(attempt, Failure(str(exc.code), exc.detail))
        except LeaseLost:
            # The playlist may be older than the rows when the lease was lost.
            await put_master(attempt.video, tools.storage)
            raise
        else:
            logger.info("Pass is done", extra={"action": "pass_done", "is_last": is_done})


async def _make_next(attempt: OpenAttempt, tools: Tools) -> bool:
    """Make the attempt's targets, and return whether the ladder is complete."""
    if attempt.makes_storyboard:
        await _under_lease(attempt, partial(_make_storyboard, attempt, tools))
        finish = partial(renditions.finish_storyboard, attempt, queue=tools.queue)
    else:
        await _under_lease(attempt, partial(_later_pass, attempt, tools))
        finish = partial(renditions.finish_pass, attempt, queue=tools.queue)
    return await retry_outage(finish)


@asynccontextmanager
async def _closed_afterwards(attempt: OpenAttempt, tools: Tools) -> AsyncIterator[None]:
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
    except errors.TranscodeFailed as exc:
        logger.warning("%s: %s", exc, exc.detail, extra={"action": "transcode_failed"})
        failure = Failure(exc.code, exc.detail)
        raise
    except BaseException as exc:
        if is_interruption(exc):
            outcome = Outcome.HANDED_BACK
            failure = _interruption_reason(exc)
            reason = failure.detail if failure else "the worker ends"
            logger.warning("Pass released: %s", reason, extra={"action": "handed_back"})
        else:
            failure = Failure("internal_error", type(exc).__name__)
        raise
    finally:
        if not await attempts.release(attempt, outcome, failure):
            video = attempt.video
            await remove_again(video.id, video.storage_key, queue=tools.queue)


# Work of an attempt, which reports its progress and the segments that it stored.
Work = Callable[[Heartbeat, Progress], Coroutine[Any, Any, Result]]


async def _under_lease(attempt: OpenAttempt, work: Work[Result]) -> Result:
    """Await the work of an attempt while the attempt's lease is renewed."""
    progress = Progress(attempt.percent)
    heartbeat = attempt_heartbeat(attempt, progress)
    return await under_lease(heartbeat, work(heartbeat, progress))


async def _first_pass(
    attempt: OpenAttempt,
    tools: Tools,
    heartbeat: Heartbeat,
    progress: Progress,
    *,
    may_encode: bool,
) -> tuple[Source, PassOutput | Plan]:
    """Plan a ladder and make its first pass; return the plan if that needs an encoder.

    The master playlist is written. A source whose copy proves undeliverable is encoded.
    """
    make = partial(_make_first, attempt, tools, heartbeat, progress, may_encode=may_encode)
    async with _probed_source(attempt, tools) as source:
        try:
            result = await make(source)
        except errors.CopyUndeliverable as exc:
            fields = {"action": "copy_undeliverable"}
            logger.info("Copy is undeliverable: %s", exc, extra=fields)
            source = replace(source, notes=(*source.notes, errors.Note.COPY_UNDELIVERABLE))
            result = await make(source)
    if isinstance(result, PassOutput):
        prefix = output_prefix(attempt.video_id, attempt.number)
        await write_master(tools.storage, prefix, master_beside(result))
    return source, result


async def _make_first(
    attempt: OpenAttempt,
    tools: Tools,
    heartbeat: Heartbeat,
    progress: Progress,
    source: Source,
    *,
    may_encode: bool,
) -> PassOutput | Plan:
    may_copy = errors.Note.COPY_UNDELIVERABLE not in source.notes
    plan = plan_renditions(source.probe, may_copy=may_copy)
    limits = tools.limits
    if 0 < limits.max_transcode_s < plan.ladder_s:
        detail = f"The ladder is expected to take {plan.ladder_s:.0f} s."
        raise limits.rejection(errors.RejectCode.TOO_MUCH_WORK, detail)
    targets = plan.first_pass(cautious=attempt.is_cautious)
    if plan.encode_s(targets) > 0 and not may_encode:
        return plan
    await renditions.plan(attempt, plan, source, targets=targets)
    return await _make_renditions(
        attempt, tools, heartbeat, progress, source, plan, targets=targets
    )


async def _later_pass(
    attempt: OpenAttempt, tools: Tools, heartbeat: Heartbeat, progress: Progress
) -> None:
    """Make the targets of a later pass, record them, and write the master playlist."""
    if attempt.targets:
        async with _probed_source(attempt, tools) as source:
            plan = plan_renditions(source.probe, may_copy=False)
            planned = {rung.name for rung in plan.video}
            await renditions.forget(attempt, set(attempt.targets) - planned)
            targets = tuple(name for name in attempt.targets if name in planned)
            lowest = await renditions.lowest_complete(attempt.video)
            reference = (await open_rendition(lowest, tools.storage)).playlist
            output = await _make_renditions(
                attempt,
                tools,
                heartbeat,
                progress,
                source,
                plan,
                targets=targets,
                reference=reference,
            )
        await retry_outage(partial(renditions.add, attempt, output))
    await attempts.hold(attempt)
    await put_master(attempt.video, tools.storage)


async def _make_renditions(
    attempt: OpenAttempt,
    tools: Tools,
    heartbeat: Heartbeat,
    progress: Progress,
    source: Source,
    plan: Plan,
    *,
    targets: Collection[str],
    reference: MediaPlaylist | None = None,
) -> PassOutput:
    """Make the targets of a pass, and in a first pass, which has no reference, sound and poster.

    Segments begin at the same times as those of the reference. Parts that don't join are made again
    as one part. Raises as the steps do, or `Preempted`.
    """
    video = attempt.video
    job_id = video.complete_job_id if reference else video.first_job_id

    def is_done_soon() -> bool:
        eta_s = progress.eta_s
        is_close = reference is None and eta_s is not None and eta_s <= SOON_S
        return is_close or progress.stage is Stage.FINISHING

    plan = replace(plan, video=tuple(rung for rung in plan.video if rung.name in targets))
    if reference:
        plan = replace(plan, audio=(), subtitles=())
    make = partial(_make_once, attempt, tools, heartbeat, progress, source, plan, reference)
    async with task_group() as tasks:
        watching = None
        if plan.encode_s(targets) > 0:
            watching = tasks.create_task(watch_queue(job_id or 0, is_done_soon))
        try:
            output = await make(may_divide=True)
        except PartsDontJoin as exc:
            fields = {"action": "begins_anew", "attempt": attempt.number}
            logger.warning("Pass restarts: %s", exc, extra=fields)
            await parts.forget(attempt)
            output = await make(may_divide=False)
        if watching:
            watching.cancel()
    return output


async def _make_once(
    attempt: OpenAttempt,
    tools: Tools,
    heartbeat: Heartbeat,
    progress: Progress,
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
    progress.reach(Stage.TRANSCODING)
    async with task_group() as tasks:
        poster = None
        if reference is None:
            poster = tasks.create_task(put_poster(source.url, probe, **storing))
        made = await _copy(source, plan, heartbeat, progress, storing)
        making_sound = tasks.create_task(
            encode_sound(
                source.url,
                probe,
                plan,
                audio=[rung for rung in plan.audio if rung.name not in made],
                subtitles=plan.subtitles,
                on_stored=heartbeat.note_stored,
                **storing,
            )
        )
        of_pass = Pass(
            source_url=source.url,
            probe=probe,
            plan=plan,
            rungs=[rung for rung in plan.video if rung.name not in made],
            starts_s=_starts_s(plan, probe, made, reference),
        )
        report = RunReport()
        folders: dict[str, int] = {}
        if of_pass.rungs:
            expected_s = plan.encode_s(of_pass.names) if may_divide else 0.0
            row = await parts.prepare(
                attempt, of_pass.names, of_pass.starts_s, expected_s=expected_s
            )
            if row.folder != attempt.number:
                folders = dict.fromkeys(of_pass.names, row.folder)
            report, encoded = await encode_missing(
                of_pass, row, made_by=attempt.number, progress=progress, tools=tools
            )
            made |= encoded
        heard, sound, subtitles = await making_sound
        made |= sound
        report = replace(
            report,
            network_faults=report.network_faults + heard.network_faults,
            unheard=heard.unheard,
        )
        progress.reach(Stage.FINISHING, 1.0)
        with span("finish"):
            output = await assemble(
                probe,
                plan,
                made,
                subtitles=subtitles,
                report=report,
                reference=reference,
                sink=replace(sink, folders=folders),
            )
        has_poster = poster is not None and await poster
    progress.finish()
    return replace(output, folders=folders, has_poster=has_poster)


def _starts_s(
    plan: Plan,
    probe: Probe,
    made: Mapping[str, Rendition],
    reference: MediaPlaylist | None,
) -> Sequence[float] | None:
    """Return the times of segments: those of a copied picture, of the reference, or even ones."""
    for rung in plan.video:
        if rung.name in made:
            return made[rung.name].playlist().starts_s
    return reference.starts_s if reference else even_starts_s(plan, probe.video)


async def _copy(
    source: Source,
    plan: Plan,
    heartbeat: Heartbeat,
    progress: Progress,
    storing: Mapping[str, Any],
) -> dict[str, Rendition]:
    """Copy the streams that the plan copies; return the renditions."""
    copied = [rung.name for rung in plan.video if rung.copied]
    if not copied:
        return {}
    is_alone = len(plan.video) == 1
    share = 1.0 if is_alone else COPY_SHARE

    async def report(written_s: float) -> None:
        progress.reach(Stage.TRANSCODING, share * written_s / source.probe.duration_s)

    made = await copy_streams(source.url, source.probe, plan, on_progress=report, **storing)
    if not is_alone:
        # Viewers of the unfinished film need copied sound beside the encoded picture.
        for name in made.keys() - copied:
            for segment in made[name].segments:
                heartbeat.note_stored(name, segment)
    return made


async def _make_storyboard(
    attempt: OpenAttempt, tools: Tools, heartbeat: Heartbeat, progress: Progress
) -> None:
    video = attempt.video
    lowest = await open_rendition(await renditions.lowest_complete(video), tools.storage)
    duration_s = lowest.playlist.duration_s

    async def report(written_s: float) -> None:
        progress.reach(Stage.TRANSCODING, written_s / duration_s)

    await make_storyboard(
        lowest,
        plan_storyboard(video.width or 1, video.height or 1, duration_s=duration_s),
        sink=StorageSink(tools.storage, video.id, video.published_attempt or 0, attempt),
        work_dir=tools.work_dir,
        on_progress=report,
    )


def _probed_source(attempt: OpenAttempt, tools: Tools) -> AbstractAsyncContextManager[Source]:
    return probed_source(
        attempt.video, tools.storage, tools.limits, interruptions=attempt.interruptions
    )


def _interruption_reason(exc: BaseException) -> Failure | None:
    """Return the reason of an interruption, for the operator; None if the worker ends."""
    cause = errors.without_signatures(error_words(exc.__cause__ or exc))
    if isinstance(exc, SourceInterrupted):
        return Failure(errors.FailCode.SOURCE_UNREACHABLE, cause)
    if isinstance(exc, errors.DiskFull):
        return Failure("disk_full", str(exc))
    if isinstance(exc, Unavailable):
        return Failure(exc.code, cause)
    if is_outage(exc):
        return Failure(DatabaseUnavailable.code, cause)
    return None


EXHAUSTED_MESSAGE = (
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)


async def publish_video(video_id: UUID, tools: Tools, *, may_encode: bool) -> None:
    """Make a processing video playable, or failed if its attempts are used up.

    A video that has to be encoded is left to a job that `may_encode`. Raises `HeldByAnother`, or
    the error that interrupted the pass, after which the job has to run again.
    """
    try:
        attempt = await attempts.begin(video_id, worker=tools.worker)
    except attempts.AttemptsExhausted:
        code = attempts.TRANSCODE_FAILED
        async with transaction():
            await attempts.fail_video(video_id, code=code, message=EXHAUSTED_MESSAGE)
        return
    if attempt:
        await make_playable(attempt, tools, may_encode=may_encode)


async def complete_ladder(video_id: UUID, tools: Tools) -> None:
    """Make the next part of a playable video's ladder, in one pass. Raises as `publish_video`."""
    attempt = await renditions.begin_next(video_id, worker=tools.worker)
    if attempt is not None:
        await make_missing(attempt, tools)
