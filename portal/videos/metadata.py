"""Metadata of a video: the values that editors submit, their rules, and their versions.

Text is stored as submitted. A rule returns what is wrong with a value and the remedy, or None.

A program's change names the versions that it is for. If another version is recorded, nothing is
written, unless the change is recorded already, because its response was lost. A person's form has
the values that it was made from instead, and is merged with changes that others have saved since.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from portal.database.connection import transaction
from portal.database.models import Publication, Video, Visibility
from portal.database.search import search_columns
from portal.errors import KeyAlreadyUsed, MetadataChanged, VisibilityDiffers
from portal.events.log import AuditAction, changed_fields, record_action
from portal.locale.messages import Message, numeral
from portal.text import is_blank, split_tags, with_line_feeds
from portal.transcoding.planning.described_times import DescribedTimes
from portal.videos.merging import Merged, MergeRule, merge, united
from portal.videos.reading import check_version, locked_video
from portal.videos.visibility import recorded_access, save_access

MAX_FILE_NAME_LENGTH = 255
MAX_TITLE_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 5_000
MAX_TAGS_LENGTH = 500
MAX_PASSTHROUGH_BYTES = 1024
# There are far fewer categories, but ids may be repeated, and each page of a video shows all.
MAX_CATEGORIES = 64
# The extension becomes part of the storage key, whose length is limited by file systems.
FILE_NAME = re.compile(r"(?s).+\.[A-Za-z0-9]{1,64}")
# The rule of `file_name_fault` as a pattern for JSON Schema (ECMA-262).
FILE_NAME_PATTERN = r"^[^/\\\u0000-\u001f\u007f-\u009f]+\.[A-Za-z0-9]{1,64}$"
# Extensions by accepted content type, the usual one first.
EXTENSIONS = {"video/mp4": ("mp4", "m4v"), "video/quicktime": ("mov", "qt")}


class TagsTooLong(Exception):
    """The tags don't fit beside the video's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditableMetadata:
    """Values that editors submit for a video and may change."""

    title: str
    description: str
    category_ids: tuple[int, ...]
    tags: str

    def digest(self) -> str:
        """Return a digest of the values; stored with edited videos."""
        values = [self.title, self.description, self.category_ids, self.tags]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A new video: its metadata, the name of its file, and the storage key of the upload.

    `import_id` is the import that becomes the video, and its id. `visibility` is None if the
    request names none.
    """

    metadata: EditableMetadata
    file_name: str
    key: str
    passthrough: str = ""
    import_id: UUID | None = None
    visibility: Visibility | None = None


def with_tags(metadata: EditableMetadata, tags: str) -> EditableMetadata:
    """Return metadata with these tags added, ignoring case. Raises `TagsTooLong`."""
    present = split_tags(metadata.tags)
    folded = {tag.casefold() for tag in present}
    new = {tag.casefold(): tag for tag in split_tags(tags)}
    added = [tag for key, tag in new.items() if key not in folded]
    if not added:
        return metadata
    joined = ", ".join([*present, *added])
    if len(joined) > MAX_TAGS_LENGTH:
        raise TagsTooLong
    return replace(metadata, tags=joined)


def without_tags(metadata: EditableMetadata, tags: str) -> EditableMetadata:
    """Return metadata without these tags, ignoring case."""
    removed = {tag.casefold() for tag in split_tags(tags)}
    present = split_tags(metadata.tags)
    remaining = [tag for tag in present if tag.casefold() not in removed]
    if len(remaining) == len(present):
        return metadata
    return replace(metadata, tags=", ".join(remaining))


def text_fault(text: str) -> str | None:
    """Check that the database can store a text."""
    if "\0" in text:
        return Message("Remove the NUL character.")
    if any("\ud800" <= char <= "\udfff" for char in text):
        return Message("Remove the lone surrogate; send valid Unicode.")
    return None


def title_fault(title: str) -> str | None:
    """Check that a title is visible."""
    return Message("Give the video a title.") if is_blank(title) else None


def passthrough_fault(text: str) -> str | None:
    """Check the length of an integrator's text."""
    if len(text.encode()) > MAX_PASSTHROUGH_BYTES:
        limit = numeral(MAX_PASSTHROUGH_BYTES)
        return Message("Shorten this to at most %(limit)s bytes of UTF-8.", limit=limit)
    return None


def file_name_fault(name: str) -> str | None:
    """Check that a text is the name of a file with an extension."""
    if any(char in "/\\" or unicodedata.category(char) == "Cc" for char in name):
        return Message("Give the file's name alone: no path separators or control characters.")
    if not FILE_NAME.fullmatch(name):
        return Message("End the file name with an extension like .mp4.")
    return None


