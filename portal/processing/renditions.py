"""Renditions of a video in the database: planned, complete with their measures, or failed.

Each function is one transaction, under the lease of an attempt or the lock on the video. A
rendition is complete once its row says so; master playlists are written from the rows, never the
other way round. Once a video plays, later passes make the storyboard, a rendition for slow
connections, and the rest of the ladder, in this order.
"""

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any
from uuid import UUID

from tortoise.expressions import F, Q
from tortoise.queryset import QuerySet

from portal.database.connection import NOW, execute, lock_video, transaction
from portal.database.models import (
    Attempt,
    Rendition,
    RenditionState,
    Video,
    VideoStatus,
)
from portal.events.log import EventType, note_outcome
from portal.processing import attempts, captions
from portal.processing.attempts import Failure, LeaseLost, OpenAttempt
from portal.processing.sources import Source
from portal.queue.app import Queue
from portal.queue.enqueue import defer_completion, defer_encode
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Entry, FinishedRendition, Kind
from portal.transcoding.planning.ladder import Plan, early_rendition, is_made_together
from portal.transcoding.planning.storyboard import is_quickly_made

# Tries of each rendition, and of the storyboard, of a ready video.
MAX_TRIES = 3
# Stores the chapters of the file, which `videos.chapters` reads.
KEEP_CHAPTERS = """
INSERT INTO chapters (video_id, of_file) VALUES (%s, %s)
ON CONFLICT (video_id) DO UPDATE SET of_file = excluded.of_file
"""
# Columns of a planned rendition.
PLANNED_OF_VIDEO = ("name", "width", "height", "copied")
PLANNED_OF_TRACKS = ("name", "language", "label", "is_default")
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
        await lock_video(attempt.video_id)
        await attempts.hold(attempt)
        await _replace_plan(attempt.video, planned, source)
        in_this_attempt = ~Q(kind=Kind.VIDEO) | Q(name__in=targets)
        rows = Rendition.filter(in_this_attempt, video_id=attempt.video_id)
        await rows.update(attempt_number=attempt.number, tries=1)


async def queue_encode(
    attempt: OpenAttempt, planned: Plan, source: Source, *, queue: Queue
) -> None:
    """Record the plan for a source, and queue the job that encodes its first pass.

    The attempt is deleted, because that job begins another one. Raises `LeaseLost`.
    """
    video = attempt.video
    expected_s = planned.encode_s(planned.first_pass(cautious=attempt.is_cautious))
    async with transaction():
        await lock_video(video.id)
        await attempts.withdraw(attempt)
        await _replace_plan(
            video,
            planned,
            source,
            encode_job_id=await defer_encode(video, queue, expected_s=expected_s),
            notes=list(source.notes),
            updated_at=NOW,
        )


async def publish(
    attempt: OpenAttempt, output: PassOutput, source: Source, *, queue: Queue
) -> None:
    """Make the video ready with the output of a first pass, and queue the job for the storyboard.

    Raises `LeaseLost`.
    """
    video = attempt.video
    probe = source.probe
    lowest = next(track for track in output.renditions if track.kind is Kind.VIDEO)
    key_distance_s = probe.video.max_key_distance_s if lowest.copied else None
    is_quick = is_quickly_made(lowest, duration_s=output.duration_s, key_distance_s=key_distance_s)
    async with transaction():
        await lock_video(video.id)
        await attempts.publish(attempt, media_s=output.duration_s)
        await _record_output(attempt, output)
        await _plan_rest(attempt)
        changed = await Video.filter(id=video.id, status=VideoStatus.PROCESSING).update(
            status=VideoStatus.READY,
            published_attempt=attempt.number,
            complete_job_id=await defer_completion(video, queue, is_quick=is_quick),
            captions_job_id=await captions.adopt(video, output, queue),
            duration_s=output.duration_s,
            width=probe.video.width,
            height=probe.video.height,
            notes=[*source.notes, *(note.value for note in output.notes)],
            has_poster=output.has_poster,
            has_storyboard=False,
            storyboard_tries=0,
        )
        if not changed:
            raise LeaseLost
        if probe.chapters:
            await execute(KEEP_CHAPTERS, video.id, json.dumps(probe.chapters))
        await note_outcome(EventType.READY, video.id)


async def forget(attempt: OpenAttempt, names: Collection[str]) -> None:
    """Delete planned renditions that this version of the portal no longer plans."""
    await Rendition.filter(
        video_id=attempt.video_id, state=RenditionState.PLANNED, name__in=list(names)
    ).delete()


async def add(attempt: OpenAttempt, output: PassOutput) -> None:
    """Record renditions made for a ready video; the attempt stays open. Raises `LeaseLost`."""
    async with transaction():
        video = await lock_video(attempt.video_id)
        await attempts.hold(attempt)
        await _record_output(attempt, output)
        notes = set(output.notes)
        if output.has_faults and await _withdraw_copy(attempt.video):
            notes.add(Note.COPY_UNDELIVERABLE)
        present = video.notes if video else []
        added = sorted(note.value for note in notes if note.value not in present)
        if added:
            await Video.filter(id=attempt.video_id).update(notes=[*present, *added])


