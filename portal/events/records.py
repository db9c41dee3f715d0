"""The record of a video, as the API, its events and webhooks show it.

`VideoColumns` is read from the database and kept in events; the other shapes are sent to programs.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from portal.config import Config
from portal.database.models import VideoStatus, Visibility
from portal.text import rfc3339

Size = Annotated[int, Field(json_schema_extra={"format": "int64"})]
Uri = Annotated[str, Field(json_schema_extra={"format": "uri"})]
Time = Annotated[
    AwareDatetime,
    PlainSerializer(rfc3339, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
AUDIENCE_COLUMNS = ("visibility", "signed_in_only", "owner_id")
# Columns of a video's details beside its audience.
DETAILS = ("duration_s", "has_poster", "failure_code", "failure_message")
# Identifiers are strings in JSON, and UUIDs or integers in the database.
Id = Annotated[str, BeforeValidator(str)]


class Shape(BaseModel):
    """Base of all shapes of JSON: immutable, with camelCase members."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        field_title_generator=lambda name, _: to_camel(name),
        populate_by_name=True,
        serialize_by_alias=True,
        frozen=True,
    )


class VideoRecord(Shape):
    """Members of a video's record on creation and on retrieval."""

    id: Id
    title: str
    description: str
    category_ids: list[int]
    tags: str
    file_name: str
    storage_key: str
    transcode_job_id: Id
    status: VideoStatus
    size_bytes: Size
    created_at: Time
    updated_at: Time


class RetrievedVideo(VideoRecord):
    """A video's record as read by its id."""

    playback_url: str = Field(
        description="Address of the HLS master playlist when ready, otherwise empty."
    )


class VideoWithPassthrough(RetrievedVideo):
    """A video's record with what an integrator keeps with it."""

    passthrough: str = Field(default="", description="See PATCH /api/videos/{id}.")


class VideoColumns(VideoRecord):
    """Columns of a video that events keep in `data`.

    They are its record, its audience, and the attempt that decides whether it can be played.
    """

    passthrough: str
    published_attempt: int | None
    visibility: Visibility
    signed_in_only: bool
    owner_id: UUID | None


class TranscodeFailure(Shape):
    """Reason of a failed video or import."""

    code: str = Field(description="Stable name of the reason, for programs.")
    message: str

    @classmethod
    def of(cls, code: str | None, message: str | None) -> Self | None:
        """Return the failure with a code; None without a code."""
        return cls(code=code, message=message or "") if code else None


class VideoDetails(Shape):
    """Details of a video beside its record."""

    visibility: Visibility
    duration_seconds: float | None = Field(description="Null until it is known.")
    page_url: Uri
    embed_url: Uri
    poster_url: Uri | None
    failure: TranscodeFailure | None


class DeletedVideo(Shape):
    """A video that was deleted; its files are removed from storage soon after."""

    id: str


class FailedImport(Shape):
    """An import that will be no video."""

    id: str
    failure: TranscodeFailure


def audience_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return those columns of a record that are its audience."""
    return {name: record[name] for name in AUDIENCE_COLUMNS if name in record}


def details_of(config: Config, video_id: UUID | str, columns: Mapping[str, Any]) -> VideoDetails:
    """Return a video's details, with absolute addresses, from columns of its row."""
    page_url = f"{config.public_url}/videos/{video_id}"
    return VideoDetails(
        visibility=columns["visibility"],
        duration_seconds=columns["duration_s"],
        page_url=page_url,
        embed_url=f"{config.public_url}/embed/{video_id}",
        poster_url=f"{page_url}/poster.jpg" if columns["has_poster"] else None,
        failure=TranscodeFailure.of(columns["failure_code"], columns["failure_message"]),
    )
