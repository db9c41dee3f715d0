"""Maker of the renditions of a whole film: it copies what can be copied, and encodes the rest.

A pass encodes in parts, and assembles the renditions. Sound and poster are made beside the picture.
Viewers can watch the segments of a large copy before it is complete. While a pass encodes, the
queue is watched for videos that have to go before it.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from portal.concurrency import running, task_group
from portal.films import parts, renditions
from portal.films.attempts import OpenAttempt
from portal.films.encoding import SOON_S, encode_missing, watch_queue
from portal.films.outputs import StorageSink, open_rendition
from portal.films.progress import Progress, Reports, Stage
from portal.films.sources import Source, probed_source
from portal.films.versions import is_current
from portal.queue.jobs import RunAgain
from portal.queue.tools import Tools
from portal.telemetry.tracing import span
from portal.transcoding import errors
from portal.transcoding.encoding.assembly import PassOutput, assemble
from portal.transcoding.encoding.copying import copy_streams
from portal.transcoding.encoding.encode import encode_sound
from portal.transcoding.encoding.ffmpeg import OnFfmpegProgress
from portal.transcoding.encoding.parts import PartsDontJoin, Pass, Rendition
from portal.transcoding.encoding.pictures import put_poster
from portal.transcoding.encoding.sink import ignore_stored
from portal.transcoding.packaging.hls import MediaPlaylist
from portal.transcoding.planning.ladder import Plan, even_starts_s, plan_renditions
from portal.transcoding.probing.facts import Probe

logger = logging.getLogger(__name__)

# Share of copying in the progress of a pass that also encodes.
COPY_SHARE = 0.1
# Size of a source from which viewers can watch its copy while it is made. Smaller ones are copied
# within about 2 s.
SHOWN_FROM_BYTES = 64 * 1024**2


class ShownCopyFailed(RunAgain):
    """A copy failed after viewers could load some of its segments.

    Another attempt makes the film again, in another folder, so that no address ever has other
    content. `notes` are about the source, for that attempt.
    """

    def __init__(self, reason: str, *notes: errors.Note) -> None:
        self.notes = notes
        super().__init__(reason)


async def make_first(
    attempt: OpenAttempt, tools: Tools, reports: Reports, *, may_encode: bool
) -> tuple[Source, PassOutput | Plan]:
    """Make the first renditions, as `Maker` describes.

    A source whose copy proves undeliverable is encoded, and gets a note.
    """
    make = partial(_make_first, attempt, tools, reports, may_encode=may_encode)
    async with probed_source(attempt.version, tools, interruptions=attempt.interruptions) as source:
        try:
            return source, await make(source)
        except errors.CopyUndeliverable as exc:
            fields = {"action": "copy_undeliverable"}
            logger.info("Copy is undeliverable: %s", exc, extra=fields)
            source = replace(source, notes=(*source.notes, errors.Note.COPY_UNDELIVERABLE))
            return source, await make(source)


async def make_missing(attempt: OpenAttempt, tools: Tools, reports: Reports) -> PassOutput:
    """Encode the missing renditions that the attempt names."""
    async with probed_source(attempt.version, tools, interruptions=attempt.interruptions) as source:
        plan = plan_renditions(source.probe, may_copy=False)
        planned = {rung.name for rung in plan.video}
        await renditions.forget(attempt, set(attempt.targets) - planned)
        lowest = await renditions.lowest_complete(attempt.version)
        reference = (await open_rendition(lowest, attempt.video_id, tools.storage)).playlist
        pictures = plan.limited_to(attempt.targets, with_sound=False)
        return await make_renditions(attempt, tools, reports, source, pictures, reference=reference)


async def _make_first(
    attempt: OpenAttempt, tools: Tools, reports: Reports, source: Source, *, may_encode: bool
) -> PassOutput | Plan:
    """Plan a ladder and make its first pass, or return the plan. Raises `CopyUndeliverable`."""
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
    return await make_renditions(attempt, tools, reports, source, plan.limited_to(targets))


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
        copied = await _copy(attempt, source, plan, reports, storing)
        sound = tasks.create_task(
            encode_sound(
                source.url,
                probe,
                plan,
                audio=[rung for rung in plan.audio if rung.name not in copied],
                subtitles=plan.subtitles,
                on_stored=reports.report_stored,
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
    attempt: OpenAttempt, source: Source, plan: Plan, reports: Reports, storing: Mapping[str, Any]
) -> dict[str, Rendition]:
    """Copy the streams that the plan copies; return the renditions.

    Raises `CopyUndeliverable`, or `ShownCopyFailed` if viewers could load a part of the copy.
    """
    copied = [rung.name for rung in plan.video if rung.copied]
    if not copied:
        return {}
    if len(plan.video) == 1:
        return await _copy_alone(attempt, source, plan, reports, storing)
    on_progress = _copy_progress(reports, source, share=COPY_SHARE)
    copies = await copy_streams(source.url, source.probe, plan, on_progress=on_progress, **storing)
    # Viewers of the unfinished film need copied sound beside the encoded picture.
    for name in copies.keys() - copied:
        for segment in copies[name].segments:
            reports.report_stored(name, segment)
    return copies


async def _copy_alone(
    attempt: OpenAttempt, source: Source, plan: Plan, reports: Reports, storing: Mapping[str, Any]
) -> dict[str, Rendition]:
    """Copy the streams of a plan that has no other picture than the copied one.

    Returns the copied renditions by name; sound that can't be copied is missing. If viewers may
    watch the copy meanwhile, its segments are reported. Raises `CopyUndeliverable`, or in its place
    `ShownCopyFailed` if they were.
    """
    is_shown = await _may_be_shown(attempt, source.probe, plan)
    try:
        copies = await copy_streams(
            source.url,
            source.probe,
            plan,
            on_progress=_copy_progress(reports, source, share=1.0),
            on_stored=reports.report_stored if is_shown else ignore_stored,
            **storing,
        )
    except errors.CopyUndeliverable as exc:
        await _discard_shown(attempt, is_shown, str(exc), errors.Note.COPY_UNDELIVERABLE)
        raise
    if any(rung.copied and rung.name not in copies for rung in plan.audio):
        await _discard_shown(attempt, is_shown, "the sound can't be copied")
    return copies


def _copy_progress(reports: Reports, source: Source, *, share: float) -> OnFfmpegProgress:
    """Return the function that takes the copied seconds, a `share` of the work of the pass."""

    async def report(written_s: float) -> None:
        reports.progress.reach(Stage.TRANSCODING, share * written_s / source.probe.duration_s)

    return report


async def _discard_shown(
    attempt: OpenAttempt, is_shown: bool, reason: str, *notes: errors.Note
) -> None:
    """Let no viewer get segments of a copy that isn't used, for this reason.

    If this attempt has shown its own (`is_shown`), raises `ShownCopyFailed` with the reason and the
    notes, after which the attempt has to end. Otherwise deletes the records of segments that an
    earlier attempt may have shown before its worker was killed.
    """
    if is_shown:
        raise ShownCopyFailed(reason, *notes)
    await parts.forget(attempt)


async def _may_be_shown(attempt: OpenAttempt, probe: Probe, plan: Plan) -> bool:
    """Return whether viewers can watch the copy of a film while it is made.

    All of its sound has to be copied, too, and no end of the picture encoded, because that changes
    the init segment.
    """
    is_whole = not probe.video.hidden and not probe.lead_s
    return (
        attempt.is_first
        and attempt.version.size_bytes >= SHOWN_FROM_BYTES
        and is_whole
        and all(rung.copied for rung in plan.audio)
        and await is_current(attempt.version)
    )
