"""Metadata of a video, as the API and the forms of pages take it."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, ValidationInfo

from portal.database.models import Visibility
from portal.events.records import VideoRecord
from portal.http.schemas.base import ClosedShape, Text, fault_error, reject_if
from portal.locale.messages import Message
from portal.videos import metadata
from portal.videos.metadata import EditableMetadata


def _check_category(value: int, info: ValidationInfo) -> int:
    # The context holds the existing ids, or is None to skip this check.
    if info.context is not None and value not in info.context:
        raise fault_error(Message("There is no category with this id. See GET /api/categories."))
    return value


CategoryId = Annotated[StrictInt, Field(ge=1, le=32767), AfterValidator(_check_category)]


Title = Annotated[
    Text,
    Field(
        max_length=metadata.MAX_TITLE_LENGTH,
        description="Title of the video.",
        json_schema_extra={"minLength": 1},
    ),
    reject_if(metadata.title_fault),
]
Description = Annotated[
    Text, Field(max_length=metadata.MAX_DESCRIPTION_LENGTH, description="Free text.")
]
CategoryIds = Annotated[
    list[CategoryId],
    Field(
        min_length=1,
        max_length=metadata.MAX_CATEGORIES,
        description="Ids of categories, from GET /api/categories.",
    ),
]
Tags = Annotated[
    Text,
    Field(max_length=metadata.MAX_TAGS_LENGTH, description="Comma-separated by convention."),
]
UploadKey = Annotated[Text, Field(description="The key from POST /api/videos/presign.")]
FileName = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=metadata.MAX_FILE_NAME_LENGTH,
        description="Original file name.",
        json_schema_extra={"pattern": metadata.FILE_NAME_PATTERN},
    ),
    reject_if(metadata.file_name_fault),
]


Passthrough = Annotated[
    Text,
    reject_if(metadata.passthrough_fault),
    Field(
        description="Your own text, at most 1 KB of UTF-8, for anyone who may see the video.",
        json_schema_extra={"maxLength": metadata.MAX_PASSTHROUGH_BYTES},
    ),
]


class VideoMetadata(ClosedShape):
    """Editable metadata of a video. Text is kept as submitted."""

    title: Title
    description: Description
    category_ids: CategoryIds
    tags: Tags

    def value(self) -> EditableMetadata:
        """Return the metadata as services take it."""
        return EditableMetadata(
            title=self.title,
            description=self.description,
            category_ids=tuple(self.category_ids),
            tags=self.tags,
        )


class MetadataRecord(VideoMetadata):
    """Editable metadata, and text that an integrator keeps with the video."""

    passthrough: Passthrough = Field(default_factory=str)


class EditedVideo(MetadataRecord):
    """Members of a video that a merge patch may change."""

    visibility: Visibility = Field(description="`public`, `unlisted` or `private`.")


class VideoPatch(ClosedShape):
    """JSON merge patch: members that it leaves out stay, and null empties a text."""

    title: Title = Field(default_factory=str)
    description: Description | None = Field(default_factory=str)
    category_ids: CategoryIds = Field(default_factory=list)
    tags: Tags | None = Field(default_factory=str)
    passthrough: Passthrough | None = Field(default_factory=str)
    visibility: Visibility = Field(
        default_factory=lambda: Visibility.PRIVATE, description="`public`, `unlisted` or `private`."
    )

    def named(self) -> dict[str, Any]:
        """Return the members that the patch names, as services take them."""
        named = {name: getattr(self, name) for name in self.model_fields_set}
        return {
            name: tuple(value) if isinstance(value, list) else value or ""
            for name, value in named.items()
        }


class CreatedVideo(VideoRecord, from_attributes=True):
    """A video's record as answered to its creation."""
