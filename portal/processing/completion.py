"""What follows once a video plays: its storyboard, a rendition for slow lines, and the rest.

Each is a pass of its own. A function here is one transaction, under the lease of an attempt or the
lock on the video.
"""

from collections.abc import Sequence
from fractions import Fraction
from uuid import UUID

from tortoise.queryset import QuerySet

from portal.database.connection import transaction
from portal.database.models import Attempt, Rendition, Video
from portal.database.rows import lock_video
from portal.database.states import RenditionState, VideoStatus
from portal.processing import attempts
from portal.processing.attempts import Failure, OpenAttempt
from portal.processing.renditions import PLANNED_ANEW
from portal.queue.app import Queue
from portal.queue.enqueue import defer_completion
from portal.transcoding.packaging.master import Kind
from portal.transcoding.planning.ladder import early_rendition, is_made_together

MAX_TRIES = 3


async def begin(video_id: UUID, *, worker: str) -> OpenAttempt | None:
    """Take the lease on a ready video that is to be completed; None when it is not.

    The storyboard comes first, then a rendition for slow lines, and then the rest of the ladder
    together. What failed is made one at a time, so that a bad rendition holds up no other, the
    least tried and lowest first. What was tried in vain `MAX_TRIES` times has failed. Raises
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
    """Begin a pass for the storyboard; one that was tried too often is given up, with an empty."""
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
    pixels_per_s = sum(_pixels_per_s(row) for row in missing)
    if has_encoded or is_made_together(pixels_per_s, video.duration_s or 0.0):
        return missing
    # Only a copy plays so far.
    early = early_rendition({row.name: (row.width or 0, row.height or 0) for row in missing})
    return [row for row in missing if row.name == early]


def _pixels_per_s(row: Rendition) -> float:
    return (row.width or 0) * (row.height or 0) * float(Fraction(row.frame_rate or 0))


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
        return await _queue_next(attempt.video, queue)


async def finish_storyboard(attempt: OpenAttempt, *, queue: Queue) -> bool:
    """Record that there is a storyboard now; likewise.

    The attempt goes without a trace: it made no rendition.
    """
    async with transaction():
        await lock_video(attempt.video.id)
        await attempts.withdraw(attempt)
        await Video.filter(id=attempt.video.id).update(has_storyboard=True, storyboard_tries=None)
        return await _queue_next(attempt.video, queue)


async def _queue_next(video: Video, queue: Queue) -> bool:
    planned = Rendition.filter(video_id=video.id, state=RenditionState.PLANNED)
    job_id = await defer_completion(video, queue) if await planned.exists() else None
    await Video.filter(id=video.id).update(complete_job_id=job_id)
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
        await Video.filter(id=attempt.video.id).update(complete_job_id=None, storyboard_tries=None)


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