async def complete(video: Video) -> list[Entry]:
    """Return the entries of the master playlist: complete video and audio, and captions.

    Each entry has its folder, relative to the playlist. Empty without complete video and audio.
    """
    tracks = Rendition.filter(video_id=video.id, state=RenditionState.COMPLETE)
    entries: list[Entry] = []
    for row in await tracks.exclude(kind=Kind.SUBTITLES):
        is_beside = row.attempt_number == video.published_attempt
        entries.append(("" if is_beside else f"../{row.attempt_number}/", _measured(row)))
    return [*entries, *await captions.entries(video)] if entries else []


async def lowest_complete(video: Video) -> Rendition:
    """Return the lowest complete video rendition; later ones must have segments of its times."""
    [lowest] = (
        await Rendition.filter(video_id=video.id, kind=Kind.VIDEO, state=RenditionState.COMPLETE)
        .order_by("position")
        .limit(1)
    )
    return lowest


async def _replace_plan(video: Video, planned: Plan, source: Source, **columns: object) -> None:
    """Record a plan, the probe that it is made from, and columns of the video."""
    await Rendition.filter(video_id=video.id).delete()
    rows = [
        Rendition(video_id=video.id, position=position, **columns)
        for position, columns in enumerate(_planned(planned))
    ]
    await Rendition.bulk_create(rows)
    await Video.filter(id=video.id).update(probe_answer=source.answer, **columns)


def _planned(planned: Plan) -> Iterator[dict[str, Any]]:
    for rung in planned.video:
        columns = {name: getattr(rung, name) for name in PLANNED_OF_VIDEO}
        yield {"kind": Kind.VIDEO, "frame_rate": str(rung.fps), **columns}
    for kind, tracks in ((Kind.AUDIO, planned.audio), (Kind.SUBTITLES, planned.subtitles)):
        for track in tracks:
            yield {"kind": kind, **{name: getattr(track, name) for name in PLANNED_OF_TRACKS}}


async def _record_output(attempt: OpenAttempt, output: PassOutput) -> None:
    """Mark the renditions of a pass complete, with their measures."""
    await attempts.delete_progress(attempt.video_id)
    for rendition in output.renditions:
        row = Rendition.filter(video_id=attempt.video_id, name=rendition.name)
        changed = await row.update(
            state=RenditionState.COMPLETE,
            attempt_number=output.folders.get(rendition.name, attempt.number),
            error_code=None,
            error_detail=None,
            **_measures(rendition),
        )
        if not changed:
            raise LookupError(f"The rendition {rendition.name} was made, but is not in the plan.")


async def _plan_rest(attempt: OpenAttempt) -> None:
    """Plan the video renditions that a first pass did not make as encodes of later passes.

    Sound and subtitles that it did not make are deleted, because no later pass makes any.
    """
    unmade = Rendition.filter(video_id=attempt.video_id, state=RenditionState.PLANNED)
    await unmade.exclude(kind=Kind.VIDEO).delete()
    await unmade.filter(attempt_number=attempt.number).update(**PLANNED_ANEW, copied=False)


async def _withdraw_copy(video: Video) -> bool:
    """Plan the copied rendition as an encode; return whether there was a copy.

    Players stop at faults of a stream that ffmpeg decodes without an error.
    """
    copied = Rendition.filter(video_id=video.id, copied=True, state=RenditionState.COMPLETE)
    return bool(await copied.update(**PLANNED_ANEW, copied=False))


def _measures(rendition: FinishedRendition) -> dict[str, Any]:
    columns = asdict(rendition)
    fps = columns.pop("fps")
    return {**columns, "frame_rate": None if fps is None else str(fps)}


def _measured(row: Rendition) -> FinishedRendition:
    names = {field.name for field in fields(FinishedRendition)} - {"fps"}
    columns = {name: getattr(row, name) for name in names}
    return FinishedRendition(fps=Fraction(row.frame_rate) if row.frame_rate else None, **columns)


async def begin_next(video_id: UUID, *, worker: str) -> OpenAttempt | None:
    """Take the lease on a ready video with a ladder to complete; None for other videos.

    The storyboard comes first, then a rendition for slow connections, and then the rest of the
    ladder together. After a failure, renditions are made one by one, so that a bad one doesn't hold
    up the others: the least tried and lowest first. A rendition fails after `MAX_TRIES` tries.
    Raises `HeldByAnother`.
    """
    async with attempts.opening() as opened:
        video = await lock_video(video_id)
        if video is None or video.status is not VideoStatus.READY or video.complete_job_id is None:
            return None
        earlier = await attempts.close_abandoned(video_id)
        if video.storyboard_tries is None:
            attempt = await _begin_renditions(video, earlier, worker)
        else:
            attempt = await _begin_storyboard(video, earlier, worker)
        opened.append(attempt)
    return attempt


