"""Files of a video to save: the uploaded file, one MP4 per quality, sound as M4A, and captions.

Storage has the uploaded file. Captions are written at the request. MP4 and M4A files are made on
demand: a request is a row, whose job joins the stored segments without encoding and stores the
file. The janitor removes it a day after the last request, or once no feed keeps it any more.

A row that lost its video is abandoned: its video was deleted, its file has expired, or the video
has another title or other renditions by now. The janitor removes abandoned files once no job can
write them, so nothing is left behind by a worker that dies. Those that another file of the same
video replaces are removed before that is made.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from shutil import disk_usage
from uuid import UUID

from pydantic import Field

from portal.database.connection import NOW, Row, execute, rows_by_key, transaction
from portal.database.models import Rendition, RenditionState, Video, VideoStatus
from portal.database.work_models import Download, DownloadState
from portal.errors import DownloadNotFound, DownloadsBusy
from portal.events.records import Shape, Size
from portal.features.captions.service import list_sizes, read_captions_of
from portal.films.outputs import open_rendition
from portal.films.removal import logging_refusals
from portal.locale.messages import Message
from portal.queue.jobs import DOWNLOAD_QUEUE, REQUESTER, Job, Required
from portal.queue.tools import Tools
from portal.queue.tries import TriesExhausted, one_try
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_root, part_count, part_size_bytes
from portal.transcoding.encoding.joining import StoredTrack, join_tracks
from portal.transcoding.encoding.sink import pass_folder
from portal.transcoding.errors import DiskFull, TranscodeFailed
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import read_webvtt, subrip
from portal.uploads import quotas
from portal.uploads.quotas import NO_QUOTA, Quota
from portal.videos.reading import locked_video

logger = logging.getLogger(__name__)

ORIGINAL = "original"
DOWNLOAD = Job(
    name="download",
    queue=DOWNLOAD_QUEUE,
    lock="download:{number}",
    longest_s=7200,
    required=Required(
        table="downloads",
        condition="state IN ('waiting', 'working') AND video_id IS NOT NULL",
        arguments={"video_id": "video_id", "number": "id"},
    ),
)
# Time for which a file is kept after its last request.
KEPT_S = 24 * 3600
# Limit on the files that wait for a worker, so that a catalogue does not fill storage.
MAX_WAITING = 100
# Limit on those of one account, or of one address without an account.
MAX_WAITING_OF_ONE = 10
# Rows that are read at once.
PAGE = 100
# Disk space that a job leaves free, beside twice the size of its file.
SPARE_BYTES = 512 * 1024**2
# Errors after which a job is not tried again by itself.
FAULTS = (TranscodeFailed, ObjectMissing, hls.PlaylistError)
# Longest title in the name of a file, which may have 255 bytes.
MAX_TITLE_LENGTH = 60
# Characters that some operating systems refuse in names of files.
UNNAMEABLE = re.compile(r'[\x00-\x1f\x7f"*/:<>?\\|]')
SUFFIXES = {Kind.VIDEO: "mp4", Kind.AUDIO: "m4a"}
CONTENT_TYPES = {".mp4": "video/mp4", ".m4a": "audio/mp4"}

EXPIRE = """
UPDATE downloads SET video_id = NULL
WHERE video_id IS NOT NULL AND requested_at < %s AND (
  state = 'failed' OR state = 'ready' AND coalesce(kept_until < now(), true)
)
"""
ABANDONED = """
SELECT id::text AS key FROM downloads WHERE video_id IS NULL AND NOT EXISTS (
  SELECT FROM procrastinate_jobs
  WHERE procrastinate_jobs.id = job_id AND status IN ('todo', 'doing')
) AND starts_with(coalesce(key, ''), %s) AND id > %s::bigint ORDER BY id LIMIT %s
"""


class DownloadKind(StrEnum):
    """Kind of a file to save."""

    ORIGINAL = "original"
    VIDEO = "video"
    SOUND = "sound"
    CAPTIONS = "captions"


class FileState(StrEnum):
    """State of a file to save. An absent one is made at the first request."""

    READY = "ready"
    PREPARING = "preparing"
    ABSENT = "absent"
    FAILED = "failed"


STATES: Mapping[DownloadState, FileState] = {
    DownloadState.WAITING: FileState.PREPARING,
    DownloadState.WORKING: FileState.PREPARING,
    DownloadState.READY: FileState.READY,
    DownloadState.FAILED: FileState.FAILED,
}


class DownloadFacts(Shape):
    """File of a video to save, whether or not it was made already."""

    name: str = Field(description="Name in addresses, such as `720p.mp4`.")
    kind: DownloadKind = Field(description="`original`, `video`, `sound` or `captions`.")
    label: str = Field(description="Name for people.")
    width: int | None = Field(description="Width of the picture in pixels; null without a picture.")
    height: int | None = Field(
        description="Height of the picture in pixels; null without a picture."
    )
    language: str | None = Field(description="BCP 47.")
    size_bytes: Size = Field(description="Size of the file.")
    is_estimate: bool = Field(description="Whether `sizeBytes` is an estimate.")
    state: FileState = Field(description="An absent file is made on request.")
    error_code: str | None = Field(description="Why the file was not made.")


class SavedFile(DownloadFacts):
    """File of a video with the name under which browsers save it, and its key in storage."""

    file_name: str
    key: str | None


async def list_files(video: Video) -> list[SavedFile]:
    """Return all files of a video: the uploaded one, qualities from the best, sound, captions."""
    original = SavedFile(
        name=ORIGINAL,
        kind=DownloadKind.ORIGINAL,
        label="Original",
        width=None,
        height=None,
        language=None,
        size_bytes=video.size_bytes,
        is_estimate=False,
        state=FileState.READY,
        error_code=None,
        file_name=video.file_name,
        key=video.storage_key,
    )
    joined = (await list_joined_files([video]))[video.id]
    captions = [file for row in await list_sizes(video.id) for file in _caption_files(video, row)]
    return [original, *joined, *captions]


async def list_joined_files(videos: Sequence[Video]) -> dict[UUID, list[SavedFile]]:
    """Return the files of videos that are made of renditions, in the order of `list_files`."""
    tracks = await _stored_tracks(videos)
    rows = {
        (row.video_id, row.name): row
        async for row in Download.filter(video_id__in=[video.id for video in videos])
    }
    return {
        video.id: [
            _joined_file(video, _parts(track, tracks[video.id]), rows) for track in tracks[video.id]
        ]
        for video in videos
    }


async def find_file(video: Video, name: str) -> SavedFile:
    """Return a file of a video by its name. Raises `DownloadNotFound`."""
    for file in await list_files(video):
        if file.name == name:
            return file
    raise DownloadNotFound


async def request_file(
    video_id: UUID,
    name: str,
    *,
    account_id: UUID | None = None,
    quota: Quota = NO_QUOTA,
) -> SavedFile:
    """Have a file made unless it is ready or being made, and return it.

    Until it is removed it takes room of the account that it is requested for, if there is one.

    Raises:
        VideoNotFound: the video was deleted.
        DownloadNotFound: the video has no such file.
        DownloadsBusy: too many other files wait, of all or of this account or address.
        StorageQuotaExceeded: the account has no room for the file.
    """
    async with transaction():
        video = await locked_video(video_id)
        file = await find_file(video, name)
        rows = Download.filter(video_id=video_id, name=name)
        if file.state in (FileState.READY, FileState.PREPARING):
            await rows.update(requested_at=NOW)
            return file
        # An outdated file, and the remains of a failed one, are removed later.
        await rows.update(video_id=None)
        async with quotas.taking_room(account_id, quota):
            row = await Download.create(
                video_id=video_id,
                name=name,
                size_bytes=file.size_bytes,
                requester=str(account_id or REQUESTER.get()),
            )
        suffix = name.rpartition(".")[2]
        await Download.filter(id=row.id).update(
            key=f"{_folder(video_id)}{row.id}.{suffix}",
            job_id=await DOWNLOAD.enqueue(video_id=video_id, number=row.id),
        )
        await _require_place(row)
    return file.model_copy(update={"state": FileState.PREPARING, "error_code": None})


async def _require_place(row: Download) -> None:
    """Raise `DownloadsBusy` if too many files wait with a new one, of all or of its requester.

    The transaction has queued the job, so concurrent requests of the requester wait for it.
    """
    waiting = Download.filter(state=DownloadState.WAITING).exclude(video_id=None)
    if await waiting.count() > MAX_WAITING:
        raise DownloadsBusy
    # Files of feeds are requested for the owners of videos, and take none of their places.
    own = waiting.filter(requester=row.requester, kept_until=None)
    if row.requester and await own.count() > MAX_WAITING_OF_ONE:
        raise DownloadsBusy(
            Message(
                "%(count)s files that you have requested are still being prepared. Request "
                "this one again when one of them is ready.",
                count=MAX_WAITING_OF_ONE,
            )
        )


def _folder(video_id: UUID) -> str:
    return f"{output_root(video_id)}downloads/"


async def keep_file(video_id: UUID, name: str) -> None:
    """Keep a file that is being saved for another day."""
    await Download.filter(video_id=video_id, name=name).update(requested_at=NOW)


async def captions_text(video_id: UUID, file: SavedFile) -> str:
    """Return the present captions in the format of the file. Raises `CaptionsNotFound`."""
    text = (await read_captions_of(video_id, file.language or "")).text or ""
    if not file.name.endswith(".srt"):
        return text
    # A thread, because a text may have megabytes.
    return await asyncio.to_thread(lambda: subrip(read_webvtt(text)))


async def make_file(video_id: UUID, number: int, tools: Tools) -> None:
    """Make and store the file of a row. May run any number of times."""
    rows = Download.filter(id=number)
    pending = rows.exclude(video_id=None).exclude(state=DownloadState.READY)
    try:
        async with one_try(DOWNLOAD, pending, state=DownloadState.WORKING) as row:
            if row is not None:
                async for outdated in abandoned(page=PAGE, below=_folder(video_id)):
                    await discard(outdated, tools.storage)
                await _make_and_store(row, tools.storage, tools.work_dir)
    except (*FAULTS, TriesExhausted, DiskFull, TimeoutError) as exc:
        logger.warning("No file was made: %s", exc, extra={"action": "download_failed"})
        await rows.update(state=DownloadState.FAILED, error_code=_error_code(exc))


async def sweep(storage: Storage, now: datetime) -> int:
    """Remove files that are expired, outdated or of deleted videos; return how many.

    Files that workers are still writing are left to the next janitor.
    """
    removed = 0
    await execute(EXPIRE, now - timedelta(seconds=KEPT_S))
    async for row in abandoned(page=PAGE):
        with logging_refusals():
            await discard(row, storage)
            removed += 1
    return removed


async def abandoned(*, page: int, below: str = "") -> AsyncIterator[Download]:
    """Yield the abandoned files that no job writes any more, whose keys begin with `below`."""
    async for entry in rows_by_key(ABANDONED, below, first="0", page=page):
        row = await Download.get_or_none(id=int(entry["key"]))
        if row is not None:
            yield row


async def discard(row: Download, storage: Storage) -> None:
    """Remove an abandoned file from storage, and then its row."""
    if row.key is not None:
        if row.multipart_id is not None:
            await storage.multiparts.abort(row.key, row.multipart_id)
        await storage.delete(row.key)
    await row.delete()


async def _stored_tracks(videos: Sequence[Video]) -> dict[UUID, list[Rendition]]:
    """Return the complete video and sound renditions of videos, by the id of the video.

    The best quality and the default sound are first. A video that can't be played has none.
    """
    version_ids = [video.version_id for video in videos if video.status is VideoStatus.READY]
    rows = Rendition.filter(version_id__in=version_ids, state=RenditionState.COMPLETE)
    tracks = await rows.exclude(kind=Kind.SUBTITLES)
    tracks.sort(key=lambda row: (-(row.height or 0), not row.is_default, row.position))
    return {
        video.id: [row for row in tracks if row.version_id == video.version_id] for video in videos
    }


def _parts(track: Rendition, tracks: Sequence[Rendition]) -> list[Rendition]:
    """Return the renditions of a file: a picture and all sounds, or one sound."""
    if track.kind is Kind.AUDIO:
        return [track]
    return [track, *(row for row in tracks if row.kind is Kind.AUDIO)]


def _joined_name(main: Rendition) -> str:
    """Return the name of the file with this picture, or with this sound alone."""
    return f"{main.name}.{SUFFIXES[main.kind]}"


def _made_of(video: Video, parts: Sequence[Rendition]) -> str:
    return "\n".join((video.title, *(f"{row.attempt_number}/{row.name}" for row in parts)))


def _joined_file(
    video: Video,
    parts: Sequence[Rendition],
    rows: Mapping[tuple[UUID | None, str], Download],
) -> SavedFile:
    """Return a file that is made of renditions, with the state of its row."""
    main = parts[0]
    is_video = main.kind is Kind.VIDEO
    label = main.name if is_video else main.label or "Audio"
    file = SavedFile(
        name=_joined_name(main),
        kind=DownloadKind.VIDEO if is_video else DownloadKind.SOUND,
        label=label,
        file_name=_file_name(video.title, label, SUFFIXES[main.kind]),
        size_bytes=sum(row.size_bytes or 0 for row in parts),
        is_estimate=True,
        width=main.width,
        height=main.height,
        language=main.language,
        state=FileState.ABSENT,
        error_code=None,
        key=None,
    )
    row = rows.get((video.id, file.name))
    if row is None or row.made_of not in (None, _made_of(video, parts)):
        return file
    return file.model_copy(
        update={
            "state": STATES[row.state],
            "error_code": row.error_code,
            "size_bytes": row.size_bytes or file.size_bytes,
            "is_estimate": row.state is not DownloadState.READY,
            "key": row.key,
        }
    )


def _caption_files(video: Video, row: Row) -> Iterator[SavedFile]:
    for suffix in ("vtt", "srt"):
        yield SavedFile(
            name=f"{row['language']}.{suffix}",
            kind=DownloadKind.CAPTIONS,
            label=f"{row['label']} ({suffix.upper()})",
            width=None,
            height=None,
            language=row["language"],
            size_bytes=row["size_bytes"],
            is_estimate=suffix == "srt",
            state=FileState.READY,
            error_code=None,
            file_name=_file_name(video.title, row["language"], suffix),
            key=None,
        )


def _file_name(title: str, detail: str, suffix: str) -> str:
    """Return a name that all operating systems accept."""
    stem = f"{title[:MAX_TITLE_LENGTH]} {detail}"
    return f"{UNNAMEABLE.sub('_', stem).strip(' .')}.{suffix}"


async def _make_and_store(row: Download, storage: Storage, work_dir: Path) -> None:
    """Make the file of a row, store it, and record that it is ready."""
    video = await Video.get_or_none(id=row.video_id)
    if video is None or row.key is None:
        return
    tracks = (await _stored_tracks([video]))[video.id]
    main = next((track for track in tracks if _joined_name(track) == row.name), None)
    if main is None:
        raise ObjectMissing(row.name)
    parts = _parts(main, tracks)
    needed_bytes = 2 * sum(part.size_bytes or 0 for part in parts) + SPARE_BYTES
    if disk_usage(work_dir).free < needed_bytes:
        raise DiskFull(work_dir)
    stored = [
        StoredTrack(
            files=await open_rendition(part, video.id, storage),
            language=part.language,
            label=part.label,
        )
        for part in parts
    ]
    is_video = main.kind is Kind.VIDEO
    with pass_folder(work_dir) as folder:
        path = await join_tracks(
            stored[0] if is_video else None,
            stored[1:] if is_video else stored,
            title=video.title,
            folder=folder,
            timeout_s=DOWNLOAD.longest_s,
        )
        size_bytes = await _upload(row, path, storage)
    # If the row was abandoned meanwhile, the janitor removes the file.
    await Download.filter(id=row.id).update(
        state=DownloadState.READY,
        size_bytes=size_bytes,
        made_of=_made_of(video, parts),
        multipart_id=None,
    )
    logger.info("File made", extra={"action": "download_made", "size_bytes": size_bytes})


async def _upload(row: Download, path: Path, storage: Storage) -> int:
    """Store a file in parts under the key of its row, and return its size in bytes."""
    key = row.key or ""
    if row.multipart_id is not None:
        await storage.multiparts.abort(key, row.multipart_id)
    content_type = CONTENT_TYPES[path.suffix]
    multipart_id = await storage.multiparts.create(key, content_type=content_type)
    await Download.filter(id=row.id).update(multipart_id=multipart_id)
    size_bytes = (await asyncio.to_thread(path.stat)).st_size
    with await asyncio.to_thread(path.open, "rb") as file:
        for number in range(1, part_count(size_bytes) + 1):
            data = await asyncio.to_thread(file.read, part_size_bytes(size_bytes))
            await storage.multiparts.put_part(key, multipart_id, number, data)
    parts = await storage.multiparts.list_parts(key, multipart_id)
    await storage.multiparts.complete(key, multipart_id, parts)
    return size_bytes


def _error_code(exc: BaseException) -> str:
    """Return the code of an error, which the API shows."""
    match exc:
        case DiskFull():
            return "disk_full"
        case TimeoutError():
            return "timed_out"
    return getattr(exc, "code", "rendition_unreadable")
