"""What storage holds of one video, against what its rows and playlists name, and the ways back.

What is lost is made again from the uploaded file, and only from the very file that was published.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from uuid import UUID

from portal.database.connection import lock_video, transaction
from portal.database.models import (
    Attempt,
    PosterRequest,
    Rendition,
    RenditionState,
    Video,
    VideoStatus,
)
from portal.errors import NotPlayable, VideoNotFound
from portal.processing import attempts, captions, outputs, renditions
from portal.processing.sources import holds_source
from portal.queue.app import Queue
from portal.storage.bucket import Storage, entries_of, objects_below
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix, output_root
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.master import MASTER_NAME, Kind
from portal.transcoding.planning.storyboard import SPRITE_LINE, STORYBOARD_NAME
from portal.videos import posters

# Where a poster is taken from when nobody chose a frame.
POSTER_SHARE = 0.1


class Difference(StrEnum):
    """What can differ between database and storage, with its words, in the order of printing."""

    label: str

    def __new__(cls, value: str, label: str) -> Self:
        member = str.__new__(cls, value)
        member._value_, member.label = value, label
        return member

    SOURCE_MISSING = "source_missing", "videos whose uploaded file is gone"
    SOURCE_CHANGED = "source_changed", "videos whose uploaded file is another one"
    RENDITION_INCOMPLETE = "rendition_incomplete", "renditions with missing files"
    MASTER_MISSING = "master_missing", "ready videos without a master playlist"
    MASTER_OUTDATED = "master_outdated", "master playlists that don't name what is there"
    CAPTIONS_INCOMPLETE = "captions_incomplete", "captions with missing files"
    POSTER_MISSING = "poster_missing", "missing posters"
    STORYBOARD_MISSING = "storyboard_missing", "incomplete storyboards"
    OBJECT_UNUSED = "object_unused", "objects that nothing refers to"


# What queues the job that makes it again.
MADE_BY_JOBS = {
    Difference.STORYBOARD_MISSING: renditions.plan_storyboard,
    Difference.CAPTIONS_INCOMPLETE: captions.store_again,
}


@dataclass(frozen=True, slots=True)
class Defect:
    """What is wrong with which part of a video."""

    kind: Difference
    name: str
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = f" ({len(self.missing):,} files)" if len(self.missing) > 1 else ""
        return f"{self.name} without {self.missing[0]}{count}" if self.missing else self.name


async def find_defects(video_id: UUID, storage: Storage) -> list[Defect]:
    """What is missing of a ready video; nothing for another one."""
    video = await Video.get_or_none(id=video_id)
    if video is None or video.status is not VideoStatus.READY:
        return []
    root, published = output_root(video_id), video.published_attempt or 0
    names = {stored.key.removeprefix(root) async for stored in objects_below(root, storage)}
    rows = await _timed_renditions(video_id)
    tracks = await captions.written_folders(video_id)
    found = [
        Defect(Difference.RENDITION_INCOMPLETE, row.name, missing)
        for row in rows
        if (missing := await _missing_files(root, _folder(row), names, storage, kind=row.kind))
    ]
    found += [
        Defect(Difference.CAPTIONS_INCOMPLETE, folder, missing)
        for folder in tracks
        if (missing := await _missing_files(root, folder, names, storage))
    ]
    master = f"{published}/{MASTER_NAME}"
    text = await _text_of(root + master, storage)
    if text is None:
        found.append(Defect(Difference.MASTER_MISSING, master))
    # What is complete joins the playlist last, while the video is being completed.
    elif video.complete_job_id is None and video.captions_job_id is None:
        named = outputs.named_playlists(text, published)
        whole = {hls.media_playlist_name(it) for it in (*map(_folder, rows), *tracks)}
        if wrong := (*sorted(whole - named), *sorted(named - names)):
            found.append(Defect(Difference.MASTER_OUTDATED, master, wrong))
    poster = posters.poster_key(video.id, published, video.poster_version).removeprefix(root)
    if video.has_poster and poster not in names:
        found.append(Defect(Difference.POSTER_MISSING, poster))
    if video.has_storyboard:
        index = f"{published}/{STORYBOARD_NAME}"
        lines = SPRITE_LINE.finditer(await _text_of(root + index, storage) or "")
        wanted = {index, *(f"{published}/{line['name']}" for line in lines)}
        if missing := tuple(sorted(wanted - names)):
            found.append(Defect(Difference.STORYBOARD_MISSING, index, missing))
    return found


async def _timed_renditions(video_id: UUID) -> list[Rendition]:
    """The complete ones of picture and sound; those of text are kept as captions."""
    rows = Rendition.filter(video_id=video_id, state=RenditionState.COMPLETE)
    return await rows.exclude(kind=Kind.SUBTITLES)


def _folder(row: Rendition) -> str:
    return f"{row.attempt_number}/{row.name}"


async def _missing_files(
    root: str, folder: str, names: set[str], storage: Storage, *, kind: Kind = Kind.SUBTITLES
) -> tuple[str, ...]:
    playlist = hls.media_playlist_name(folder)
    text = await _text_of(root + playlist, storage)
    if text is None:
        return (playlist,)
    try:
        wanted = [f"{folder}/{uri}" for uri in dict.fromkeys(hls.playlist_uris(text))]
    except hls.PlaylistError:
        return (playlist,)
    if kind is Kind.VIDEO:
        wanted.append(f"{folder}/{hls.IFRAME_PLAYLIST_NAME}")
    return tuple(name for name in wanted if name not in names)


async def _text_of(key: str, storage: Storage) -> str | None:
    """A playlist; None when it is missing or no text."""
    try:
        return (await storage.get(key)).decode()
    except (ObjectMissing, UnicodeDecodeError):
        return None


async def make_again(
    video_id: UUID, defects: Collection[Defect], *, storage: Storage, queue: Queue
) -> str:
    """Queue what a ready video lost, and write its master playlist; answers why that can't be.

    Renditions are made alone, if segments to go by are left; else the video is transcoded anew, as
    is the only way to sound and subtitles. Until then it is processing: it could not be played
    well anyway.
    """
    kinds = {defect.kind for defect in defects}
    is_master_wrong = not kinds <= {Difference.POSTER_MISSING, *MADE_BY_JOBS}
    names = {it.name for it in defects if it.kind is Difference.RENDITION_INCOMPLETE}
    video = await Video.get_or_none(id=video_id)
    if names and (video is None or not await holds_source(video, storage)):
        return "can't be repaired: the uploaded file is gone or another one; upload it again"
    async with transaction():
        video = await lock_video(video_id)
        if video is None or video.status is not VideoStatus.READY:
            return "changed meanwhile; run it again"
        rows = await _timed_renditions(video_id)
        lost = [row for row in rows if row.name in names]
        is_video_left = any(row.kind is Kind.VIDEO for row in rows if row not in lost)
        if lost and await _make_renditions(video, lost, is_video_left=is_video_left, queue=queue):
            return ""
        for kind in kinds & MADE_BY_JOBS.keys():
            await MADE_BY_JOBS[kind](video, queue)
    if is_master_wrong:
        if not is_video_left:
            return "can't be repaired: no rendition is left"
        if unknown := await _unknown_folders(video, storage):
            return f"can't be repaired: {', '.join(unknown)} is in no row of the database"
        await outputs.put_master(video, storage)
    if Difference.POSTER_MISSING in kinds:
        # The frame that was chosen, or one near the beginning in place of a lost picture.
        chosen = await PosterRequest.get_or_none(video_id=video.id)
        time_s = (video.duration_s or 0.0) * POSTER_SHARE
        if chosen is not None and chosen.time_s is not None:
            time_s = chosen.time_s
        with suppress(VideoNotFound, NotPlayable):
            await posters.request_poster(video.id, time_s=time_s, queue=queue)
    return ""


async def _make_renditions(
    video: Video, lost: Collection[Rendition], *, is_video_left: bool, queue: Queue
) -> bool:
    """Queue lost renditions alone, or the whole video; answers whether the whole."""
    # The janitor removes what is left of them.
    await Attempt.filter(video_id=video.id).update(is_swept=False)
    if is_video_left and all(row.kind is Kind.VIDEO for row in lost):
        again = Rendition.filter(id__in=[row.id for row in lost])
        await renditions.plan_again(video, again, queue)
        await video.refresh_from_db(fields=["complete_job_id"])
        return False
    await Rendition.filter(video_id=video.id).delete()
    # A poster that an editor chose lies with what is lost.
    await PosterRequest.filter(video_id=video.id).delete()
    await attempts.start_again(video, queue)
    return True


async def _unknown_folders(video: Video, storage: Storage) -> list[str]:
    """Folders beside the master playlist that no row knows, such as the sound of old videos."""
    prefix = output_prefix(video.id, video.published_attempt or 0)
    known = {row.name for row in await Rendition.filter(video_id=video.id)}
    folders = [it async for it in entries_of(prefix, storage) if isinstance(it, str)]
    names = [folder.removeprefix(prefix).rstrip("/") for folder in folders]
    return [name for name in names if name not in known]