def key_extension(file_name: str, content_type: str) -> str:
    """Return the extension of the storage key: the file's own, or else that of its type."""
    extension = file_name.rpartition(".")[2].lower()
    is_known = any(extension in extensions for extensions in EXTENSIONS.values())
    return extension if is_known else EXTENSIONS[content_type][0]


def _line(text: str) -> str:
    """Return a text without line ends, as forms send it."""
    return with_line_feeds(text).replace("\n", "")


def _united_categories(*values: tuple[int, ...]) -> tuple[int, ...] | None:
    # A video needs at least one category.
    return tuple(united(*values)) or None


def _united_tags(*values: str) -> str | None:
    tags = ", ".join(united(*map(split_tags, values)))
    return tags if len(tags) <= MAX_TAGS_LENGTH else None


MERGED_FIELDS = {
    "title": MergeRule(compared=_line),
    "description": MergeRule(compared=with_line_feeds),
    "category_ids": MergeRule(compared=frozenset, united=_united_categories),
    "tags": MergeRule(compared=_line, united=_united_tags),
}


def recorded(video: Video) -> EditableMetadata:
    """Return the recorded metadata of a video."""
    return EditableMetadata(
        title=video.title,
        description=video.description,
        category_ids=tuple(video.category_ids),
        tags=video.tags,
    )


def require_repetition(submission: Submission, video: Video) -> None:
    """Check that a submission repeats the one of a video, so that nothing new is requested.

    Raises `KeyAlreadyUsed` or `VisibilityDiffers`.
    """
    # The metadata may be that of the first submission, or the present one.
    metadata = submission.metadata
    is_same = metadata == recorded(video) or metadata.digest() == video.submitted_digest
    if not is_same or submission.file_name != video.file_name:
        raise KeyAlreadyUsed
    if submission.visibility not in (None, video.visibility):
        present = {"id": str(video.id), "title": video.title, "visibility": video.visibility.value}
        raise VisibilityDiffers(present=present)


async def patch_video(
    video_id: UUID,
    *,
    versions: Collection[str] | None,
    visibility: Visibility | None = None,
    passthrough: str | None = None,
    **fields: Any,
) -> Video:
    """Change a video of one of these versions; None changes any version.

    `fields` are fields of `EditableMetadata`. A `visibility` or `passthrough` of None keeps the
    recorded one.

    Raises:
        MetadataChanged: another version is recorded that differs from the change.
        VideoNotFound: the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        present = recorded(video)
        metadata = replace(present, **fields)
        is_same = metadata == present and passthrough in (None, video.passthrough)
        has_visibility = visibility in (None, video.visibility)
        if not (is_same and has_visibility):
            check_version(str(video.metadata_version), versions, MetadataChanged)
        await _record_metadata(video, metadata, passthrough=passthrough)
        if visibility and not has_visibility:
            # `signed_in_only` belongs to private videos alone.
            access = replace(recorded_access(video), visibility=visibility, signed_in_only=False)
            video = await save_access(video_id, access, versions=None)
    return video


async def merge_metadata(
    video_id: UUID, mine: EditableMetadata, *, base: EditableMetadata
) -> tuple[Video, Merged]:
    """Merge and write a change of `base`. Return the video and the result of the merge.

    Nothing is written if there are conflicts. Raises `VideoNotFound` if the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        merged = merge(
            MERGED_FIELDS, base=asdict(base), mine=asdict(mine), theirs=asdict(recorded(video))
        )
        if not merged.conflicts:
            await _record_metadata(video, EditableMetadata(**merged.values))
    return video, merged


async def _record_metadata(
    video: Video, metadata: EditableMetadata, *, passthrough: str | None = None
) -> None:
    """Write metadata of a locked video and its event, unless they are recorded already."""
    before = {**asdict(recorded(video)), "passthrough": video.passthrough}
    after = {**before, **asdict(metadata)}
    if passthrough is not None:
        after["passthrough"] = passthrough
    detail = changed_fields(before, after)
    if not detail:
        return
    columns = {
        **after,
        "category_ids": list(metadata.category_ids),
        "submitted_digest": video.submitted_digest or recorded(video).digest(),
        "metadata_version": video.metadata_version + 1,
        "changed_at": datetime.now(UTC),
    }
    if metadata.description != video.description:
        times = DescribedTimes.of(video.described_times, video.keep, video.duration_s)
        columns["described_times"] = times.of_edited(video.description, metadata.description)
    derived = search_columns(
        title=metadata.title, description=metadata.description, tags=metadata.tags
    )
    await Publication.filter(id=video.id).update(**columns, **derived)
    video.update_from_dict(columns)
    await record_action(AuditAction.VIDEO_EDITED, video.id, detail=detail)