async def _begin_storyboard(video: Video, earlier: Sequence[Attempt], worker: str) -> OpenAttempt:
    """Begin a pass for the storyboard, or an empty one if its tries are used up."""
    tries = video.storyboard_tries or 0
    has_tries = tries < MAX_TRIES
    await Video.filter(id=video.id).update(storyboard_tries=tries + 1 if has_tries else None)
    return await attempts.open_attempt(video, earlier, worker, makes_storyboard=has_tries)


async def _begin_renditions(video: Video, earlier: Sequence[Attempt], worker: str) -> OpenAttempt:
    planned = Rendition.filter(video_id=video.id, state=RenditionState.PLANNED)
    await planned.filter(tries__gte=MAX_TRIES).update(state=RenditionState.FAILED)
    rows = await _next_renditions(video, await planned.order_by("tries", "position"))
    targets = tuple(row.name for row in rows)
    attempt = await attempts.open_attempt(video, earlier, worker, targets=targets)
    await planned.filter(name__in=targets).update(
        attempt_number=attempt.number, tries=F("tries") + 1
    )
    return attempt


async def _next_renditions(video: Video, missing: Sequence[Rendition]) -> Sequence[Rendition]:
    """Return the missing renditions that the next pass makes."""
    if any(row.tries for row in missing):
        return missing[:1]
    encoded = Rendition.filter(video_id=video.id, kind=Kind.VIDEO, copied=False)
    has_encoded = await encoded.filter(state=RenditionState.COMPLETE).exists()
    sizes = {row.name: (row.width or 0, row.height or 0) for row in missing}
    pixels_per_s = sum(
        math.prod(sizes[row.name]) * Fraction(row.frame_rate or 0) for row in missing
    )
    if has_encoded or is_made_together(float(pixels_per_s), video.duration_s or 0.0):
        return missing
    # The only rendition that plays is a copy, which slow connections can't load.
    early = early_rendition(sizes)
    return [row for row in missing if row.name == early]


async def finish_pass(attempt: OpenAttempt, *, queue: Queue) -> bool:
    """Close the attempt and queue the next pass; return whether the ladder is complete.

    Each pass has its own job, so that videos that wait to be playable go first. Raises `LeaseLost`.
    """
    async with transaction():
        await lock_video(attempt.video_id)
        # An attempt without targets only writes the master playlist again.
        media_s = (attempt.video.duration_s or 0.0) if attempt.targets else 0.0
        await attempts.publish(attempt, media_s=media_s)
        if attempt.targets:
            await note_outcome(EventType.RENDITION_ADDED, attempt.video_id)
        return await _queue_next(attempt.video, queue)


async def finish_storyboard(attempt: OpenAttempt, *, queue: Queue) -> bool:
    """Record the storyboard and queue the next pass, as `finish_pass`.

    The attempt is deleted, because it made no rendition.
    """
    async with transaction():
        await lock_video(attempt.video_id)
        await attempts.withdraw(attempt)
        await Video.filter(id=attempt.video_id).update(has_storyboard=True, storyboard_tries=None)
        return await _queue_next(attempt.video, queue)


async def _queue_next(video: Video, queue: Queue) -> bool:
    """Queue the pass for planned renditions; return whether there are none."""
    planned = Rendition.filter(video_id=video.id, state=RenditionState.PLANNED)
    job_id = await defer_completion(video, queue) if await planned.exists() else None
    await Video.filter(id=video.id).update(complete_job_id=job_id)
    if job_id is None:
        await note_outcome(EventType.COMPLETED, video.id)
    return job_id is None


async def fail_missing(attempt: OpenAttempt, failure: Failure) -> None:
    """Fail the planned renditions of a video, which stays ready. Raises `LeaseLost`."""
    async with transaction():
        await lock_video(attempt.video_id)
        await attempts.fail(attempt, failure)
        planned = Rendition.filter(video_id=attempt.video_id, state=RenditionState.PLANNED)
        await planned.update(
            state=RenditionState.FAILED, error_code=failure.code, error_detail=failure.detail
        )
        await Video.filter(id=attempt.video_id).update(complete_job_id=None, storyboard_tries=None)
        await note_outcome(EventType.COMPLETED, attempt.video_id)


async def plan_again(video: Video, again: QuerySet[Rendition], queue: Queue) -> bool:
    """Plan renditions of a locked, ready video again; return whether there are any."""
    changed = await again.update(**PLANNED_ANEW)
    if changed and video.complete_job_id is None:
        job_id = await defer_completion(video, queue)
        await Video.filter(id=video.id).update(complete_job_id=job_id)
    return bool(changed)


async def plan_storyboard(video: Video, queue: Queue) -> None:
    """Plan the storyboard of a locked, ready video again."""
    job_id = video.complete_job_id or await defer_completion(video, queue)
    await Video.filter(id=video.id).update(
        has_storyboard=False, storyboard_tries=0, complete_job_id=job_id
    )
