"""Renditions of a version in the database: planned, complete with their measures, or failed.

Public functions that take an `OpenAttempt` open their own transaction, except `forget`, and so does
`begin_next`. Those that take a `Version` or a row run in the caller's, which has locked the video
if they write. A rendition is complete once its row says so; master playlists are written from the
rows, never the other way round. Once a version plays, later passes make a rendition for slow
connections, and then the rest of the ladder.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any
from uuid import UUID

from tortoise.expressions import F, Q
from tortoise.queryset import QuerySet

from portal.database.connection import NOW, execute, fetch_rows, lock_version, transaction
from portal.database.models import (
    Attempt,
    Publication,
    Rendition,
    RenditionState,
    Version,
    Video,
    VideoStatus,
)
from portal.events.log import EventType, record_outcome
from portal.films import attempts, captions
from portal.films.attempts import Failure, LeaseLost, OpenAttempt
from portal.films.jobs import STORYBOARD, enqueue_completion, enqueue_encode
from portal.films.sources import Source
from portal.films.version_hooks import VersionHook
from portal.films.versions import delete_progress, make_current, record_version_outcome
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Entry, FinishedRendition, Kind
from portal.transcoding.planning.kept import Kept
from portal.transcoding.planning.ladder import Plan, early_rendition, is_made_together

# Tries of each rendition of a ready version.
MAX_TRIES = 3
# Stores the chapters of the file, which `videos.chapters` reads.
# Columns of a planned rendition.
PLANNED_OF_VIDEO = ("name", "width", "height", "copied")
PLANNED_OF_TRACKS = ("name", "language", "label", "is_default")
PLANNED_OF_CUT = """
  kind, name, position, copied, width, height, frame_rate, language, label, is_default
"""
# Plans what a cut lacks of its whole film: complete renditions of picture and sound.
PLAN_LIKE_FILM = f"""
INSERT INTO renditions (version_id, state, tries, {PLANNED_OF_CUT})
SELECT %s, 'planned', 0, {PLANNED_OF_CUT} FROM renditions
WHERE version_id = (SELECT base_id FROM versions WHERE id = %s)
  AND state = 'complete' AND kind <> 'subtitles'
ON CONFLICT (version_id, name) DO NOTHING
"""  # noqa: S608 - put together from constants
# The video if neither its current version nor the whole film of that, one of which has the second
# parameter as its id, has a job.
IS_COMPLETE = """
SELECT FROM videos video LEFT JOIN versions film ON film.id = video.base_id
WHERE video.id = %s AND %s IN (video.version_id, video.base_id) AND video.status = 'ready'
  AND video.complete_job_id IS NULL AND video.storyboard_job_id IS NULL
  AND film.complete_job_id IS NULL AND film.storyboard_job_id IS NULL
