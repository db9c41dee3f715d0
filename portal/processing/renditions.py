"""The renditions of a video in the database: planned, measured when made, or failed.

Each function is one transaction, under the lease of an attempt or the lock on the video. A
rendition counts as complete only once its row says so; master playlists are written from the rows,
never the other way round. Once a video plays, each later pass makes what is next: the storyboard,
a rendition for slow lines, and the rest.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any
from uuid import UUID

from tortoise.expressions import Q
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
from portal.queue.app import Queue
from portal.queue.enqueue import defer_completion, defer_encode
from portal.transcoding.encoding.transcode import PassOutput
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import FinishedRendition, Kind
from portal.transcoding.planning.ladder import Plan, early_rendition, is_made_together
from portal.transcoding.planning.storyboard import is_quickly_made
from portal.transcoding.probing.facts import Probe

# How often a rendition, or the storyboard, of a ready video is tried.
MAX_TRIES = 3
# Those of the file, for `videos.chapters`.
KEEP_CHAPTERS = """
INSERT INTO chapters (video_id, of_file) VALUES (%s, %s)
ON CONFLICT (video_id) DO UPDATE SET of_file = excluded.of_file
"""
# Columns of a rendition that is planned.
PLANNED_OF_VIDEO = ("name", "width", "height", "copied")
PLANNED_OF_TRACKS = ("name", "language", "label", "is_default")
PLANNED_ANEW = {
    "state": RenditionState.PLANNED,
    "attempt_number": None,
    "tries": 0,
    "error_code": None,
    "error_detail": None,
}


async def plan(attempt: OpenAttempt, planned: Plan, *, wanted: Collection[str]) -> None:
    """Record everything that is to be made, `wanted` and sound and subtitles by this attempt."""
    async with transaction():
        await lock_video(attempt.video_id)
        await attempts.hold(attempt)
        await _replace(attempt.video, planned)
        begun = ~Q(kind=Kind.VIDEO) | Q(name__in=wanted)
        rows = Rendition.filter(begun, video_id=attempt.video_id)
        await rows.update(attempt_number=attempt.number, tries=1)


async def queue_encode(
    attempt: OpenAttempt, planned: Plan, *, expected_s: float, queue: Queue
) -> None:
    """Record the plan, and leave its first pass, expected to take so long, to a job that encodes.

    The attempt is deleted, since that job begins another. Raises `LeaseLost`.
    """
    video = attempt.video
    async with transaction():
        await lock_video(video.id)
        await attempts.withdraw(attempt)
        await _replace(
            video,
            planned,
            encode_job_id=await defer_encode(video, queue, expected_s=expected_s),
            notes=video.notes,
            updated_at=NOW,
        )


async def publish(
    attempt: OpenAttempt,
    made: PassOutput,
    source: Probe,
    *,
    folders: Mapping[str, int],
    queue: Queue,
) -> None:
    """Make the video ready with what a first pass made of a source, and see to what is missing.

    `folders` are the numbers of the attempts that renditions begun earlier lie with. The job that
    makes the storyboard is queued in the same transaction. Raises `LeaseLost`.
    """
    video = attempt.video
    lowest = next(it for it in made.renditions if it.kind is Kind.VIDEO)
    key_distance_s = source.video.max_key_distance_s if lowest.copied else None
    is_quick = is_quickly_made(lowest, duration_s=made.duration_s, key_distance_s=key_distance_s)
    async with transaction():
        await lock_video(video.id)
        await attempts.publish(attempt, media_s=made.duration_s)
        await _record(attempt, made, folders)
        await _leave_to_make(attempt)
        changed = await Video.filter(id=video.id, status=VideoStatus.PROCESSING).update(
            status=VideoStatus.READY,
            published_attempt=attempt.number,
            complete_job_id=await defer_completion(video, queue, is_quick=is_quick),
            captions_job_id=await captions.adopt(video, made, queue),
            duration_s=made.duration_s,
            width=source.video.width,
            height=source.video.height,
            notes=[*video.notes, *(note.value for note in made.notes)],
            has_poster=made.has_poster,
            has_storyboard=False,
            storyboard_tries=0,
        )
        if not changed:
            raise LeaseLost
        if source.chapters:
            await execute(KEEP_CHAPTERS, video.id, json.dumps(source.chapters))
        await note_outcome(EventType.READY, video.id)


async def forget(attempt: OpenAttempt, names: Collection[str]) -> None:
    """Drop planned renditions that a newer version of the portal would no longer make."""
    await Rendition.filter(
        video_id=attempt.video_id, state=RenditionState.PLANNED, name__in=list(names)
    ).delete()


async def add(attempt: OpenAttempt, made: PassOutput, *, folders: Mapping[str, int]) -> None:
    """Record renditions made for a ready video; the attempt stays open. Raises `LeaseLost`.

    `folders` as in `publish`.
    """
    async with transaction():
        video = await lock_video(attempt.video_id)
        await attempts.hold(attempt)
        await _record(attempt, made, folders)
        notes = set(made.notes)
        if made.has_faults and await _withdraw_copy(attempt.video):
            notes.add(Note.COPY_UNDELIVERABLE)
        known = video.notes if video else []
        news = sorted(note.value for note in notes if note.value not in known)
        if news:
            await Video.filter(id=attempt.video_id).update(notes=[*known, *news])


async def complete(video: Video) -> list[tuple[str, FinishedRendition]]:
    """What the master playlist names, each with its folder relative to it: all complete renditions
    of picture and sound, and captions.
    """
    timed = Rendition.filter(video_id=video.id, state=RenditionState.COMPLETE)
    rows = await timed.exclude(kind=Kind.SUBTITLES)
    own = video.published_attempt
    folders = ("" if row.attempt_number == own else f"../{row.attempt_number}/" for row in rows)
    found = list(zip(folders, map(_measured, rows), strict=True))
    return [*found, *await captions.entries(video)] if found else []


async def lowest_complete(video: Video) -> Rendition:
    """A video rendition whose segments all later ones have to agree with."""
    [lowest] = (
        await Rendition.filter(video_id=video.id, kind=Kind.VIDEO, state=RenditionState.COMPLETE)
        .order_by("position")
        .limit(1)
    )
    return lowest


async def _replace(video: Video, planned: Plan, **values: object) -> None:
    """Record a plan, the probe's answer that it follows from, and these values of the video."""
    await Rendition.filter(video_id=video.id).delete()
    rows = [
        Rendition(video_id=video.id, position=position, **columns)
        for position, columns in enumerate(_planned(planned))
    ]
    await Rendition.bulk_create(rows)
    await Video.filter(id=video.id).update(probe_answer=video.probe_answer, **values)


