"""Shapes of what editors read and change of a video."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, StrictInt, ValidationInfo
from pydantic_core import PydanticCustomError

from portal.videos import metadata
from portal.videos.metadata import EditableMetadata, title_fault
from portal.web.api.shapes import Shape, Text, keeping


@dataclass(frozen=True, slots=True)
class References:
    """What a request may refer to; handed to the rules as pydantic's validation context."""

    category_ids: Collection[int]
    key_is_issued: bool = True


def _is_category(value: int, info: ValidationInfo) -> int:
    if isinstance(info.context, References) and value not in info.context.category_ids:
        raise PydanticCustomError(
            "category", "There is no category with this id. See GET /api/categories."
        )
    return value


CategoryId = Annotated[StrictInt, Field(ge=1, le=32767), AfterValidator(_is_category)]


class VideoMetadata(Shape):
    """What editors say of a video, and may change. Text is kept as submitted."""

    title: Annotated[
        Text,
        Field(min_length=1, max_length=metadata.MAX_TITLE_LENGTH),
        AfterValidator(keeping(title_fault)),
    ]
    description: Annotated[Text, Field(max_length=metadata.MAX_DESCRIPTION_LENGTH)]
    category_ids: Annotated[
        list[CategoryId], Field(min_length=1, max_length=metadata.MAX_CATEGORIES)
    ]
    tags: Annotated[
        Text,
        Field(max_length=metadata.MAX_TAGS_LENGTH, description="Comma-separated by convention."),
    ]

    def value(self) -> EditableMetadata:
        """The same for services."""
        said = {it.name: getattr(self, it.name) for it in fields(EditableMetadata)}
        return EditableMetadata(**said | {"category_ids": tuple(self.category_ids)})


class EditHeaders(BaseModel):
    """What a change of metadata needs besides its body."""

    if_match: str = Field(
        alias="If-Match", description="The ETag of the metadata that was read, or `*`."
    )


class DeletedVideo(Shape):
    """A video that was deleted; its files are removed from storage soon after."""

    id: str


def metadata_record(recorded: EditableMetadata) -> VideoMetadata:
    """The public shape, unchecked: what earlier rules allowed is still to be read."""
    columns = asdict(recorded) | {"category_ids": list(recorded.category_ids)}
    return VideoMetadata.model_construct(**columns)
