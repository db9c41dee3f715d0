"""Editing what is said of a video: one place that writes it, under a version number.

A change names the version that was read. When that is no longer the newest, nothing is written,
unless what is sent is what is recorded already: then an answer got lost on its way.
"""

import logging
from dataclasses import asdict
from datetime import UTC, datetime
from uuid import UUID

from portal.database.connection import transaction
from portal.database.models import Video
from portal.database.rows import lock_video
from portal.errors import MetadataChanged, VideoNotFound
from portal.videos.metadata import EditableMetadata, Submission

logger = logging.getLogger(__name__)


def recorded(video: Video) -> EditableMetadata:
    """The metadata of a video as it is in the database."""
    return EditableMetadata(
        title=video.title,
        description=video.description,
        category_ids=tuple(video.category_ids),
        tags=video.tags,
    )


async def save_metadata(
    video_id: UUID, metadata: EditableMetadata, *, version: int | None
) -> Video:
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
    edited = {"video_id": str(video_id), "metadata_version": video.metadata_version}
    logger.info("Metadata edited", extra={"action": "edit", **edited})
    return video


def was_created_with(video: Video, submission: Submission) -> bool:
    """Whether this is what the video was created with, or what is recorded of it now.

    Either way a creation that is sent again, because its answer was lost, asks for nothing new.
    """
    if video.file_name != submission.file_name:
        return False
    metadata = submission.metadata
    return metadata == recorded(video) or video.submitted_digest == metadata.digest()


async def _write(video: Video, metadata: EditableMetadata) -> None:
    columns = {
        **asdict(metadata),
        "category_ids": list(metadata.category_ids),
        "submitted_digest": video.submitted_digest or recorded(video).digest(),
        "metadata_version": video.metadata_version + 1,
        "updated_at": datetime.now(UTC),
    }
    await video.update_from_dict(columns).save(update_fields=list(columns))
