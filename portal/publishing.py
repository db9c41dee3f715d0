"""The use cases of the portal; owns the transactions that publish a video.

Knows nothing of HTTP requests. Transactions here never span a call to storage.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from tortoise.connection import get_connection
from tortoise.exceptions import IntegrityError
from tortoise.expressions import Q

from portal.database import transaction
from portal.enqueuing import defer_completion, defer_transcode
from portal.errors import (
    KeyAlreadyUsed,
    NothingToRetry,
    ObjectMissing,
    StorageUnavailable,
    UploadNotFound,
    VideoNotFound,
)
from portal.models import Attempt, Category, Rendition, RenditionState, Video, VideoStatus
from portal.schemas import CreateVideoRequest, PresignRequest
from portal.storage import upload_key
from portal.transcoding import RejectCode

if TYPE_CHECKING:
    from procrastinate import App as Queue
    from psycopg import AsyncConnection

    from portal.storage import ObjectInfo, Storage

logger = logging.getLogger(__name__)

# Storage's own time limits, with its retries, are longer than someone waits for an answer.
HEAD_TIMEOUT_S = 8
TRANSCODE_FAILED = "transcode_failed"
# Another try may end otherwise: the fault was not the file's, or an operator may raise a limit.
RETRY_HELPS = frozenset(
    {TRANSCODE_FAILED, RejectCode.TOO_LARGE, RejectCode.TOO_LONG, RejectCode.FILE_TOO_LARGE}
)
# As `storage.upload_key` makes them.
UPLOAD_KEY = re.compile(r"videos/[0-9a-f]{32}\.[a-z0-9]{1,255}")

# Asked for every request, so in SQL: building such a query anew costs more than running it.
ISSUE_UPLOAD = """
INSERT INTO uploads (key, file_name, content_type, created_at) VALUES (%s, %s, %s, now())
"""
UPLOAD_WITH_KEY = "SELECT 1 FROM uploads WHERE key = %s"
VIDEO_WITH_KEY = "SELECT 1 FROM videos WHERE storage_key = %s"


@dataclass(frozen=True, slots=True)
class BegunUpload:
    """Where a client may PUT its file, and the key to come back with."""

    upload_url: str
    key: str


@dataclass(frozen=True, slots=True)
class Published:
    """A video, and whether this call made it or an earlier one with the same metadata did."""

    video: Video
    created: bool


@dataclass(frozen=True, slots=True)
class VideoList:
    """One page of the library, and the cursor of the next older page, if there is one."""

    videos: list[Video]
    next_cursor: str | None


class CategoryTable:
    """The fixed category table, read once from the database."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    async def names(self) -> Mapping[int, str]:
        """Category names by id, in the order of ids."""
        if not self._names:
            self._names = {category.id: category.name for category in await Category.all()}
        return self._names


async def begin_upload(request: PresignRequest, *, storage: Storage, url_ttl_s: int) -> BegunUpload:
    """Issue a storage key and a presigned PUT address for it."""
    extension = request.file_name.rpartition(".")[2].lower()
    key = upload_key(uuid4(), extension)
    upload_url = await storage.presign_put(key, content_type=request.content_type, ttl_s=url_ttl_s)
    row = [key, request.file_name, request.content_type]
    await get_connection("default").execute_insert(ISSUE_UPLOAD, row)
    return BegunUpload(upload_url=upload_url, key=key)


async def is_issued(key: str) -> bool:
    """Whether the portal issued this storage key."""
    # The database takes offence at some texts: NUL, lone surrogates, more than a key's length.
    return bool(UPLOAD_KEY.fullmatch(key)) and await _holds(UPLOAD_WITH_KEY, key)


async def publish(request: CreateVideoRequest, *, storage: Storage, queue: Queue) -> Published:
    """Record the video and start its transcoding, both or neither.

    Calling again with the same key and metadata gives the same video; this makes a retry after
    a lost answer safe.

    Raises:
        UploadNotFound: storage holds no file, or an empty one, under the key.
        KeyAlreadyUsed: the key belongs to a video with other metadata.
    """
    if await _holds(VIDEO_WITH_KEY, request.key):
        return _same_or_conflict(await Video.get(upload_id=request.key), request)
    source = await _uploaded_object(request.key, storage)
    if source.size_bytes == 0:
        raise UploadNotFound("The uploaded file is empty. Upload it again, then retry.")
    return await _record(request, source, queue)


async def _uploaded_object(key: str, storage: Storage) -> ObjectInfo:
    try:
        async with asyncio.timeout(HEAD_TIMEOUT_S):
            return await storage.head(key)
    except ObjectMissing as exc:
        raise UploadNotFound from exc
    except TimeoutError as exc:
        raise StorageUnavailable from exc


