"""Looks whether storage has every file that playing a video takes, and what it has besides."""

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal.database.models import Rendition, Video
from portal.database.states import RenditionState, VideoStatus
from portal.maintenance.consistency.findings import Difference
from portal.maintenance.rows import is_settled
from portal.processing.references import named_playlists, used_folders
from portal.storage.bucket import Storage
from portal.storage.errors import ObjectMissing
from portal.storage.keys import output_prefix, output_root
from portal.storage.listing import objects_below
from portal.storage.objects import StoredObject
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.master import MASTER_NAME, Kind
from portal.transcoding.planning.storyboard import SPRITE_LINE, STORYBOARD_NAME
from portal.videos.posters import poster_key

MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Defect:
    """What is wrong with which part of a video."""

    kind: Difference
    name: str
    detail: str = ""


async def examine_video(video_id: UUID, storage: Storage) -> list[Defect]:
    """What is missing of a ready video; nothing for another one."""
    video = await Video.get_or_none(id=video_id)
    if video is None or video.status is not VideoStatus.READY:
        return []
    root = output_root(video_id)
    names = {stored.key.removeprefix(root) async for stored in objects_below(root, storage)}
    rows = await Rendition.filter(video_id=video_id, state=RenditionState.COMPLETE)
    defects = [defect async for defect in _renditions(rows, names, root, storage)]
    defects += [defect async for defect in _master(video, rows, names, storage)]
    defects += [defect async for defect in _pictures(video, names, storage)]
    return defects


async def unused_objects(
    video_id: UUID, settled_since: datetime, storage: Storage
) -> list[StoredObject]:
    """Objects of a video, by key, that nothing of it refers to and nobody still writes or plays."""
    video = await Video.get_or_none(id=video_id)
    if video is None or not await is_settled(video_id, settled_since):
        return []
    used = await used_folders(video, storage)
    if used is None:
        return []
    found = [stored async for stored in objects_below(output_root(video_id), storage)]
    return [
        stored
        for stored in sorted(found, key=lambda it: it.key)
        if stored.written_at < settled_since and not _is_used(stored.key, video, used)
    ]


def _is_used(key: str, video: Video, used: Collection[str]) -> bool:
    name = key.removeprefix(output_root(video.id))
    folder = name.rpartition("/")[0] + "/"
    if folder.count("/") > 1:
        return folder in used
    if folder != f"{video.published_attempt}/":
        return False
    # Posters are tidied up by who replaces them, and later ones may be on their way.
    return not video.poster_version or key != poster_key(video.id, video.published_attempt or 0, 0)


async def _renditions(
    rows: list[Rendition], names: Collection[str], root: str, storage: Storage
) -> AsyncIterator[Defect]:
    for row in rows:
        folder = f"{row.attempt_number}/"
        playlist = folder + hls.media_playlist_name(row.name)
        wanted = [playlist]
        if row.kind is Kind.VIDEO:
            wanted.append(f"{folder}{row.name}/{hls.IFRAME_PLAYLIST_NAME}")
        if playlist in names:
            wanted += await _segments(playlist, root, storage)
        missing = [name for name in wanted if name not in names]
        if missing:
            yield Defect(Difference.RENDITION_INCOMPLETE, row.name, _without(missing))


async def _segments(playlist: str, root: str, storage: Storage) -> list[str]:
    folder = playlist.rpartition("/")[0]
    try:
        text = (await storage.get(root + playlist)).decode()
    except (ObjectMissing, UnicodeDecodeError, hls.PlaylistError):
        return [playlist + " (unreadable)"]
    return [f"{folder}/{uri}" for uri in dict.fromkeys(hls.playlist_uris(text))]


async def _master(
    video: Video, rows: list[Rendition], names: Collection[str], storage: Storage
) -> AsyncIterator[Defect]:
    published = video.published_attempt or 0
    name = f"{published}/{MASTER_NAME}"
    if name not in names:
        yield Defect(Difference.MASTER_MISSING, name)
        return
    try:
        text = (await storage.get(output_prefix(video.id, published) + MASTER_NAME)).decode()
    except ObjectMissing:
        return
    named = named_playlists(text, published)
    whole = {f"{row.attempt_number}/{hls.media_playlist_name(row.name)}" for row in rows}
    wrong = sorted(whole - named) + sorted(named - set(names))
    # What is complete joins the playlist last, while the video is being completed.
    if wrong and video.complete_job_id is None:
        yield Defect(Difference.MASTER_OUTDATED, name, _without(wrong))


async def _pictures(
    video: Video, names: Collection[str], storage: Storage
) -> AsyncIterator[Defect]:
    root, published = output_root(video.id), video.published_attempt or 0
    poster = poster_key(video.id, published, video.poster_version).removeprefix(root)
    if video.has_poster and poster not in names:
        yield Defect(Difference.POSTER_MISSING, poster)
    if video.has_storyboard:
        index = f"{published}/{STORYBOARD_NAME}"
        missing = [name async for name in _storyboard(index, root, storage) if name not in names]
        if missing:
            yield Defect(Difference.STORYBOARD_MISSING, index, _without(missing))


async def _storyboard(index: str, root: str, storage: Storage) -> AsyncIterator[str]:
    yield index
    try:
        text = (await storage.get(root + index)).decode()
    except ObjectMissing:
        return
    for name in sorted({match["name"] for match in SPRITE_LINE.finditer(text)}):
        yield f"{index.rpartition('/')[0]}/{name}"


def _without(missing: list[str]) -> str:
    shown = ", ".join(missing[:MAX_NAMED])
    rest = len(missing) - MAX_NAMED
    return f"without {shown}" + (f" and {rest:,} more" if rest > 0 else "")
