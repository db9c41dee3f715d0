"""Request and response shapes of uploads in parts."""

from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, ValidationInfo
from pydantic_core import PydanticCustomError

from portal.storage.objects import StoredPart
from portal.uploads.parts import MAX_FILE_BYTES, MAX_PARTS, part_count, part_size_bytes
from portal.uploads.service import UploadState, UploadView
from portal.web.api.shapes import SIZE_FORMAT, Problem, Shape, Text, Timestamp


def max_upload_bytes(max_source_bytes: int) -> int:
    """The limit of storage or of this portal, where 0 stands for no limit."""
    return min(max_source_bytes or MAX_FILE_BYTES, MAX_FILE_BYTES)


def _is_size(value: int, info: ValidationInfo) -> int:
    # The limit is pydantic's validation context.
    largest = info.context if isinstance(info.context, int) else MAX_FILE_BYTES
    if value < 1:
        raise PydanticCustomError("size", "Give the file's size; an empty file is no video.")
    if value > largest:
        raise PydanticCustomError(
            "size", "The file is too large: at most {largest} bytes.", {"largest": f"{largest:,}"}
        )
    return value


class StartUploadRequest(Shape):
    """Starts an upload in parts."""

    key: Annotated[Text, Field(description="The key from POST /api/videos/presign.")]
    size_bytes: Annotated[
        StrictInt,
        AfterValidator(_is_size),
        Field(
            description="Size of the whole file.",
            # The OpenAPI document has the configured maximum; see `_Provider` in `openapi.py`.
            json_schema_extra={**SIZE_FORMAT, "minimum": 1, "maximum": MAX_FILE_BYTES},
        ),
    ]


class StoredPartRecord(Shape):
    """A part that is stored whole."""

    part_number: int = Field(ge=1, le=MAX_PARTS)
    size_bytes: Annotated[int, Field(json_schema_extra=SIZE_FORMAT)]
    etag: str = Field(description="As storage answered it to the part's PUT, without quotes.")


class UploadRecord(Shape):
    """How an upload stands."""

    upload_id: str = Field(description="The unique id inside the key.")
    key: str
    state: UploadState = Field(
        description="`pending` while nothing is there, `uploading` in parts, `stored` when whole."
    )
    size_bytes: Annotated[int | None, Field(json_schema_extra=SIZE_FORMAT)] = Field(
        description="As announced, or as stored; null while pending."
    )
    part_size_bytes: Annotated[int | None, Field(json_schema_extra=SIZE_FORMAT)] = Field(
        description="Size of every part but the last; null while pending."
    )
    part_count: int | None = Field(
        description="Parts are numbered from 1 to this; null while pending."
    )
    parts: list[StoredPartRecord] = Field(
        description="Those stored whole, while uploading; the others are to be sent."
    )


class PartAddress(Shape):
    """Where to PUT one part."""

    upload_url: str = Field(
        description="Signed address; PUT the part's bytes, all of them and no more.",
        json_schema_extra={"format": "uri"},
    )


class PartsProblem(Problem):
    """Problem details that tell which parts are missing, if that is the problem."""

    missing_parts: list[int] = Field(
        default=[], description="With parts_missing only: their numbers, at most the first 1,000."
    )


class QuotaProblem(Problem):
    """Problem details that tell how much an account may have, if that is the problem."""

    limit: Annotated[int | None, Field(json_schema_extra=SIZE_FORMAT)] = Field(
        default=None,
        description="With video_quota_exceeded videos in 24 hours, with storage_quota_exceeded "
        "bytes: how many the account may have.",
    )
    used: Annotated[int | None, Field(json_schema_extra=SIZE_FORMAT)] = Field(
        default=None, description="With limit: how many it has."
    )
    free_at: Timestamp | None = Field(
        default=None, description="With video_quota_exceeded only: when the next may be published."
    )


def upload_record(upload: UploadView) -> UploadRecord:
    """The public shape of an upload."""
    size_bytes = upload.size_bytes
    return UploadRecord(
        upload_id=upload.upload_id,
        key=upload.key,
        state=upload.state,
        size_bytes=size_bytes,
        part_size_bytes=None if size_bytes is None else part_size_bytes(size_bytes),
        part_count=None if size_bytes is None else part_count(size_bytes),
        parts=[_part_record(part) for part in upload.parts],
    )


def _part_record(part: StoredPart) -> StoredPartRecord:
    return StoredPartRecord(
        part_number=part.number, size_bytes=part.size_bytes, etag=part.etag.strip('"')
    )