"""
PLANNED_ANEW = {
    "state": RenditionState.PLANNED,
    "attempt_number": None,
    "tries": 0,
    "error_code": None,
    "error_detail": None,
}


async def plan(
    attempt: OpenAttempt, planned: Plan, source: Source, *, targets: Collection[str]
) -> None:
    """Record the plan for a source, of which this attempt makes the `targets` and all sound."""
    async with transaction():
        await lock_version(attempt.version_id)
        await attempts.hold(attempt)
        await _replace_plan(attempt.version, planned, source)
        in_this_attempt = ~Q(kind=Kind.VIDEO) | Q(name__in=targets)
        rows = Rendition.filter(in_this_attempt, version_id=attempt.version_id)
        await rows.update(attempt_number=attempt.number, tries=1)


async def plan_cut(attempt: OpenAttempt, keep: Kept, *, targets: Collection[str]) -> None:
    """Record a row of a cut version for each complete video or sound rendition of the whole film.

    The rows replace earlier ones. This attempt makes all sound and the video renditions in
    `targets`; later ones make the others. `keep`, the intervals at exact frames, is recorded with
    the version. Raises `LeaseLost`.
    """
    async with transaction():
        await lock_version(attempt.version_id)
        await attempts.hold(attempt)
        await Rendition.filter(version_id=attempt.version_id).delete()
        await execute(PLAN_LIKE_FILM, attempt.version_id, attempt.version_id)
        begun = Rendition.filter(
            ~Q(kind=Kind.VIDEO) | Q(name__in=targets), version_id=attempt.version_id
        )
        await begun.update(attempt_number=attempt.number, tries=1)
        await Version.filter(id=attempt.version_id).update(keep=keep.intervals)


async def queue_encode(attempt: OpenAttempt, planned: Plan, source: Source) -> None:
    """Record the plan for a source, and queue the job that encodes its first pass.

    The attempt is deleted, because that job begins another one. Raises `LeaseLost`.
    """
    version = attempt.version
    expected_s = planned.encode_s(planned.first_pass(cautious=attempt.is_cautious))
    async with transaction():
        await lock_version(version.id)
        await attempts.discard(attempt)
        await _replace_plan(
            version,
            planned,
            source,
            encode_job_id=await enqueue_encode(version, expected_s=expected_s),
            notes=list(source.notes),
        )
        await Publication.filter(id=version.video_id).update(updated_at=NOW)


async def forget_shown(attempt: OpenAttempt, notes: Sequence[Note]) -> None:
    """Delete the records of all segments of the attempt's version, and add notes to the version.

    The files stay in storage. Raises `LeaseLost`, and changes nothing then.
    """
    async with transaction():
        version = await lock_version(attempt.version_id)
        await attempts.hold(attempt)
        await delete_progress(attempt.version_id)
        await _add_notes(version, notes)


async def publish(
    attempt: OpenAttempt, output: PassOutput, source: Source, hooks: Sequence[VersionHook]
) -> None:
    """Make the version ready with the output of a first pass, and queue the jobs that complete it.

    Viewers get it from now on, which the hooks follow. Raises `LeaseLost`.
    """
    version = attempt.version
    probe = source.probe
    async with transaction():
        await lock_version(version.id)
        await attempts.publish(attempt, media_s=output.duration_s)
        await _record_output(attempt, output)
        await _plan_rest(attempt)
        changed = await Version.filter(id=version.id, status=VideoStatus.PROCESSING).update(
            status=VideoStatus.READY,
            published_attempt=attempt.number,
            complete_job_id=await _queue_completion(version),
            duration_s=output.duration_s,
            width=probe.video.width,
            height=probe.video.height,
            notes=[*source.notes, *(note.value for note in output.notes)],
            has_poster=output.has_poster,
        )
        if not changed:
            raise LeaseLost
        await request_storyboard(version)
        await make_current(version, hooks, output=output, chapters=probe.chapters)


async def request_storyboard(version: Version) -> None:
    """Queue the job for the storyboard of a locked, ready version."""
    await Version.filter(id=version.id).update(
        has_storyboard=False,
        storyboard_tries=0,
        storyboard_job_id=await STORYBOARD.enqueue(version_id=version.id),
    )


async def forget(attempt: OpenAttempt, names: Collection[str]) -> None:
    """Delete planned renditions that this version of the portal no longer plans."""
    await Rendition.filter(
        version_id=attempt.version_id, state=RenditionState.PLANNED, name__in=list(names)
    ).delete()


async def add(attempt: OpenAttempt, output: PassOutput) -> None:
    """Record renditions made for a ready version; the attempt stays open. Raises `LeaseLost`."""
    async with transaction():
        version = await lock_version(attempt.version_id)
        await attempts.hold(attempt)
        await _record_output(attempt, output)
        notes = set(output.notes)
        if output.has_faults and await _withdraw_copy(attempt.version):
            notes.add(Note.COPY_UNDELIVERABLE)
        await _add_notes(version, notes)


async def _add_notes(version: Version | None, notes: Collection[Note]) -> None:
    """Add notes that a locked version doesn't have; None is a deleted version."""
    added = sorted(note.value for note in notes if version and note.value not in version.notes)
    if version and added:
        await Version.filter(id=version.id).update(notes=[*version.notes, *added])


async def master_entries(version: Version) -> list[Entry]:
    """Return the entries of the master playlist: complete video and audio, and captions.

    Each entry has its folder, relative to the playlist. Empty without complete video and audio.
    """
    tracks = Rendition.filter(version_id=version.id, state=RenditionState.COMPLETE)
    entries: list[Entry] = []
    for row in await tracks.exclude(kind=Kind.SUBTITLES):
        is_beside = row.attempt_number == version.published_attempt
        entries.append(("" if is_beside else f"../{row.attempt_number}/", finished_rendition(row)))
    return [*entries, *await captions.entries(version)] if entries else []


async def lowest_complete(version: Version) -> Rendition:
    """Return the lowest complete video rendition; later ones must have segments of its times."""
    [lowest] = (
        await Rendition.filter(
            version_id=version.id, kind=Kind.VIDEO, state=RenditionState.COMPLETE
        )
        .order_by("position")
        .limit(1)
    )
    return lowest


async def _replace_plan(
    version: Version, planned: Plan, source: Source, **version_columns: object
) -> None:
    """Record a plan, the probe that it is made from, and columns of the version."""
    await Rendition.filter(version_id=version.id).delete()
    rows = [
        Rendition(version_id=version.id, position=position, **columns)
        for position, columns in enumerate(_planned_columns(planned))
    ]
    await Rendition.bulk_create(rows)
    await Version.filter(id=version.id).update(probe_answer=source.answer, **version_columns)


