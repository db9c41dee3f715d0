"""Metadata of a video, as the API and the forms of pages take it."""

from dataclasses import fields
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, ValidationInfo
from pydantic_core import PydanticCustomError

from portal.database.models import Visibility
from portal.videos import metadata
from portal.videos.metadata import EditableMetadata
from portal.web.schemas.base import ClosedShape, Text, reject_if


def _is_category(value: int, info: ValidationInfo) -> int:
    # The ids that there are; None where that is not asked.
    if info.context is not None and value not in info.context:
        raise PydanticCustomError(
            "category", "There is no category with this id. See GET /api/categories."
        )
    return value


CategoryId = Annotated[StrictInt, Field(ge=1, le=32767), AfterValidator(_is_category)]


Title = Annotated[
    Text,
    Field(max_length=metadata.MAX_TITLE_LENGTH, json_schema_extra={"minLength": 1}),
    reject_if(metadata.title_fault),
]
Description = Annotated[Text, Field(max_length=metadata.MAX_DESCRIPTION_LENGTH)]
CategoryIds = Annotated[list[CategoryId], Field(min_length=1, max_length=metadata.MAX_CATEGORIES)]
Tags = Annotated[
    Text,
    Field(max_length=metadata.MAX_TAGS_LENGTH, description="Comma-separated by convention."),
]


Passthrough = Annotated[
    Text,
    reject_if(metadata.passthrough_fault),
    Field(
        description="Your own text, at most 1 KB of UTF-8. Who may see the video may read it.",
        json_schema_extra={"maxLength": metadata.MAX_PASSTHROUGH_BYTES},
    ),
]


class VideoMetadata(ClosedShape):
    """What editors say of a video, and may change. Text is kept as submitted."""

    title: Title
    description: Description
    category_ids: CategoryIds
    tags: Tags

    def value(self) -> EditableMetadata:
        """The same for services."""
        said = {it.name: getattr(self, it.name) for it in fields(EditableMetadata)}
        return EditableMetadata(**said | {"category_ids": tuple(self.category_ids)})


class MetadataRecord(VideoMetadata):
    """The same, with what an integrator keeps with the video."""

    passthrough: Passthrough = Field(default_factory=str)


class EditedVideo(MetadataRecord):
    """What a merge patch may change of a video."""

    visibility: Visibility


class VideoPatch(ClosedShape):
    """A JSON merge patch: what it doesn't name stays, and a text that is null is emptied."""

    title: Title = Field(default_factory=str)
    description: Description | None = Field(default_factory=str)
    category_ids: CategoryIds = Field(default_factory=list)
    tags: Tags | None = Field(default_factory=str)
    passthrough: Passthrough | None = Field(default_factory=str)
    visibility: Visibility = Field(default_factory=lambda: Visibility.PRIVATE)

    def named(self) -> dict[str, Any]:
        """What it names, for services."""
        named = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: tuple(it) if isinstance(it, list) else it or "" for name, it in named.items()}
