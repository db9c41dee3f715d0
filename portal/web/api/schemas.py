"""Request and response shapes of the JSON API, with their rules.

The OpenAPI document is generated from these types. `CreatedVideo` and `RetrievedVideo` are
separate on purpose: they have the same members today, but for playbackUrl, and may diverge.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

from portal.database.models import VideoStatus
from portal.errors import FieldError
from portal.text import is_blank

MAX_FILE_NAME_LENGTH = 255
MAX_TITLE_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 5_000
MAX_TAGS_LENGTH = 500
# There are far fewer; but ids may be repeated, and every page of a video names all of them.
MAX_CATEGORIES = 64
# The extension becomes part of the key, and a part of a key may be too long for a file system.
FILE_NAME = re.compile(r"(?s).+\.[A-Za-z0-9]{1,64}")
# The same, and what else `_is_file_name` wants, as JSON Schema writes it (ECMA-262).
FILE_NAME_PATTERN = r"^[^/\\\u0000-\u001f\u007f-\u009f]+\.[A-Za-z0-9]{1,64}$"


@dataclass(frozen=True, slots=True)
class References:
    """What a request may refer to; handed to the rules as pydantic's validation context."""

    category_ids: Collection[int]
    key_is_issued: bool


def _storable(value: Any) -> Any:
    # Checked before pydantic sees the text, which has words of its own for surrogates.
    if isinstance(value, str):
        if "\0" in value:
            raise PydanticCustomError("text", "Remove the NUL character.")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise PydanticCustomError("text", "Remove the lone surrogate; send valid Unicode.")
    return value


def _not_blank(value: str) -> str:
    if is_blank(value):
        raise PydanticCustomError("blank", "Give a title; it may not be blank.")
    return value


def _is_file_name(value: str) -> str:
    if any(char in "/\\" or unicodedata.category(char) == "Cc" for char in value):
        raise PydanticCustomError(
            "file_name", "Give the file's name alone: no path separators or control characters."
        )
    if not FILE_NAME.fullmatch(value):
        raise PydanticCustomError("file_name", "End the file name with an extension like .mp4.")
    return value


def _is_category(value: int, info: ValidationInfo) -> int:
    if isinstance(info.context, References) and value not in info.context.category_ids:
        raise PydanticCustomError(
            "category", "There is no category with this id. See GET /api/categories."
        )
    return value


def _is_issued(value: str, info: ValidationInfo) -> str:
    if isinstance(info.context, References) and not info.context.key_is_issued:
        raise PydanticCustomError(
            "key", "This key was not issued here. Send the key from POST /api/videos/presign."
        )
    return value


def _rfc3339(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


Text = Annotated[StrictStr, BeforeValidator(_storable)]
FileName = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=MAX_FILE_NAME_LENGTH,
        description="Original file name.",
        json_schema_extra={"pattern": FILE_NAME_PATTERN},
    ),
    AfterValidator(_is_file_name),
]
CategoryId = Annotated[StrictInt, Field(ge=1, le=32767), AfterValidator(_is_category)]
Timestamp = Annotated[
    AwareDatetime,
    PlainSerializer(_rfc3339, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Shape(BaseModel):
    """What all shapes share: camelCase members, nothing changed after it was made."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True, frozen=True
    )


class CategoryRecord(Shape):
    """A category of the fixed table."""

    id: int = Field(ge=1, le=32767)
    name: str


class CategoryList(Shape):
    """All categories."""

    categories: list[CategoryRecord]


class PresignRequest(Shape):
    """Asks for an address to upload one file to."""

    file_name: FileName
    content_type: Literal["video/mp4", "video/quicktime"]


class PresignResponse(Shape):
    """Where to PUT the file, and the key to send back when that is done."""

    upload_url: str = Field(
        description="Signed address; PUT the raw bytes with the announced Content-Type.",
        json_schema_extra={"format": "uri"},
    )
    key: str = Field(description="Storage key, `videos/<unique id>.<extension>`.")


class VideoMetadata(Shape):
    """What editors say of a video, and may change. Text is kept as submitted."""

    title: Annotated[
        Text, Field(min_length=1, max_length=MAX_TITLE_LENGTH), AfterValidator(_not_blank)
    ]
    description: Annotated[Text, Field(max_length=MAX_DESCRIPTION_LENGTH)]
    category_ids: Annotated[list[CategoryId], Field(min_length=1, max_length=MAX_CATEGORIES)]
    tags: Annotated[
        Text, Field(max_length=MAX_TAGS_LENGTH, description="Comma-separated by convention.")
    ]


class EditHeaders(BaseModel):
    """What a change of metadata needs besides its body."""

    if_match: str = Field(
        alias="If-Match", description="The ETag of the metadata that was read, or `*`."
    )


class CreateVideoRequest(VideoMetadata):
    """Says that the upload is complete, and describes the video. Text is kept as submitted."""

    file_name: FileName
    key: Annotated[
        Text,
        Field(description="The key from POST /api/videos/presign."),
        AfterValidator(_is_issued),
    ]


class CreatedVideo(Shape):
    """A video's record as answered to its creation."""

    id: str
    title: str
    description: str
    category_ids: list[int]
    tags: str
    file_name: str
    storage_key: str
    transcode_job_id: str
    status: VideoStatus
    size_bytes: Annotated[int, Field(json_schema_extra={"format": "int64"})]
    created_at: Timestamp
    updated_at: Timestamp


class RetrievedVideo(Shape):
    """A video's record as read by its id."""

    id: str
    title: str
    description: str
    category_ids: list[int]
    tags: str
    file_name: str
    storage_key: str
    transcode_job_id: str
    status: VideoStatus
    playback_url: str = Field(
        description="Address of the HLS master playlist when ready, otherwise empty."
    )
    size_bytes: Annotated[int, Field(json_schema_extra={"format": "int64"})]
    created_at: Timestamp
    updated_at: Timestamp


class DeletedVideo(Shape):
    """A video that was deleted; its files are removed from storage soon after."""

    id: str


class Fault(Shape):
    """One fault in a request body."""

    pointer: str = Field(description="RFC 6901 JSON pointer to the member at fault.")
    message: str


class Problem(Shape):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable name of the error, for programs.")


class ValidationProblem(Problem):
    """Problem details that list every fault of the request at once."""

    errors: list[Fault]


def field_errors(error: ValidationError) -> list[FieldError]:
    """All faults pydantic found, each with its JSON pointer and words that name the remedy."""
    return [FieldError(_pointer(fault["loc"]), _message(fault)) for fault in error.errors()]


def _pointer(location: tuple[int | str, ...]) -> str:
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return "".join(f"/{part}" for part in escaped)


def _message(fault: ErrorDetails) -> str:
    context = fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return "This member is required."
        case "string_type":
            return "Give a string."
        case "int_type" | "int_parsing_size" | "int_from_float":
            return "Give an integer."
        case "greater_than_equal" | "less_than_equal":
            return "Give an integer from 1 to 32767."
        case "list_type":
            return "Give an array."
        case "model_type" | "model_attributes_type" | "dict_type":
            return "Send one JSON object."
        case "string_too_short" | "too_short":
            return "This may not be empty."
        case "string_too_long" | "too_long":
            return _too_long(fault["input"], context["max_length"])
        case "literal_error":
            return f"Choose {context['expected']}."
        case _:
            return fault["msg"]


def _too_long(value: Any, limit: int) -> str:
    if isinstance(value, list):
        return f"Give at most {limit:,}."
    return f"Shorten this to at most {limit:,} characters."