def _planned_columns(planned: Plan) -> Iterator[dict[str, Any]]:
    for rung in planned.video:
        columns = {name: getattr(rung, name) for name in PLANNED_OF_VIDEO}
        yield {"kind": Kind.VIDEO, "frame_rate": str(rung.fps), **columns}
    for kind, tracks in ((Kind.AUDIO, planned.audio), (Kind.SUBTITLES, planned.subtitles)):
        for track in tracks:
            yield {"kind": kind, **{name: getattr(track, name) for name in PLANNED_OF_TRACKS}}


async def _record_output(attempt: OpenAttempt, output: PassOutput) -> None:
    """Mark the renditions of a pass complete, with their measures."""
    await delete_progress(attempt.version_id)
    for rendition in output.renditions:
        row = Rendition.filter(version_id=attempt.version_id, name=rendition.name)
        changed = await row.update(
            state=RenditionState.COMPLETE,
            attempt_number=output.folders.get(rendition.name, attempt.number),
            error_code=None,
            error_detail=None,
            **_rendition_columns(rendition),
        )
        if not changed:
            raise LookupError(f"The rendition {rendition.name} was made, but is not in the plan.")


async def _plan_rest(attempt: OpenAttempt) -> None:
    """Plan the video renditions that a first pass did not make as encodes of later passes.

    The whole film of a cut may have more of them by now. Sound and subtitles that the pass did not
    make are deleted, because no later pass makes any.
    """
    await execute(PLAN_LIKE_FILM, attempt.version_id, attempt.version_id)
    unmade = Rendition.filter(version_id=attempt.version_id, state=RenditionState.PLANNED)
    await unmade.exclude(kind=Kind.VIDEO).delete()
    await unmade.filter(attempt_number=attempt.number).update(**PLANNED_ANEW, copied=False)


async def _withdraw_copy(version: Version) -> bool:
    """Plan the copied rendition as an encode; return whether there was a copy.

    Players stop at faults of a stream that ffmpeg decodes without an error.
    """
    copied = Rendition.filter(version_id=version.id, copied=True, state=RenditionState.COMPLETE)
    return bool(await copied.update(**PLANNED_ANEW, copied=False))


def _rendition_columns(rendition: FinishedRendition) -> dict[str, Any]:
    columns = asdict(rendition)
    fps = columns.pop("fps")
    return {**columns, "frame_rate": None if fps is None else str(fps)}


def finished_rendition(row: Rendition) -> FinishedRendition:
    """Return a complete rendition with its measures."""
    names = {field.name for field in fields(FinishedRendition)} - {"fps"}
    columns = {name: getattr(row, name) for name in names}
    return FinishedRendition(fps=Fraction(row.frame_rate) if row.frame_rate else None, **columns)


async def begin_next(version_id: UUID, *, worker: str) -> OpenAttempt | None:
    """Take the lease on a ready version with a ladder to complete; None for other versions.

    A rendition for slow connections comes first, and then the rest of the ladder together. After a
    failure, renditions are made one by one, so that a bad one doesn't hold up the others: the least
    tried and lowest first. A rendition fails after `MAX_TRIES` tries. Raises `HeldByAnother`.
    """
    async with attempts.opening() as opened:
        version = await lock_version(version_id)
        if (
            version is None
            or version.status is not VideoStatus.READY
            or version.complete_job_id is None
        ):
            return None
        earlier = await attempts.close_abandoned(version_id)
        attempt = await _begin_renditions(version, earlier, worker)
        opened.append(attempt)
    return attempt


async def _begin_renditions(
    version: Version, earlier: Sequence[Attempt], worker: str
) -> OpenAttempt:
    planned = Rendition.filter(version_id=version.id, state=RenditionState.PLANNED)
    await planned.filter(tries__gte=MAX_TRIES).update(state=RenditionState.FAILED)
    rows = await _next_renditions(version, await planned.order_by("tries", "position"))
    targets = tuple(row.name for row in rows)
    attempt = await attempts.open_attempt(version, earlier, worker, targets=targets)
    await planned.filter(name__in=targets).update(
        attempt_number=attempt.number, tries=F("tries") + 1
    )
    return attempt


