"""Editing what is said of a video: one place that writes it, under a version number.

A program names the version that it read. When that is no longer the newest, nothing is written,
unless what is sent is what is recorded already: then an answer got lost on its way. A person's form
says what it was made from instead, and is merged with what others have saved since.
"""

import logging
from dataclasses import asdict
from datetime import UTC, datetime
from uuid import UUID

from portal.accounts.audit import AuditAction, changed_fields, note
from portal.database.connection import transaction
from portal.database.models import Video
from portal.errors import MetadataChanged
from portal.text import split_tags
from portal.videos.merging import Merged, MergeRule, merge, united
from portal.videos.metadata import MAX_TAGS_LENGTH, EditableMetadata, Submission
from portal.videos.reading import locked_video

logger = logging.getLogger(__name__)


def _lines(text: str) -> str:
    """A text as it is compared: forms change ends of lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _line(text: str) -> str:
    """A text of one line, from which forms leave ends of lines out."""
    return _lines(text).replace("\n", "")


def _united_categories(*values: tuple[int, ...]) -> tuple[int, ...] | None:
    # At least one is asked for.
    return tuple(united(*values)) or None


def _united_tags(*values: str) -> str | None:
    tags = ", ".join(united(*map(split_tags, values)))
    return tags if len(tags) <= MAX_TAGS_LENGTH else None


MERGED_FIELDS = {
    "title": MergeRule(compared=_line),
    "description": MergeRule(compared=_lines),
    "category_ids": MergeRule(compared=frozenset, united=_united_categories),
    "tags": MergeRule(compared=_line, united=_united_tags),
}


def recorded(video: Video) -> EditableMetadata:
    """The metadata of a video as it is in the database."""
    return EditableMetadata(
        title=video.title,
        description=video.description,
        category_ids=tuple(video.category_ids),
        tags=video.tags,
    )


async def save_metadata(
    video_id: UUID, metadata: EditableMetadata, *, version: str | None
) -> Video:
    """Write a video's metadata over the version that was read; None for whatever is there.

    Raises:
        MetadataChanged: another version is recorded by now, and says something else.
        VideoNotFound: the video was deleted meanwhile.
    """
    async with transaction():
        video = await locked_video(video_id)
        if metadata != recorded(video) and version not in (None, str(video.metadata_version)):
            raise MetadataChanged
        await _record(video, metadata)
    return video


async def merge_metadata(
    video_id: UUID, mine: EditableMetadata, *, base: EditableMetadata
) -> tuple[Video, Merged]:
    """Write what I made of `base` together with what others have made of it; the video after that.

    Nothing is written if there are conflicts. Raises `VideoNotFound` if the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        merged = merge(
            MERGED_FIELDS, base=asdict(base), mine=asdict(mine), theirs=asdict(recorded(video))
        )
        if not merged.conflicts:
            await _record(video, EditableMetadata(**merged.values))
    return video, merged


def was_created_with(video: Video, submission: Submission) -> bool:
    """Whether this is what the video was created with, or what is recorded of it now.

    Either way a creation that is sent again, because its answer was lost, asks for nothing new.
    """
    if video.file_name != submission.file_name:
        return False
    metadata = submission.metadata
    return metadata == recorded(video) or video.submitted_digest == metadata.digest()


async def _record(video: Video, metadata: EditableMetadata) -> None:
    """Write metadata, and who did; nothing if it is what is recorded."""
    detail = changed_fields(asdict(recorded(video)), asdict(metadata))
    if not detail:
        return
    await _write(video, metadata)
    await note(AuditAction.VIDEO_EDITED, video.id, detail=detail)
    edited = {"video_id": str(video.id), "metadata_version": video.metadata_version}
    logger.info("Metadata edited", extra={"action": "edit", **edited})


async def _write(video: Video, metadata: EditableMetadata) -> None:
    now = datetime.now(UTC)
    columns = {
        **asdict(metadata),
        "category_ids": list(metadata.category_ids),
        "submitted_digest": video.submitted_digest or recorded(video).digest(),
        "metadata_version": video.metadata_version + 1,
        "updated_at": now,
        "changed_at": now,
    }
    await video.update_from_dict(columns).save(update_fields=list(columns))