def _planned(planned: Plan) -> Iterator[dict[str, Any]]:
    for rung in planned.video:
        columns = {name: getattr(rung, name) for name in PLANNED_OF_VIDEO}
        yield {"kind": Kind.VIDEO, "frame_rate": str(rung.fps), **columns}
    for kind, tracks in ((Kind.AUDIO, planned.audio), (Kind.SUBTITLES, planned.subtitles)):
        for track in tracks:
            yield {"kind": kind, **{name: getattr(track, name) for name in PLANNED_OF_TRACKS}}


async def _record(attempt: OpenAttempt, made: PassOutput, folders: Mapping[str, int]) -> None:
    await attempts.forget_made(attempt.video_id)
    for rendition in made.renditions:
        row = Rendition.filter(video_id=attempt.video_id, name=rendition.name)
        changed = await row.update(
            state=RenditionState.COMPLETE,
            attempt_number=folders.get(rendition.name, attempt.number),
            error_code=None,
            error_detail=None,
            **_measures(rendition),
        )
        if not changed:
            raise LookupError(f"rendition {rendition.name} was made but never planned")


async def _leave_to_make(attempt: OpenAttempt) -> None:
    """Leave the video renditions that a first pass did not make to later ones, as encodes.

    Only a first pass makes sound and subtitles, so what it left out cannot be had.
    """
    left = Rendition.filter(video_id=attempt.video_id, state=RenditionState.PLANNED)
    await left.exclude(kind=Kind.VIDEO).delete()
    await left.filter(attempt_number=attempt.number).update(**PLANNED_ANEW, copied=False)


