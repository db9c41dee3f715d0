"""The renditions of a video in the database: planned, measured when made, given up.

Each function is one transaction under the lease of an attempt. A rendition counts as complete
only once its row says so; master playlists are written from the rows, never the other way round.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any
from uuid import UUID

from tortoise.queryset import QuerySet

from portal.database.connection import transaction
from portal.database.lease import LeaseLost
from portal.database.models import Rendition, RenditionState, Video, VideoStatus
from portal.database.rows import NOW, lock_video
from portal.processing import attempts
from portal.processing.attempts import Failure, OpenAttempt
from portal.queue.app import Queue
from portal.queue.enqueue import defer_completion, defer_encode
from portal.transcoding.encoding.transcode import PassOutput
from portal.transcoding.packaging.master import FinishedRendition, Kind
from portal.transcoding.planning.ladder import Plan
from portal.transcoding.probing.facts import Probe

MAX_TRIES = 3
# Columns of a rendition that is planned.
PLANNED_OF_VIDEO = ("name", "width", "height", "copied")
PLANNED_OF_TRACKS = ("name", "language", "label", "is_default")


async def plan(attempt: OpenAttempt, planned: Plan, *, wanted: Collection[str]) -> None:
    """Record everything that is to be made, `wanted` and sound and subtitles by this attempt."""
    rows = _rows(attempt.video, planned)
    for row in rows:
        if row.kind is not Kind.VIDEO or row.name in wanted:
            row.attempt_number, row.tries = attempt.number, 1
    async with transaction():
        await lock_video(attempt.video.id)
        await attempts.hold(attempt)
        await _replace(attempt.video, rows)


async def queue_encode(
    attempt: OpenAttempt, planned: Plan, *, expected_s: float, queue: Queue
) -> None:
    """Record the plan, and leave its first pass, expected to take so long, to a job that encodes.

    The attempt goes without a trace: the pass is one of its own. Raises `LeaseLost`.
    """
    video = attempt.video
    async with transaction():
        await lock_video(video.id)
        await attempts.withdraw(attempt)
        await _replace(video, _rows(video, planned))
        job_id = await defer_encode(video, queue, expected_s=expected_s)
        await Video.filter(id=video.id).update(transcode_job_id=job_id, updated_at=NOW)


async def publish(attempt: OpenAttempt, made: PassOutput, source: Probe, *, queue: Queue) -> None:
    """Make the video ready with what a first pass made of a source, and see to what is missing.

    The job that completes the ladder is queued in the same transaction. Raises `LeaseLost`.
    """
    async with transaction():
        await lock_video(attempt.video.id)
        await attempts.publish(attempt, media_s=made.duration_s)
        await _record(attempt, made)
        missing = await _left_to_make(attempt)
        job_id = await defer_completion(attempt.video, queue) if missing else None
        changed = await Video.filter(id=attempt.video.id, status=VideoStatus.PROCESSING).update(
            status=VideoStatus.READY,
            published_attempt=attempt.number,
            complete_job_id=job_id,
            duration_s=made.duration_s,
            width=source.video.width,
            height=source.video.height,
            notes=[note.value for note in made.notes],
            has_poster=made.has_poster,
            has_storyboard=made.has_storyboard,
            updated_at=NOW,
        )
        if not changed:
            raise LeaseLost


async def begin_completion(video_id: UUID, *, worker: str) -> OpenAttempt | None:
    """Take the lease on a ready video that is to be completed; None when it is not.

    All that is missing is tried together once; what failed then is made one at a time, so that a
    bad rendition holds up no other, the least tried and lowest first. What was tried in vain
    `MAX_TRIES` times has failed. Raises `HeldByAnother`.
    """
    async with attempts.opening() as opened:
        video = await lock_video(video_id)
        if video is None or video.status is not VideoStatus.READY or video.complete_job_id is None:
            return None
        earlier = await attempts.close_abandoned(video_id)
        planned = Rendition.filter(video_id=video_id, state=RenditionState.PLANNED)
        await planned.filter(tries__gte=MAX_TRIES).update(state=RenditionState.FAILED)
        missing = await planned.order_by("tries", "position")
        alone = any(row.tries for row in missing)
        begun = missing[:1] if alone else missing
        wanted = tuple(row.name for row in begun)
        attempt = await attempts.open_attempt(video, earlier, worker, wanted=wanted)
        opened.append(attempt)
        for row in begun:
            row.attempt_number, row.tries = attempt.number, row.tries + 1
            await row.save(update_fields=["attempt_number", "tries"])
    return attempt


async def plan_again(video: Video, again: QuerySet[Rendition], queue: Queue) -> bool:
    """Plan these renditions of a locked, ready video again; False if there are none."""
    changed = await again.update(
        state=RenditionState.PLANNED,
        attempt_number=None,
        tries=0,
        error_code=None,
        error_detail=None,
    )
    if changed and video.complete_job_id is None:
        job_id = await defer_completion(video, queue)
        await Video.filter(id=video.id).update(complete_job_id=job_id)
    return bool(changed)


async def forget(attempt: OpenAttempt, names: Collection[str]) -> None:
    """Drop planned renditions that a newer version of the portal would no longer make."""
    await Rendition.filter(
        video_id=attempt.video.id, state=RenditionState.PLANNED, name__in=list(names)
    ).delete()


async def add(attempt: OpenAttempt, made: PassOutput) -> None:
    """Record renditions made for a ready video; the attempt stays open. Raises `LeaseLost`."""
    async with transaction():
        video = await lock_video(attempt.video.id)
        await attempts.hold(attempt)
        await _record(attempt, made)
        known = video.notes if video else []
        news = [note.value for note in made.notes if note.value not in known]
        if news:
            await Video.filter(id=attempt.video.id).update(notes=[*known, *news])


async def finish(attempt: OpenAttempt, *, queue: Queue) -> bool:
    """Close the attempt; True when nothing is left to do, else another job was queued for it.

    A job of its own for each pass lets videos that wait to be playable go first. Raises
    `LeaseLost`.
    """
    async with transaction():
        await lock_video(attempt.video.id)
        # One without wanted renditions only writes the master playlist anew.
        media_s = (attempt.video.duration_s or 0.0) if attempt.wanted else 0.0
        await attempts.publish(attempt, media_s=media_s)
        planned = Rendition.filter(video_id=attempt.video.id, state=RenditionState.PLANNED)
        job_id = None
        if await planned.exists():
            job_id = await defer_completion(attempt.video, queue)
        await Video.filter(id=attempt.video.id).update(complete_job_id=job_id)
    return job_id is None


async def give_up(attempt: OpenAttempt, failure: Failure) -> None:
    """Fail all that is missing of a ready video, which stays ready. Raises `LeaseLost`."""
    async with transaction():
        await lock_video(attempt.video.id)
        await attempts.fail(attempt, failure)
        planned = Rendition.filter(video_id=attempt.video.id, state=RenditionState.PLANNED)
        await planned.update(
            state=RenditionState.FAILED, error_code=failure.code, error_detail=failure.detail
        )
        await Video.filter(id=attempt.video.id).update(complete_job_id=None)


async def complete(video: Video) -> list[tuple[str, FinishedRendition]]:
    """All complete renditions, each with its folder relative to the video's master playlist."""
    rows = await Rendition.filter(video_id=video.id, state=RenditionState.COMPLETE)
    return [(_folder(row, video), _measured(row)) for row in rows]


