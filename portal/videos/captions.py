"""Captions of a video: saved by people, one track for each language, and stored by a job.

A save is one transaction: the text lies in the database. The job writes it to storage in segments,
under a name that no other version has, and only then names it in the master playlist, so players
elsewhere find either version whole. The portal's own player is given the text itself.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from uuid import UUID

from tortoise.expressions import F, Q

from portal.database.connection import transaction
from portal.database.models import Caption, CaptionSource, Rendition, Video, VideoStatus
from portal.errors import (
    CaptionsChanged,
    CaptionsExist,
    CaptionsNotFound,
    FieldError,
    InvalidRequest,
    StorageUnavailable,
    TooManyCaptions,
)
from portal.events.log import AuditAction, note
from portal.processing.captions import CaptionText, captions_root, folder_name
from portal.processing.outputs import open_rendition, put_master
from portal.processing.removal import remove_again, remove_below
from portal.queue.app import Queue
from portal.queue.enqueue import defer_captions
from portal.storage.bucket import Storage, entries_of
from portal.storage.calls import ObjectMissing
from portal.transcoding.encoding.finishing import put_captions
from portal.transcoding.encoding.segment_upload import CONTENT_TYPES
from portal.transcoding.packaging.hls import PlaylistError
from portal.transcoding.packaging.webvtt import CaptionsUnreadable, Cue, read_captions
from portal.transcoding.planning.tracks import attribute_text, language_name, language_tag
from portal.videos.reading import locked_video

logger = logging.getLogger(__name__)

MAX_TRACKS = 100
MAX_FILE_BYTES = 4 * 1024**2
# A film of ten hours with a cue each second has as many.
MAX_CUES = 36_000
TOO_MUCH = f"Send at most {MAX_CUES:,} cues, in a file of at most {MAX_FILE_BYTES // 1024**2} MiB."
MAX_LANGUAGE_LENGTH = 60
MAX_LABEL_LENGTH = 100
# Of everything a job does: after twice the time `maintenance.recovery` runs it again.
JOB_TIMEOUT_S = 60
LISTED = ("id", "video_id", "language", "label", "is_default", "source", "cue_count", "version")
UNKNOWN_LANGUAGE = "Give a language by its BCP 47 tag, like en, pt-BR or zh-Hant."


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionChange:
    """What is to be changed of captions, by people or a machine; None leaves it as it is."""

    said: CaptionText | None = None
    source: CaptionSource = CaptionSource.UPLOAD
    label: str | None = None
    is_default: bool | None = None


async def list_captions(video_id: UUID) -> list[Caption]:
    """The captions of a video without their text, the default ones first."""
    return await Caption.filter(video_id=video_id).only(*LISTED, "changed_at")


async def read_captions_of(video_id: UUID, language: str) -> Caption:
    """The captions in a language. Raises `CaptionsNotFound`, also until their text was read."""
    row = await Caption.get_or_none(video_id=video_id, language=known_as(language))
    if row is None or row.text is None:
        raise CaptionsNotFound
    return row


def known_as(language: str) -> str:
    """How captions in a language are recorded, if there are any."""
    return language_tag(language) or language.replace("\0", "")


def language_of(text: str) -> str:
    """The tag of a language that exists, as BCP 47 writes it. Raises `InvalidRequest`."""
    tag = language_tag(text)
    if tag is None or len(tag) > MAX_LANGUAGE_LENGTH or not language_name(tag):
        raise InvalidRequest([FieldError("/language", UNKNOWN_LANGUAGE)])
    return tag


async def read_cues(data: bytes) -> list[Cue]:
    """The cues of a file that someone sent. Raises `InvalidRequest`."""
    # As UTF-16, too.
    if len(data) > MAX_FILE_BYTES or data.replace(b"\0", b"").count(b"-->") > MAX_CUES:
        raise InvalidRequest([FieldError("", TOO_MUCH)])
    try:
        return await asyncio.to_thread(read_captions, data)
    except CaptionsUnreadable as exc:
        raise InvalidRequest([FieldError("", str(exc))]) from exc


async def read_file(data: bytes) -> CaptionText:
    """What a file says that someone sent; raises as `read_cues`."""
    return await asyncio.to_thread(CaptionText.of, await read_cues(data))


async def add(video_id: UUID, language: str, change: CaptionChange, *, queue: Queue) -> Caption:
    """Add captions in another language.

    Raises `InvalidRequest` for its label, `CaptionsExist` unless the same are recorded,
    `TooManyCaptions`, or `VideoNotFound`.
    """
    async with transaction():
        video = await locked_video(video_id)
        rows = await Caption.filter(video_id=video_id)
        for row in rows:
            if row.language == language:
                if _changes(row, change):
                    raise CaptionsExist
                return row
        if len(rows) >= MAX_TRACKS:
            raise TooManyCaptions
        taken = {row.label for row in rows}
        name = attribute_text(language_name(language))
        label = change.label or (name if name not in taken else f"{name} ({language})")
        row = Caption(video_id=video_id, language=language, label=label, version=0)
        return await _save(row, change, video, rows, queue)


async def change(
    video_id: UUID, language: str, change: CaptionChange, *, version: str | None, queue: Queue
) -> Caption:
    """Change captions over the version that was read; None writes over whatever is there.

    Raises `InvalidRequest` for their label, `CaptionsNotFound`, `VideoNotFound`, or
    `CaptionsChanged` if another version is recorded by now, and says something else.
    """
    async with transaction():
        video = await locked_video(video_id)
        rows = await Caption.filter(video_id=video_id)
        row = next((it for it in rows if it.language == language), None)
        if row is None:
            raise CaptionsNotFound
        if not _changes(row, change):
            return row
        if version not in (None, folder_name(row)):
            raise CaptionsChanged
        return await _save(row, change, video, rows, queue)


def _changes(row: Caption, change: CaptionChange) -> bool:
    """Whether something of it is not recorded yet."""
    text = row.text if change.said is None else change.said.text
    wanted = (text, change.label or row.label, change.is_default in (None, row.is_default))
    return wanted != (row.text, row.label, True)


async def _save(
    row: Caption, change: CaptionChange, video: Video, rows: Iterable[Caption], queue: Queue
) -> Caption:
    others = [it for it in rows if it.language != row.language]
    row.label = change.label or row.label
    if any(it.label == row.label for it in others):
        fault = "Captions in another language have this label. Choose another one."
        raise InvalidRequest([FieldError("/label", fault)])
    if change.said is not None:
        row.update_from_dict({**asdict(change.said), "source": change.source})
    if change.is_default is not None:
        row.is_default = change.is_default
    if row.is_default:
        await Caption.filter(video_id=video.id, is_default=True).update(is_default=False)
    row.version += 1
    await row.save()
    await _note(video, row.language, queue)
    return row


async def remove(video_id: UUID, language: str, *, version: str | None, queue: Queue) -> None:
    """Remove captions, of this version unless it is None; raises as `change`."""
    async with transaction():
        video = await locked_video(video_id)
        row = await Caption.get_or_none(video_id=video_id, language=language)
        if row is None:
            raise CaptionsNotFound
        if version not in (None, folder_name(row)):
            raise CaptionsChanged
        await row.delete()
        await _note(video, language, queue)


async def _note(video: Video, language: str, queue: Queue) -> None:
    """Note a change, and queue the job that makes it known to players."""
    if video.status is VideoStatus.READY:
        job_id = await defer_captions(video.id, queue)
        await Video.filter(id=video.id).update(captions_job_id=job_id)
    await note(AuditAction.CAPTIONS_CHANGED, video.id, detail={"language": language})


async def store(video_id: UUID, *, storage: Storage, queue: Queue) -> None:
    """Store the captions of a ready video and name them in its master playlist.

    May run any number of times. Raises `StorageUnavailable`.
    """
    video = await Video.get_or_none(id=video_id)
    if video is None or video.status is not VideoStatus.READY:
        return
    try:
        async with asyncio.timeout(JOB_TIMEOUT_S):
            stale = Q(written_version=None) | ~Q(written_version=F("version"))
            for row in await Caption.filter(stale, video_id=video_id):
                await _store(row, video, storage)
            await put_master(video, storage)
            await _remove_unused(video_id, storage)
    except TimeoutError as exc:
        raise StorageUnavailable from exc
    promised = Video.filter(id=video_id, captions_job_id=video.captions_job_id)
    if not await promised.update(captions_job_id=None) and not await Video.exists(id=video_id):
        await remove_again(video_id, video.storage_key, queue=queue)


async def _store(row: Caption, video: Video, storage: Storage) -> None:
    """Write a version; a later one is left to the job that was queued with it."""
    if row.text is None and not await _read_from_file(row, storage):
        return
    folder = f"{captions_root(video.id)}{folder_name(row)}/"

    async def put(name: str, data: bytes) -> None:
        await storage.put(folder + name, data, content_type=CONTENT_TYPES[Path(name).suffix])

    cues = await asyncio.to_thread(_cues, (row.text or "").encode())
    await put_captions(cues, put, duration_s=video.duration_s or 0.0)
    same = Caption.filter(id=row.id, version=row.version)
    await same.update(written_version=row.version)


async def _read_from_file(row: Caption, storage: Storage) -> bool:
    """Read the text of a track that an earlier portal put into storage; whether it is there."""
    rendition = await Rendition.get_or_none(video_id=row.video_id, name=row.rendition)
    if rendition is None:
        return False
    try:
        files = await open_rendition(rendition, storage)
        # A cue on a boundary is in both segments.
        read = [await files.read(segment.uri) for segment in files.playlist.segments]
        found = await asyncio.to_thread(lambda: list(map(_cues, read)))
        cues = list(dict.fromkeys(chain.from_iterable(found)))
    except (ObjectMissing, PlaylistError) as exc:
        told = {"action": "captions_unreadable", "video_id": str(row.video_id)}
        logger.warning("Captions of a file can't be read: %s", exc, extra=told)
        return False
    said = await asyncio.to_thread(CaptionText.of, cues)
    row.text = said.text
    await Caption.filter(id=row.id, text=None).update(**asdict(said))
    return True


def _cues(data: bytes) -> list[Cue]:
    """The cues of a file that the portal has written, which may have none."""
    return read_captions(data) if b"-->" in data else []


async def _remove_unused(video_id: UUID, storage: Storage) -> None:
    """Remove versions but for the newest and the one before, which someone may be watching."""
    root, used = captions_root(video_id), set[str]()
    for row in await list_captions(video_id):
        used |= {f"{root}{row.id}-{version}/" for version in (row.version, row.version - 1)}
    for folder in [it async for it in entries_of(root, storage) if isinstance(it, str)]:
        if folder not in used:
            await remove_below(folder, storage)
