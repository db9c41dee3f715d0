"""The ways back from what a comparison found. Each answers why it can't be done, or nothing.

What is made again comes from the uploaded file, and only from the very file that was published.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from uuid import UUID

from portal.database.connection import transaction
from portal.database.models import Attempt, PosterRequest, Rendition, Video
from portal.database.rows import lock_video
from portal.database.states import RenditionState, VideoStatus
from portal.errors import NotPlayable, VideoNotFound
from portal.maintenance.consistency.comparison import Comparison
from portal.maintenance.consistency.findings import Repair
from portal.maintenance.rows import is_settled
from portal.processing import attempts, completion, masters
from portal.processing.sources import holds_source
from portal.queue.app import Queue
from portal.storage.bucket import Storage
from portal.storage.keys import output_prefix
from portal.storage.listing import entries_of
from portal.storage.objects import StoredObject
from portal.transcoding.packaging.master import Kind
from portal.videos import posters

CHANGED = "changed meanwhile; run it again"
# Where a poster is taken from when nobody chose a frame.
POSTER_SHARE = 0.1


def once(repair: Repair) -> Repair:
    """A repair of several differences at once; it is carried out for the first of them."""
    answers: list[str | None] = []

    async def carry_out() -> str | None:
        if not answers:
            answers.append(await repair())
        return answers[0]

    return carry_out


async def make_again(video_id: UUID, names: Sequence[str], run: Comparison) -> str | None:
    """Queue lost renditions of a ready video.

    Alone, if segments to go by are left; else the video is transcoded anew, as is the only way to
    sound and subtitles. Until then it is processing: it could not be played well anyway.
    """
    video = await Video.get_or_none(id=video_id)
    if video is None or not await holds_source(video, run.storage):
        return "can't be repaired: the uploaded file is gone or another one; upload it again"
    async with transaction():
        found = await lock_video(video_id)
        if found is None or found.status is not VideoStatus.READY:
            return CHANGED
        rows = await Rendition.filter(video_id=video_id, state=RenditionState.COMPLETE)
        lost = [row for row in rows if row.name in names]
        if _can_be_completed(rows, lost):
            await _plan_again(found, lost, run.queue)
        else:
            await _start_again(found, run.queue)
            return None
    await masters.put_master(found, run.storage)
    return None


async def write_master(video_id: UUID, storage: Storage) -> str | None:
    """Write the master playlist of a ready video from its rows."""
    video = await Video.get_or_none(id=video_id)
    if video is None or video.status is not VideoStatus.READY:
        return None
    rows = await Rendition.filter(video_id=video_id, state=RenditionState.COMPLETE)
    if not any(row.kind is Kind.VIDEO for row in rows):
        return "can't be repaired: no rendition is left"
    unknown = await _unknown_folders(video, storage)
    if unknown:
        return f"can't be repaired: {', '.join(unknown)} is in no row of the database"
    await masters.put_master(video, storage)
    return None


async def cut_poster(video_id: UUID, queue: Queue) -> None:
    """Queue the frame that was chosen, or one near the beginning, as the poster.

    A picture that was sent is lost with the poster that was made of it.
    """
    chosen = await PosterRequest.get_or_none(video_id=video_id)
    video = await Video.get_or_none(id=video_id)
    duration_s = (video.duration_s if video else None) or 0.0
    time_s = duration_s * POSTER_SHARE
    if chosen is not None and chosen.time_s is not None:
        time_s = chosen.time_s
    # If not, it is made anew, with all that belongs to it, or was deleted.
    with suppress(VideoNotFound, NotPlayable):
        await posters.request_poster(video_id, time_s=time_s, queue=queue)


async def make_storyboard(video_id: UUID, queue: Queue) -> None:
    """Have the storyboard of a ready video made again."""
    async with transaction():
        video = await lock_video(video_id)
        if video is not None and video.status is VideoStatus.READY:
            await completion.plan_storyboard(video, queue)


async def remove_unused(
    video_id: UUID, found: Sequence[StoredObject], run: Comparison
) -> str | None:
    """Remove objects that nothing of a video refers to, unless it is worked on by now."""
    async with transaction():
        video = await lock_video(video_id)
        if video is not None and not await is_settled(video_id, run.cutoffs.settled_since):
            return CHANGED
        if await Attempt.filter(video_id=video_id, outcome=None).exists():
            return "an attempt is still open; the janitor closes it first"
    for stored in found:
        await run.storage.delete(stored.key)
    return None


def _can_be_completed(rows: Collection[Rendition], lost: Collection[Rendition]) -> bool:
    """Whether a later pass can make what is lost: video, by the segments of what is left of it."""
    is_video_left = any(row.kind is Kind.VIDEO for row in rows if row not in lost)
    return is_video_left and all(row.kind is Kind.VIDEO for row in lost)


async def _plan_again(video: Video, lost: Sequence[Rendition], queue: Queue) -> None:
    await completion.plan_again(video, Rendition.filter(id__in=[row.id for row in lost]), queue)
    numbers = [row.attempt_number for row in lost]
    await Attempt.filter(video_id=video.id, number__in=numbers).update(is_swept=False)


async def _start_again(video: Video, queue: Queue) -> None:
    await Attempt.filter(video_id=video.id).update(is_swept=False)
    await Rendition.filter(video_id=video.id).delete()
    # A poster that an editor chose lies with what is lost.
    await PosterRequest.filter(video_id=video.id).delete()
    await attempts.start_again(video, queue)


async def _unknown_folders(video: Video, storage: Storage) -> list[str]:
    """Folders beside the master playlist that no row knows, such as the sound of old videos."""
    prefix = output_prefix(video.id, video.published_attempt or 0)
    known = {row.name for row in await Rendition.filter(video_id=video.id)}
    folders = [it async for it in entries_of(prefix, storage) if isinstance(it, str)]
    names = [folder.removeprefix(prefix).rstrip("/") for folder in folders]
    return [name for name in names if name not in known]
