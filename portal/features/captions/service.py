"""Captions of a video: saved by editors, one track for each language, and stored by a job.

A save is one transaction, and keeps the text in the database. The job writes the text to storage in
segments, under a name that no other version has, and then names it in the master playlist. So
players on other sites find a whole version at any time. The portal's own player loads the text.

A track may have 4 MiB of text, and a video 100 tracks: queries leave out text that isn't needed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

from tortoise.expressions import F, Q

from portal.database.connection import Row, fetch_rows, transaction
from portal.database.models import Caption, CaptionSource, Publication, Video, VideoStatus
from portal.errors import (
    CaptionsChanged,
    CaptionsExist,
    CaptionsNotFound,
    FieldError,
    InvalidRequest,
    StorageUnavailable,
    TooManyCaptions,
)
from portal.events.log import AuditAction, record_action
from portal.films.captions import (
    CAPTIONS,
    CaptionText,
    Keep,
    captions_root,
    folder_name,
    served_folders,
    whole_text_of,
)
from portal.films.outputs import put_master
from portal.films.removal import remove_again, remove_below
from portal.locale.messages import Message
from portal.queue.tools import Tools
from portal.queue.tries import TriesExhausted, counted_try
from portal.storage.bucket import Storage, entries_of
from portal.transcoding.captions.reading import CaptionContents, ReadOptions, read_captions
from portal.transcoding.encoding.assembly import caption_segment, put_captions
from portal.transcoding.encoding.sink import CONTENT_TYPES
from portal.transcoding.packaging.webvtt import read_webvtt
from portal.transcoding.planning.kept import Kept
from portal.transcoding.planning.tracks import attribute_text, language_name, language_tag
from portal.videos.reading import check_version, locked_video

logger = logging.getLogger(__name__)

MAX_TRACKS = 100
MAX_LANGUAGE_LENGTH = 60
MAX_LABEL_LENGTH = 100
NOT_STORED = "captions_not_stored"
UNKNOWN_LANGUAGE = Message("Give a language by its BCP 47 tag, like en, pt-BR or zh-Hant.")
SIZES = """
SELECT language, label, octet_length(text) AS size_bytes FROM captions
WHERE video_id = %s AND text IS NOT NULL ORDER BY is_default DESC, label
"""
# All columns but the text and its search document.
LISTED = (
    "id",
    "video_id",
    "language",
    "label",
    "is_default",
    "source",
    "rendition",
    "cue_count",
    "version",
    "written_version",
    "error_code",
    "changed_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionChange:
    """A change of captions by people or a machine; None leaves a value as it is."""

    content: CaptionText | None = None
    source: CaptionSource = CaptionSource.UPLOAD
    label: str | None = None
    is_default: bool | None = None


async def list_captions(video_id: UUID) -> list[Caption]:
    """Return the captions of a video without their text, the default ones first."""
    return await Caption.filter(video_id=video_id).only(*LISTED)


async def list_sizes(video_id: UUID) -> list[Row]:
    """Return `language`, `label` and `size_bytes` of each text, the default one first."""
    return await fetch_rows(SIZES, video_id)


async def read_default_captions(video_id: UUID) -> Caption | None:
    """Return the default captions of a video, or others if there are none by default.

    The result is None if no captions have cues. Files that version 0.4.0 published have no text.
    """
    return await Caption.filter(video_id=video_id, cue_count__gt=0, text__isnull=False).first()


async def list_served_folders(video_id: UUID) -> set[str]:
    """Return the names of the folders of captions in storage that viewers may get."""
    return {folder for track in await list_captions(video_id) for folder in served_folders(track)}


async def find_captions(video_id: UUID, language: str) -> Caption:
    """Return the captions in a language without their text. Raises `CaptionsNotFound`."""
    tracks = Caption.filter(video_id=video_id, language=known_as(language))
    track = await tracks.only(*LISTED).first()
    if track is None:
        raise CaptionsNotFound
    return track


async def read_captions_of(video_id: UUID, language: str) -> Caption:
    """Return the captions in a language.

    Raises `CaptionsNotFound`, also for a track of a file that version 0.4.0 published.
    """
    row = await Caption.get_or_none(video_id=video_id, language=known_as(language))
    if row is None or row.text is None:
        raise CaptionsNotFound
    return row


def editable_text(track: Caption, video: Video) -> str:
    """Return the text of captions for editors, with cues after the end of the film.

    The text of a cut video has none, because its `whole_text` is that of the whole film.
    """
    return (track.text if video.keep else track.whole_text or track.text) or ""


def known_as(language: str) -> str:
    """Return the language as the tracks in it are recorded."""
    return language_tag(language) or language.replace("\0", "")


def language_of(text: str) -> str:
    """Return the tag of a language that exists, as BCP 47 writes it. Raises `InvalidRequest`."""
    tag = language_tag(text)
    if tag is None or len(tag) > MAX_LANGUAGE_LENGTH or not language_name(tag):
        raise InvalidRequest([FieldError("/language", UNKNOWN_LANGUAGE)])
    return tag


async def read_file(data: bytes, options: ReadOptions) -> CaptionContents:
    """Read an uploaded caption file. Raises as `read_captions` of `transcoding.captions`."""
    return await asyncio.to_thread(read_captions, data, options)


async def add(video_id: UUID, language: str, change: CaptionChange) -> Caption:
    """Add captions in another language.

    Raises `InvalidRequest` for a label that is taken, `CaptionsExist` unless the same captions are
    recorded, `TooManyCaptions`, or `VideoNotFound`.
    """
    async with _locked_track(video_id, language) as (video, track):
        if track is None:
            return await _insert(video, language, change)
        if await _is_change(track, change, video):
            raise CaptionsExist
        return track


async def put(video_id: UUID, language: str, change: CaptionChange) -> tuple[Caption, bool]:
    """Replace captions whatever their version, or add them.

    Returns the captions, and whether they were added. Raises `InvalidRequest` for a label that is
    taken, `TooManyCaptions`, or `VideoNotFound`.
    """
    async with _locked_track(video_id, language) as (video, track):
        if track is None:
            return await _insert(video, language, change), True
        if await _is_change(track, change, video):
            await _save(track, change, video)
        return track, False


async def change(
    video_id: UUID,
    language: str,
    change: CaptionChange,
    *,
    versions: Collection[str] | None,
) -> Caption:
    """Change captions of one of these versions; None changes any version.

    Raises `InvalidRequest` for a label that is taken, `CaptionsNotFound`, `VideoNotFound`, or
    `CaptionsChanged` if another version is recorded that differs from the change.
    """
    async with _locked_track(video_id, language) as (video, track):
        if track is None:
            raise CaptionsNotFound
        if await _is_change(track, change, video):
            check_version(folder_name(track), versions, CaptionsChanged)
            await _save(track, change, video)
        return track


async def remove(video_id: UUID, language: str, *, versions: Collection[str] | None) -> None:
    """Remove captions of one of these versions; None removes any version.

    Raises `CaptionsNotFound`, `CaptionsChanged`, or `VideoNotFound`.
    """
    async with _locked_track(video_id, language) as (video, track):
        if track is None:
            raise CaptionsNotFound
        check_version(folder_name(track), versions, CaptionsChanged)
        await track.delete()
        await _announce(video, track.language)


@asynccontextmanager
async def _locked_track(
    video_id: UUID, language: str
) -> AsyncIterator[tuple[Video, Caption | None]]:
    """Yield a video and its track in a language without the text, locked in a transaction."""
    async with transaction():
        video = await locked_video(video_id)
        tracks = Caption.filter(video_id=video_id, language=language)
        yield video, await tracks.select_for_update().only(*LISTED).first()


async def _is_change(track: Caption, change: CaptionChange, video: Video) -> bool:
    """Return whether a part of a change is not recorded yet."""
    if change.label not in (None, track.label) or change.is_default not in (None, track.is_default):
        return True
    if change.content is None:
        return False
    # The database compares the texts, so that the recorded one needn't be read.
    same = Caption.filter(id=track.id, text=change.content.text)
    if video.keep is None:
        same = same.filter(whole_text=change.content.whole_text)
    return not await same.exists()


async def _insert(video: Video, language: str, change: CaptionChange) -> Caption:
    tracks = await Caption.filter(video_id=video.id).only("label")
    if len(tracks) >= MAX_TRACKS:
        raise TooManyCaptions
    name = attribute_text(language_name(language))
    is_taken = name in {track.label for track in tracks}
    label = f"{name} ({language})" if is_taken else name
    track = Caption(video_id=video.id, language=language, label=label, version=0)
    await _save(track, change, video)
    return track


async def _save(track: Caption, change: CaptionChange, video: Video) -> None:
    """Write a change of a track as its next version."""
    is_new = track.version == 0
    label = change.label or track.label
    columns: dict[str, object] = {"label": label, "version": track.version + 1}
    columns |= {"tries": 0, "error_code": None}
    other_tracks = Caption.filter(video_id=video.id).exclude(language=track.language)
    if (is_new or label != track.label) and await other_tracks.filter(label=label).exists():
        fault = Message("Captions in another language have this label. Choose another one.")
        raise InvalidRequest([FieldError("/label", fault)])
    if change.is_default is not None:
        columns["is_default"] = change.is_default
    if change.is_default:
        await other_tracks.filter(is_default=True).update(is_default=False)
    if change.content is not None:
        columns |= {**asdict(change.content), "source": change.source}
        if video.keep is not None:
            columns["whole_text"] = await _whole_text(track, change.content.text, video.keep)
    track.update_from_dict(columns)
    await track.save(update_fields=None if is_new else [*columns, "changed_at"])
    await _announce(video, track.language)


async def _whole_text(track: Caption, text: str, keep: Keep) -> str:
    """Return the new text of a track for the whole film of a cut video."""
    recorded = await Caption.filter(id=track.id).only("id", "whole_text").first()
    former = recorded.whole_text if recorded else None
    return await asyncio.to_thread(whole_text_of, text, former or "", keep)


async def _announce(video: Video, language: str) -> None:
    """Record the event of a change, and queue the job that stores it for players."""
    if video.status is VideoStatus.READY:
        job_id = await CAPTIONS.enqueue(video_id=video.id)
        await Publication.filter(id=video.id).update(captions_job_id=job_id)
    await record_action(AuditAction.CAPTIONS_CHANGED, video.id, detail={"language": language})


async def store(video_id: UUID, tools: Tools) -> None:
    """Store the captions of a ready video and name them in its master playlist.

    May run any number of times. Raises `StorageUnavailable`.
    """
    storage = tools.storage
    video = await Video.get_or_none(id=video_id)
    if video is None or video.status is not VideoStatus.READY:
        return
    try:
        async with asyncio.timeout(CAPTIONS.longest_s):
            stale = Q(written_version=None) | ~Q(written_version=F("version"))
            tracks = Caption.filter(stale, video_id=video_id, error_code=None)
            for track in await tracks.only("id"):
                await _store_track(track.id, video_id, storage)
            await put_master(await video.current_version(), storage)
            await _remove_unused(video_id, storage)
    except TimeoutError as exc:
        raise StorageUnavailable from exc
    promised = Publication.filter(id=video_id, captions_job_id=video.captions_job_id)
    is_kept = await promised.update(captions_job_id=None)
    if not is_kept and not await Publication.exists(id=video_id):
        await remove_again(video_id, video.storage_key)


async def _store_track(track_id: int, video_id: UUID, storage: Storage) -> None:
    """Write a version of a track; a later one is left to the job that was queued with it.

    Segments that an interrupted job has written are kept. A track of which several tries in a row
    write none is abandoned, with the reason recorded.
    """
    tracks = Caption.filter(id=track_id, text__isnull=False)
    try:
        async with counted_try(tracks, max_tries=CAPTIONS.max_tries) as track:
            # Read after the track: another version of the video also changes that of the track.
            video = await Video.get_or_none(id=video_id)
            if track is not None and video is not None:
                await _write_track(track, video, storage)
    except TriesExhausted:
        await tracks.filter(tries__gt=CAPTIONS.max_tries).update(error_code=NOT_STORED)
        event = {"action": "captions_not_stored", "video_id": str(video_id)}
        logger.error("Captions can't be stored", extra=event)


async def _write_track(track: Caption, video: Video, storage: Storage) -> None:
    """Write the files of a track that are missing; the first one resets its tries."""
    same = Caption.filter(id=track.id, version=track.version)
    folder = f"{captions_root(video.id)}{folder_name(track)}/"
    entries = [entry async for entry in entries_of(folder, storage) if not isinstance(entry, str)]
    sizes_bytes = {entry.key.removeprefix(folder): entry.size_bytes for entry in entries}
    stored = 0
    while caption_segment(stored) in sizes_bytes:
        stored += 1

    async def put(name: str, data: bytes) -> None:
        await storage.put(folder + name, data, content_type=CONTENT_TYPES[Path(name).suffix])
        sizes_bytes[name] = len(data)
        await same.filter(tries__gt=0).update(tries=0)

    cues = await asyncio.to_thread(read_webvtt, track.text or "")
    intervals: Sequence[tuple[float, float]] = [(0.0, video.duration_s or 0.0)]
    if video.keep is not None:
        # Segments have the times of the whole film, as those of video and sound.
        cut = Kept.of(video.keep)
        intervals = cut.intervals
        cues = [cut.around_cuts(cue) for cue in cues]
    await put_captions(cues, put, intervals=intervals, stored=stored)
    await same.update(written_version=track.version, size_bytes=sum(sizes_bytes.values()))


async def _remove_unused(video_id: UUID, storage: Storage) -> None:
    """Remove the stored versions that viewers can't get."""
    root = captions_root(video_id)
    used = {f"{root}{folder}/" for folder in await list_served_folders(video_id)}
    entries = [entry async for entry in entries_of(root, storage)]
    for folder in entries:
        if isinstance(folder, str) and folder not in used:
            await remove_below(folder, storage)
