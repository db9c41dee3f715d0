"""Editing what is said of a video: one place that writes it, under a version number.

Whoever saves says which version they have read. When it is no longer the newest, nothing is
written, unless what they send is what is recorded already: then an answer got lost on its way.
"""

from __future__ import annotations

import hashlib
import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from portal.database.connection import transaction
from portal.database.rows import lock_video
from portal.errors import MetadataChanged, VideoNotFound
from portal.web.api.schemas import VideoMetadata

if TYPE_CHECKING:
    from portal.database.models import Video

logger = logging.getLogger(__name__)


def recorded(video: Video) -> VideoMetadata:
    """The metadata of a video as it is in the database, unchecked."""
    return VideoMetadata.model_construct(
        title=video.title,
        description=video.description,
        category_ids=video.category_ids,
        tags=video.tags,
    )


def metadata_of(request: VideoMetadata) -> VideoMetadata:
    """The metadata alone of a request that says more."""
    return VideoMetadata.model_construct(
        title=request.title,
        description=request.description,
        category_ids=request.category_ids,
        tags=request.tags,
    )


async def save_metadata(video_id: UUID, metadata: VideoMetadata, *, version: int | None) -> Video:
    """Write a video's metadata over the version that was read; None for whatever is there.

    Raises:
        MetadataChanged: another version is recorded by now, and says something else.
        VideoNotFound: the video was deleted meanwhile.
    """
    async with transaction():
        video = await lock_video(video_id)
        if video is None:
            raise VideoNotFound
        if metadata == recorded(video):
            return video
        if version is not None and version != video.metadata_version:
            raise MetadataChanged
        await _write(video, metadata)
    logger.info(
        "Metadata edited",
        extra={
            "action": "edit",
            "video_id": str(video_id),
            "metadata_version": video.metadata_version,
        },
    )
    return video


def was_created_with(video: Video, metadata: VideoMetadata, file_name: str) -> bool:
    """Whether this is what the video was created with, or what is recorded of it now.

    Either way a creation that is sent again, because its answer was lost, asks for nothing new.
    """
    if video.file_name != file_name:
        return False
    return metadata == recorded(video) or video.submitted_digest == _digest(metadata)


async def _write(video: Video, metadata: VideoMetadata) -> None:
    columns = {
        "title": metadata.title,
        "description": metadata.description,
        "category_ids": metadata.category_ids,
        "tags": metadata.tags,
        "submitted_digest": video.submitted_digest or _digest(recorded(video)),
        "metadata_version": video.metadata_version + 1,
        "updated_at": datetime.now(UTC),
    }
    await video.update_from_dict(columns).save(update_fields=list(columns))


def _digest(metadata: VideoMetadata) -> str:
    values = [metadata.title, metadata.description, metadata.category_ids, metadata.tags]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