async def _next_renditions(version: Version, missing: Sequence[Rendition]) -> Sequence[Rendition]:
    """Return the missing renditions that the next pass makes."""
    if any(row.tries for row in missing):
        return missing[:1]
    encoded = Rendition.filter(version_id=version.id, kind=Kind.VIDEO, copied=False)
    has_encoded = await encoded.filter(state=RenditionState.COMPLETE).exists()
    sizes = {row.name: (row.width or 0, row.height or 0) for row in missing}
    pixels_per_s = sum(
        math.prod(sizes[row.name]) * Fraction(row.frame_rate or 0) for row in missing
    )
    if has_encoded or is_made_together(float(pixels_per_s), version.duration_s or 0.0):
        return missing
    # The only rendition that plays is a copy, which slow connections can't load.
    early = early_rendition(sizes)
    return [row for row in missing if row.name == early]


async def finish_pass(attempt: OpenAttempt) -> bool:
    """Close the attempt and queue the next pass; return whether the ladder is complete.

    Each pass has its own job, so that videos that wait to be playable go first. Raises `LeaseLost`.
    """
    async with transaction():
        await lock_version(attempt.version_id)
        # An attempt without targets only writes the master playlist again.
        media_s = (attempt.version.duration_s or 0.0) if attempt.targets else 0.0
        await attempts.publish(attempt, media_s=media_s)
        if attempt.targets:
            await record_version_outcome(attempt.version, EventType.RENDITION_ADDED)
        await _complete_cuts(attempt.version)
        return await _queue_next(attempt.version)


async def _complete_cuts(film: Version) -> None:
    """Plan the renditions of a whole film that its ready cuts lack."""
    cuts = Version.filter(base_id=film.id, retired_at=None, status=VideoStatus.READY)
    for cut in await cuts:
        added = await execute(PLAN_LIKE_FILM, cut.id, cut.id)
        if added and cut.complete_job_id is None:
            await _queue_next(cut)


async def _queue_next(version: Version) -> bool:
    """Queue the next pass of a locked version, unless none is needed; return whether none is."""
    job_id = await _queue_completion(version)
    await Version.filter(id=version.id).update(complete_job_id=job_id)
    await record_completion(version)
    return job_id is None


async def _queue_completion(version: Version) -> int | None:
    """Queue the pass for planned renditions; return its job's id, or None if there are none.

    A retired version is not completed, unless it is the whole film of the current one.
    """
    is_retired = await Version.exists(id=version.id, retired_at__not_isnull=True)
    if is_retired and not await Video.exists(id=version.video_id, base_id=version.id):
        return None
    planned = Rendition.filter(version_id=version.id, state=RenditionState.PLANNED)
    return await enqueue_completion(version) if await planned.exists() else None


async def record_completion(version: Version) -> None:
    """Record the event `video.completed` if no job adds renditions or a storyboard any more.

    The caller has locked the video, and has just ended a job of `version`. Jobs of the current
    version count, and those of the whole film of which that is a cut.
    """
    if await fetch_rows(IS_COMPLETE, version.video_id, version.id):
        await record_outcome(EventType.COMPLETED, version.video_id)


async def fail_missing(attempt: OpenAttempt, failure: Failure) -> None:
    """Fail the planned renditions of a version, which stays ready. Raises `LeaseLost`."""
    async with transaction():
        await lock_version(attempt.version_id)
        await attempts.fail(attempt, failure)
        planned = Rendition.filter(version_id=attempt.version_id, state=RenditionState.PLANNED)
        await planned.update(
            state=RenditionState.FAILED, error_code=failure.code, error_detail=failure.detail
        )
        await Version.filter(id=attempt.version_id).update(complete_job_id=None)
        await record_completion(attempt.version)


async def restore(version: Version, hooks: Sequence[VersionHook]) -> None:
    """Make a retired version of a locked video the current one, and queue what it lacks."""
    await make_current(version, hooks)
    await plan_missing(version)
    if not version.has_storyboard and version.storyboard_job_id is None:
        await request_storyboard(version)


async def plan_missing(version: Version) -> None:
    """Plan what a ready version lacks, and queue a pass for it; the caller has locked the video.

    Those are its planned renditions and, for a cut, those of the whole film.
    """
    film = await Version.get_or_none(id=version.base_id)
    if film is not None:
        await plan_missing(film)
    await execute(PLAN_LIKE_FILM, version.id, version.id)
    planned = Rendition.filter(version_id=version.id, state=RenditionState.PLANNED)
    await plan_again(version, planned)


async def plan_again(version: Version, again: QuerySet[Rendition]) -> bool:
    """Plan renditions of a locked, ready version again; return whether there are any."""
    changed = await again.update(**PLANNED_ANEW)
    if changed and version.complete_job_id is None:
        job_id = await enqueue_completion(version)
        await Version.filter(id=version.id).update(complete_job_id=job_id)
    return bool(changed)
