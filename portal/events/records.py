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
from portal.database.models import Approval, VideoStatus, Visibility
from portal.text import rfc3339


def rounded_to(digits: int | None) -> BeforeValidator:
    """Return a validator that rounds numbers to these digits; to whole numbers without digits."""
    return BeforeValidator(lambda value: None if value is None else round(value, digits))


Percent = Annotated[float, Field(ge=0, le=100), rounded_to(1)]
Seconds = Annotated[int | None, rounded_to(None)]
Size = Annotated[int, Field(json_schema_extra={"format": "int64"})]
Uri = Annotated[str, Field(json_schema_extra={"format": "uri"})]
Time = Annotated[
    AwareDatetime,
    PlainSerializer(rfc3339, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
# Columns that are a video's audience, with their types in the database.
AUDIENCE_COLUMNS = {
    "visibility": "text",
    "signed_in_only": "boolean",
    "owner_id": "uuid",
    "admitted_ids": "uuid[]",
    "editor_ids": "uuid[]",
    "approval": "text",
}
# Columns of a video's details beside its audience.
DETAILS = ("duration_s", "has_poster", "failure_code", "failure_message")
# Identifiers are strings in JSON, and UUIDs or integers in the database.
Id = Annotated[str, BeforeValidator(str)]


def _describe_nullable_members(schema: dict[str, Any]) -> None:
    """Give members that may be null the description of their type."""
    for member in schema.get("properties", {}).values():
        for kind in member.get("anyOf", ()):
            if "description" in kind:
                member.setdefault("description", kind.pop("description"))


class Shape(BaseModel):
    """Base of all shapes of JSON: immutable, with camelCase members, which have descriptions."""

    model_config = ConfigDict(
        json_schema_extra=_describe_nullable_members,
        alias_generator=to_camel,
        field_title_generator=lambda name, _: to_camel(name),
        populate_by_name=True,
        serialize_by_alias=True,
        frozen=True,
    )


class VideoRecord(Shape):
    """Members of a video's record on creation and on retrieval."""

    id: Id = Field(description="Unique identifier of the video.")
    title: str = Field(description="Title, as submitted.")
    description: str = Field(description="Free text, as submitted.")
    category_ids: list[int] = Field(description="Ids of categories, from GET /api/categories.")
    tags: str = Field(description="Tags as one text, by convention separated by commas.")
    file_name: str = Field(description="Name of the file on the machine that uploaded it.")
    storage_key: str = Field(description="Storage key of the uploaded file.")
    transcode_job_id: Id = Field(description="Identifier of the transcoding job.")
    status: VideoStatus = Field(
        description="State of the transcoding: `processing`, `ready` or `failed`."
    )
    size_bytes: Size = Field(description="Size of the uploaded file.")
    created_at: Time = Field(description="Time of the video's creation.")
    updated_at: Time = Field(description="Time of the last change of the video.")


class VideoWithPassthrough(VideoRecord):
    """A video's record with its playback address, and what an integrator keeps with it."""

    playback_url: str = Field(
        description="Address of the HLS master playlist when ready, otherwise empty."
    )
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
    admitted_ids: list[UUID]
    editor_ids: list[UUID]
    approval: Approval | None


class TranscodeFailure(Shape):
    """Reason of a failed video or import."""

    code: str = Field(description="Stable name of the reason, for programs.")
    message: str = Field(description="Reason and remedy for people, in English.")

    @classmethod
    def of(cls, code: str | None, message: str | None) -> Self | None:
        """Return the failure with a code; None without a code."""
        return cls(code=code, message=message or "") if code else None


class VideoDetails(Shape):
    """Details of a video beside its record."""

    visibility: Visibility = Field(description="`public`, `unlisted` or `private`.")
    approval: Approval = Field(
        description="`approved`, or `waiting` or `refused`: then only its owner and the people who "
        "may approve see the video, whatever its visibility."
    )
    duration_seconds: float | None = Field(description="Null until it is known.")
    page_url: Uri = Field(description="Address of the video's page.")
    embed_url: Uri = Field(description="Address of the player for a frame.")
    poster_url: Uri | None = Field(description="Address of the poster; null without a poster.")
    failure: TranscodeFailure | None = Field(
        description="Reason why the video failed; null unless it did."
    )


class DeletedVideo(Shape):
    """A video that was deleted; its files are removed from storage soon after."""

    id: str = Field(description="Identifier of the deleted video.")


class FailedImport(Shape):
    """An import that will be no video."""

    id: str = Field(description="Identifier that the video would have had.")
    failure: TranscodeFailure = Field(description="Reason why the import failed.")


def audience_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return those columns of a record that are its audience."""
    return {name: record[name] for name in AUDIENCE_COLUMNS if name in record}


def details_of(config: Config, video_id: UUID | str, columns: Mapping[str, Any]) -> VideoDetails:
    """Return a video's details, with absolute addresses, from columns of its row."""
    page_url = f"{config.public_url}/videos/{video_id}"
    return VideoDetails(
        visibility=columns["visibility"],
        approval=columns["approval"] or Approval.APPROVED,
        duration_seconds=columns["duration_s"],
        page_url=page_url,
        embed_url=f"{config.public_url}/embed/{video_id}",
        poster_url=f"{page_url}/poster.jpg" if columns["has_poster"] else None,
        failure=TranscodeFailure.of(columns["failure_code"], columns["failure_message"]),
    )