async def lowest_complete(video: Video) -> Rendition:
    """The video rendition whose segments all later ones have to agree with."""
    [lowest] = await Rendition.filter(
        video_id=video.id,
        kind=Kind.VIDEO,
        state=RenditionState.COMPLETE,
        attempt_number=video.published_attempt,
    ).limit(1)
    return lowest


def _rows(video: Video, planned: Plan) -> list[Rendition]:
    return [
        Rendition(video_id=video.id, position=position, **members)
        for position, members in enumerate(_planned(planned))
    ]


async def _replace(video: Video, rows: Sequence[Rendition]) -> None:
    await Rendition.filter(video_id=video.id).delete()
    await Rendition.bulk_create(rows)


def _planned(planned: Plan) -> Iterator[dict[str, Any]]:
    for rung in planned.video:
        columns = {name: getattr(rung, name) for name in PLANNED_OF_VIDEO}
        yield {"kind": Kind.VIDEO, "frame_rate": str(rung.fps), **columns}
    for kind, tracks in ((Kind.AUDIO, planned.audio), (Kind.SUBTITLES, planned.subtitles)):
        for track in tracks:
            yield {"kind": kind, **{name: getattr(track, name) for name in PLANNED_OF_TRACKS}}


async def _record(attempt: OpenAttempt, made: PassOutput) -> None:
    for rendition in made.renditions:
        row = Rendition.filter(video_id=attempt.video.id, name=rendition.name)
        changed = await row.update(
            state=RenditionState.COMPLETE,
            attempt_number=attempt.number,
            error_code=None,
            error_detail=None,
            **_measures(rendition),
        )
        if not changed:
            raise LookupError(f"rendition {rendition.name} was made but never planned")


async def _left_to_make(attempt: OpenAttempt) -> bool:
    """Whether video renditions are missing after a first pass.

    Only a first pass makes sound and subtitles, so what it left out cannot be had. A video
    rendition that it left out could not be copied; it has yet to be tried as an encode.
    """
    left = Rendition.filter(video_id=attempt.video.id, state=RenditionState.PLANNED)
    await left.exclude(kind=Kind.VIDEO).delete()
    await left.filter(attempt_number=attempt.number).update(
        attempt_number=None, tries=0, copied=False
    )
    return await left.exists()


def _measures(rendition: FinishedRendition) -> dict[str, Any]:
    columns = asdict(rendition)
    fps = columns.pop("fps")
    return {**columns, "frame_rate": None if fps is None else str(fps)}


def _measured(row: Rendition) -> FinishedRendition:
    names = {field.name for field in fields(FinishedRendition)} - {"fps"}
    columns = {name: getattr(row, name) for name in names}
    return FinishedRendition(fps=Fraction(row.frame_rate) if row.frame_rate else None, **columns)


def _folder(row: Rendition, video: Video) -> str:
    return "" if row.attempt_number == video.published_attempt else f"../{row.attempt_number}/"
