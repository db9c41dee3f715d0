"""The files that storage should hold of a ready video, and the jobs that make lost ones again."""

import posixpath
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from uuid import UUID

from portal.database.connection import lock_video, transaction
from portal.database.models import Attempt, Rendition, RenditionState, Version, Video, VideoStatus
from portal.features.captions import versions as caption_versions
from portal.films import captions, outputs, renditions
from portal.films.jobs import enqueue_completion
from portal.films.sources import holds_source
from portal.storage.bucket import Storage, objects_below
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_root
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.master import MASTER_NAME, Kind
from portal.transcoding.planning.storyboard import SPRITE_LINE, STORYBOARD_NAME
from portal.videos.poster import poster_key

FIX = "Run `portal doctor --deep --fix`, which enqueues the job that makes them again."


class Difference(StrEnum):
    """Kinds of difference between database and storage, in the order of printing.

    `label` names the differences of a kind, `remedy` says what the operator can do about them.
    """

    label: str
    remedy: str

    def __new__(cls, value: str, label: str, remedy: str) -> Self:
        """Create a member with its texts."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.label = label
        member.remedy = remedy
        return member

    SOURCE_MISSING = (
        "source_missing",
        "videos whose uploaded file is missing",
        "Restore the file from a backup, or upload it again and delete the video.",
    )
    SOURCE_CHANGED = (
        "source_changed",
        "videos whose uploaded file has changed",
        "If the file is the right one, restored with another ETag, write that ETag into the row of "
        "its version as `source_etag`; otherwise upload the file again and delete the video.",
    )
    RENDITION_INCOMPLETE = (
        "rendition_incomplete",
        "renditions with missing files",
        f"{FIX} Where it can't, upload the file again and delete the video.",
    )
    MASTER_MISSING = (
        "master_missing",
        "ready videos without a master playlist",
        FIX,
    )
    MASTER_OUTDATED = (
        "master_outdated",
        "master playlists that don't match the renditions",
        FIX,
    )
    CAPTIONS_INCOMPLETE = (
        "captions_incomplete",
        "captions with missing files",
        FIX,
    )
    POSTER_MISSING = (
        "poster_missing",
        "missing posters",
        "Choose a frame or upload a picture on the video's page.",
    )
    STORYBOARD_MISSING = (
        "storyboard_missing",
        "incomplete storyboards",
        FIX,
    )
    OBJECT_UNUSED = (
        "object_unused",
        "objects that no row refers to",
        "Delete them with a client of your storage once they are older than a day: newer ones may "
        "belong to an upload or an encode in progress.",
    )


MASTER_DIFFERENCES = {Difference.MASTER_MISSING, Difference.MASTER_OUTDATED}


@dataclass(frozen=True, slots=True)
class Defect:
    """Missing or wrong files of one part of a video."""

    kind: Difference
    name: str
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.missing:
            return self.name
        count = f" ({len(self.missing):,} files)" if len(self.missing) > 1 else ""
        return f"{self.name} without {self.missing[0]}{count}"


async def find_defects(video_id: UUID, storage: Storage) -> list[Defect]:
    """Return the defects of a ready video; an empty list for a video in another state."""
    video = await Video.get_or_none(id=video_id)
    if video is None or video.status is not VideoStatus.READY:
        return []
    root = output_root(video_id)
    published = video.published_attempt or 0
    names = {stored.key.removeprefix(root) async for stored in objects_below(root, storage)}
    defects = []
    playlists = set()
    for row in await _timed_renditions(video.version_id):
        folder = f"{row.attempt_number}/{row.name}"
        playlists.add(hls.media_playlist_name(folder))
        if missing := await _missing_files(root, folder, names, storage, kind=row.kind):
            defects.append(Defect(Difference.RENDITION_INCOMPLETE, row.name, missing))
    for folder in await captions.written_folders(video_id):
        playlists.add(hls.media_playlist_name(folder))
        if missing := await _missing_files(root, folder, names, storage, kind=Kind.SUBTITLES):
            defects.append(Defect(Difference.CAPTIONS_INCOMPLETE, folder, missing))
    defects += await _find_master_defects(video, playlists, names, storage)
    poster = poster_key(video).removeprefix(root)
    if video.has_poster and poster not in names:
        defects.append(Defect(Difference.POSTER_MISSING, poster))
    if video.has_storyboard:
        index = f"{published}/{STORYBOARD_NAME}"
        if missing := await _missing_sprites(root, index, names, storage):
            defects.append(Defect(Difference.STORYBOARD_MISSING, index, missing))
    return defects


async def _find_master_defects(
    video: Video, playlists: set[str], names: set[str], storage: Storage
) -> list[Defect]:
    """Compare the master playlist with the media playlists that it should name."""
    published = video.published_attempt or 0
    master = f"{published}/{MASTER_NAME}"
    text = await _read_text(output_root(video.id) + master, storage)
    if text is None:
        return [Defect(Difference.MASTER_MISSING, master)]
    if video.complete_job_id is not None or video.captions_job_id is not None:
        # The job adds complete renditions and captions to the master playlist last.
        return []
    named = outputs.named_playlists(text, published)
    wrong = (*sorted(playlists - named), *sorted(named - names))
    return [Defect(Difference.MASTER_OUTDATED, master, wrong)] if wrong else []


async def _timed_renditions(version_id: UUID) -> list[Rendition]:
    """Return the complete renditions of picture and sound; subtitles are checked as captions."""
    rows = Rendition.filter(version_id=version_id, state=RenditionState.COMPLETE)
    return await rows.exclude(kind=Kind.SUBTITLES)


async def _missing_files(
    root: str, folder: str, names: set[str], storage: Storage, *, kind: Kind
) -> tuple[str, ...]:
    playlist = hls.media_playlist_name(folder)
    text = await _read_text(root + playlist, storage)
    if text is None:
        return (playlist,)
    try:
        paths = (posixpath.join(folder, uri) for uri in hls.playlist_uris(text))
        expected = list(dict.fromkeys(map(posixpath.normpath, paths)))
    except hls.PlaylistError:
        return (playlist,)
    if kind is Kind.VIDEO:
        expected.append(f"{folder}/{hls.IFRAME_PLAYLIST_NAME}")
    return tuple(name for name in expected if name not in names)


async def _missing_sprites(
    root: str, index: str, names: set[str], storage: Storage
) -> tuple[str, ...]:
    folder = index.removesuffix(STORYBOARD_NAME)
    lines = SPRITE_LINE.finditer(await _read_text(root + index, storage) or "")
    return tuple(sorted({index, *(folder + line["name"] for line in lines)} - names))


async def _read_text(key: str, storage: Storage) -> str | None:
    """Return the text of a playlist; None if the object is missing or not UTF-8."""
    try:
        return (await storage.get(key)).decode()
    except (ObjectMissing, UnicodeDecodeError):
        return None


async def enqueue_missing(
    video_id: UUID, defects: Collection[Defect], *, storage: Storage
) -> set[Difference]:
    """Enqueue jobs that make lost files of a ready video again; return what they will repair.

    A video has one job for renditions and master playlist, so these are repaired one after the
    other, by two calls.
    """
    kinds = {defect.kind for defect in defects}
    lost = {defect.name for defect in defects if defect.kind is Difference.RENDITION_INCOMPLETE}
    video = await Video.get_or_none(id=video_id)
    has_source = (
        video is not None
        and bool(lost)
        and await holds_source(await video.current_version(), storage)
    )
    enqueued = set()
    async with transaction():
        video = await lock_video(video_id)
        if video is None or video.status is not VideoStatus.READY:
            return set()
        version = await video.current_version()
        if Difference.CAPTIONS_INCOMPLETE in kinds:
            await caption_versions.store_again(video_id)
            enqueued.add(Difference.CAPTIONS_INCOMPLETE)
        if lost:
            if has_source and await _plan_lost_renditions(version, lost):
                enqueued |= {Difference.RENDITION_INCOMPLETE, *MASTER_DIFFERENCES}
        elif kinds & MASTER_DIFFERENCES:
            # A pass without renditions only writes the master playlist.
            job_id = version.complete_job_id or await enqueue_completion(version)
            await Version.filter(id=version.id).update(complete_job_id=job_id)
            enqueued |= MASTER_DIFFERENCES
        if Difference.STORYBOARD_MISSING in kinds:
            await renditions.request_storyboard(version)
            enqueued.add(Difference.STORYBOARD_MISSING)
    return enqueued


async def _plan_lost_renditions(version: Version, names: Collection[str]) -> bool:
    """Plan lost renditions of a locked version again; return whether that is possible.

    Those of a cut are made by saving another one. Sound is made by a first pass only, and a later
    pass needs a complete rendition of the picture to cut segments at the same positions.
    """
    if version.base_id is not None:
        return False
    rows = await _timed_renditions(version.id)
    lost = [row for row in rows if row.name in names]
    has_reference = any(row.kind is Kind.VIDEO for row in rows if row not in lost)
    if not has_reference or any(row.kind is not Kind.VIDEO for row in lost):
        return False
    # The janitor removes the remaining files of the lost renditions.
    await Attempt.filter(version_id=version.id).update(is_swept=False)
    again = Rendition.filter(id__in=[row.id for row in lost])
    # Former cuts play the lost files. They get the new ones when they become current again.
    cut_ids = await Version.filter(base_id=version.id).values_list("id", flat=True)
    of_cuts = Rendition.filter(version_id__in=cut_ids, name__in=[row.name for row in lost])
    await of_cuts.update(**renditions.PLANNED_ANEW)
    return await renditions.plan_again(version, again)