async def _withdraw_copy(video: Video) -> bool:
    """Plan the copied rendition as an encode: players stop at faults that ffmpeg passes over."""
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
    """Take the lease on a ready video that is to be completed; None when it is not.

    The storyboard comes first, then a rendition for slow lines, and then the rest of the ladder
    together. What failed is made one at a time, so that a bad rendition holds up no other, the
    least tried and lowest first. What was tried `MAX_TRIES` times has failed. Raises
    `HeldByAnother`.
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
    """Begin a pass for the storyboard; tried too often, it is skipped with an empty attempt."""
    is_left = (video.storyboard_tries or 0) < MAX_TRIES
    tries = (video.storyboard_tries or 0) + 1 if is_left else None
    await Video.filter(id=video.id).update(storyboard_tries=tries)
    return await attempts.open_attempt(video, earlier, worker, makes_storyboard=is_left)


async def _begin_renditions(video: Video, earlier: Sequence[Attempt], worker: str) -> OpenAttempt:
    planned = Rendition.filter(video_id=video.id, state=RenditionState.PLANNED)
    await planned.filter(tries__gte=MAX_TRIES).update(state=RenditionState.FAILED)
    begun = await _next_to_make(video, await planned.order_by("tries", "position"))
    wanted = tuple(row.name for row in begun)
    attempt = await attempts.open_attempt(video, earlier, worker, wanted=wanted)
    for row in begun:
        row.attempt_number, row.tries = attempt.number, row.tries + 1
        await row.save(update_fields=["attempt_number", "tries"])
    return attempt


async def _next_to_make(video: Video, missing: Sequence[Rendition]) -> Sequence[Rendition]:
    if any(row.tries for row in missing):
        return missing[:1]
    encoded = Rendition.filter(video_id=video.id, kind=Kind.VIDEO, copied=False)
    has_encoded = await encoded.filter(state=RenditionState.COMPLETE).exists()
    sizes = {row.name: (row.width or 0, row.height or 0) for row in missing}
    pixels_per_s = sum(math.prod(sizes[it.name]) * Fraction(it.frame_rate or 0) for it in missing)
    if has_encoded or is_made_together(float(pixels_per_s), video.duration_s or 0.0):
        return missing
    # Only a copy plays so far.
    early = early_rendition(sizes)
    return [row for row in missing if row.name == early]


async def finish_pass(attempt: OpenAttempt, *, queue: Queue) -> bool:
    """Close the attempt; True when nothing is left to do, else another job was queued for it.

    A job of its own for each pass lets videos that wait to be playable go first. Raises
    `LeaseLost`.
    """
    async with transaction():
        await lock_video(attempt.video_id)
        # One without wanted renditions only writes the master playlist anew.
        media_s = (attempt.video.duration_s or 0.0) if attempt.wanted else 0.0
        await attempts.publish(attempt, media_s=media_s)
        if attempt.wanted:
            await note_outcome(EventType.RENDITION_ADDED, attempt.video_id)
        return await _queue_next(attempt.video, queue)


async def finish_storyboard(attempt: OpenAttempt, *, queue: Queue) -> bool:
    """Record that there is a storyboard, and queue what is left, as `finish_pass`.

    The attempt is deleted, since it made no rendition.
    """
    async with transaction():
        await lock_video(attempt.video_id)
        await attempts.withdraw(attempt)
        await Video.filter(id=attempt.video_id).update(has_storyboard=True, storyboard_tries=None)
        return await _queue_next(attempt.video, queue)


async def _queue_next(video: Video, queue: Queue) -> bool:
    planned = Rendition.filter(video_id=video.id, state=RenditionState.PLANNED)
    job_id = await defer_completion(video, queue) if await planned.exists() else None
    await Video.filter(id=video.id).update(complete_job_id=job_id)
    if job_id is None:
        await note_outcome(EventType.COMPLETED, video.id)
    return job_id is None


async def fail_missing(attempt: OpenAttempt, failure: Failure) -> None:
    """Fail all that is missing of a ready video, which stays ready. Raises `LeaseLost`."""
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
    """Plan these renditions of a locked, ready video again; False if there are none."""
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