async def _holds(query: str, key: str) -> bool:
    return bool(await get_connection("default").execute_query_dict(query, [key]))


async def _record(request: CreateVideoRequest, source: ObjectInfo, queue: Queue) -> Published:
    try:
        video = await _insert(request, source, queue)
    except IntegrityError:
        # Of requests with the same key the first wins; the storage key of a video is unique.
        existing = await Video.get_or_none(upload_id=request.key)
        if existing is None:
            raise
        return _same_or_conflict(existing, request)
    logger.info(
        "Video created",
        extra={"action": "create", "video_id": str(video.id), "job_id": video.transcode_job_id},
    )
    return Published(video, created=True)


async def _insert(request: CreateVideoRequest, source: ObjectInfo, queue: Queue) -> Video:
    video_id, now = uuid4(), datetime.now(UTC)
    async with transaction() as connection:
        return await Video.create(
            id=video_id,
            title=request.title,
            description=request.description,
            category_ids=list(request.category_ids),
            tags=request.tags,
            file_name=request.file_name,
            upload_id=request.key,
            transcode_job_id=await defer_transcode(video_id, queue, connection),
            size_bytes=source.size_bytes,
            source_etag=source.etag,
            created_at=now,
            updated_at=now,
        )


async def retry_transcode(video: Video, *, queue: Queue) -> None:
    """Try again what failed of a video: all of it, or the renditions that a ready one lacks.

    Raises `NothingToRetry` when nothing failed, or someone else has asked already.
    """
    async with transaction() as connection:
        found = await Video.filter(id=video.id).select_for_update().get_or_none()
        if found is not None and found.status is VideoStatus.FAILED:
            await _retry_video(found, queue, connection)
        elif found is not None and found.status is VideoStatus.READY:
            await _retry_renditions(found, queue, connection)
        else:
            raise NothingToRetry
    logger.info("Retry asked for", extra={"action": "retry", "video_id": str(video.id)})


async def _retry_video(video: Video, queue: Queue, connection: AsyncConnection[Any]) -> None:
    last = await Attempt.filter(video_id=video.id).order_by("-number").first()
    await Video.filter(id=video.id).update(
        status=VideoStatus.PROCESSING,
        failure_code=None,
        failure_message=None,
        transcode_job_id=await defer_transcode(video.id, queue, connection),
        forgiven_attempts=last.number if last else 0,
        updated_at=datetime.now(UTC),
    )


async def _retry_renditions(video: Video, queue: Queue, connection: AsyncConnection[Any]) -> None:
    failed = Rendition.filter(video_id=video.id, state=RenditionState.FAILED)
    changed = await failed.update(
        state=RenditionState.PLANNED,
        attempt_number=None,
        tries=0,
        error_code=None,
        error_detail=None,
    )
    if not changed:
        raise NothingToRetry
    if video.complete_job_id is None:
        job_id = await defer_completion(video.id, queue, connection)
        await Video.filter(id=video.id).update(complete_job_id=job_id)


def _same_or_conflict(video: Video, request: CreateVideoRequest) -> Published:
    recorded = (video.title, video.description, video.category_ids, video.tags, video.file_name)
    submitted = (
        request.title,
        request.description,
        request.category_ids,
        request.tags,
        request.file_name,
    )
    if recorded != submitted:
        raise KeyAlreadyUsed
    return Published(video, created=False)


async def get_video(video_id: str) -> Video:
    """The video with this id; `VideoNotFound` for an unknown or malformed one."""
    parsed = parse_video_id(video_id)
    video = await Video.get_or_none(id=parsed) if parsed else None
    if video is None:
        raise VideoNotFound
    return video


async def list_videos(*, before: str | None, limit: int) -> VideoList:
    """A page of the library, newest first.

    `before` is the cursor of the page: the id of the last video of the page before it. An
    unknown cursor gives the first page, since the video may have been deleted meanwhile.
    """
    query = Video.all().order_by("-created_at", "-id")
    parsed = parse_video_id(before) if before else None
    last = await Video.get_or_none(id=parsed) if parsed else None
    if last is not None:
        query = query.filter(
            Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, id__lt=last.id)
        )
    videos = await query.limit(limit + 1)
    more = len(videos) > limit
    page = videos[:limit]
    return VideoList(page, next_cursor=str(page[-1].id) if more else None)


def parse_video_id(text: str) -> UUID | None:
    """The id, in its canonical form only: an address that names a video has one spelling."""
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None
