"""JSON API of uploads in parts. The parts themselves are sent to storage."""

from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, ValidationInfo
from quart import Blueprint, Response, request, url_for
from quart_schema import (
    document_querystring,
    document_request,
    document_response,
    tag_blueprint,
)

from portal.errors import FieldError, InvalidRequest
from portal.events.records import Shape, Size, Uri
from portal.http import json_bodies
from portal.http.auth import Policy, policy, require_own_upload
from portal.http.composition import web_context
from portal.http.schemas.base import ClosedShape, Problem, QuotaProblem, fault_error
from portal.http.schemas.metadata import UploadKey
from portal.http.schemas.validation import validated, validated_query
from portal.locale.messages import Message, numeral
from portal.storage.objects import (
    MAX_FILE_BYTES,
    MAX_PARTS,
    SMALLEST_PART_BYTES,
    part_count,
    part_size_bytes,
)
from portal.uploads import service as uploads

blueprint = Blueprint("api_uploads", __name__, url_prefix="/api/uploads")
tag_blueprint(blueprint, ["Uploads in parts"])


def _check_size(value: int | None, info: ValidationInfo) -> int | None:
    if value is None:
        return None
    # The validation context holds the limit.
    largest = info.context if isinstance(info.context, int) else MAX_FILE_BYTES
    if value < 1:
        raise fault_error(Message("Give the size of the file. An empty file is not a video."))
    if value > largest:
        raise fault_error(
            Message(
                "The file is too large. The limit is %(limit)s bytes.",
                limit=numeral(largest),
            )
        )
    return value


class StartUploadRequest(ClosedShape):
    """Request to start an upload in parts."""

    key: UploadKey
    size_bytes: Annotated[
        StrictInt | None,
        AfterValidator(_check_size),
        Field(
            description="Size of the whole file. The portal may have a lower limit. Null if the "
            "size is unknown until the end: parts then need their size, and `complete` the sum.",
            json_schema_extra={"format": "int64", "minimum": 1, "maximum": MAX_FILE_BYTES},
        ),
    ]


class SizeQuery(ClosedShape):
    """Size of what is sent, for an upload that was started without one."""

    size_bytes: Annotated[
        int | None, Field(ge=1, le=MAX_FILE_BYTES, description="Size in bytes.")
    ] = None


class StoredPartRecord(Shape):
    """Part that is stored completely."""

    part_number: int = Field(ge=1, le=MAX_PARTS, description="Number of the part, counted from 1.")
    size_bytes: Size = Field(description="Size of the part.")
    etag: str = Field(description="ETag that storage returned for the part, without quotes.")


class UploadRecord(Shape):
    """State of an upload."""

    upload_id: str = Field(description="Unique id, which the key contains.")
    key: str = Field(description="Storage key, to create the video with.")
    state: uploads.UploadState = Field(
        description="`pending` before the first part, `uploading`, then `stored`."
    )
    size_bytes: Size | None = Field(
        description="Announced size, or stored size; null while pending or growing."
    )
    is_growing: bool = Field(description="Whether the size is unknown until the upload's end.")
    part_size_bytes: Size | None = Field(
        description="Size of every part but the last; null while pending."
    )
    part_count: int | None = Field(
        description="Highest part number, counted from 1; null while pending or growing."
    )
    parts: list[StoredPartRecord] = Field(
        description="Parts that are stored, while uploading. Send the others."
    )


class PartAddress(Shape):
    """Address to PUT one part to."""

    upload_url: Uri = Field(description="Signed address. PUT exactly the bytes of the part.")


class PartsProblem(Problem):
    """Problem details with the missing parts, if parts are missing."""

    missing_parts: list[int] = Field(
        default=[], description="With parts_missing only: the first 1,000 missing part numbers."
    )


@blueprint.post("")
@policy(Policy.OWN_UPLOAD, headers=("Location",))
@document_request(StartUploadRequest)
@document_response(UploadRecord, 201)
@document_response(UploadRecord, 200)
@document_response(Problem, 404)
@document_response(QuotaProblem, 409)
async def start_upload() -> Response:
    """Start an upload in parts, for large files and unreliable connections.

    Send each part to a separate address. All parts have `partSizeBytes` bytes, except the last.
    Skip those in `parts`, which are stored already. A repeated request returns 200 with the parts
    stored so far. An upload is removed after a day without progress, unless it became a video.
    """
    web = web_context()
    # Without a setting, the limit is that of storage.
    largest = min(web.config.max_source_bytes or MAX_FILE_BYTES, MAX_FILE_BYTES)
    body = await json_bodies.read_json()
    requested = validated(StartUploadRequest, body, context=largest)
    upload = await require_own_upload(await uploads.find(requested.key))
    if upload.sender_max_bytes is not None:
        if requested.size_bytes is None:
            raise InvalidRequest([FieldError("/sizeBytes", Message("Give the size of the file."))])
        validated(StartUploadRequest, body, context=min(largest, upload.sender_max_bytes))
    view, is_new = await uploads.start(
        upload.id, requested.size_bytes, storage=web.storage, quota=web.quota
    )
    response = _upload_response(view, 201 if is_new else 200)
    response.headers["Location"] = url_for("api_uploads.get_upload", id=upload.id.hex)
    return response


@blueprint.get("/<id>")
@policy(Policy.OWN_UPLOAD)
@document_response(UploadRecord)
async def get_upload(id: str) -> Response:
    """Read the state of an upload.

    To resume, send the parts that are not in `parts`. If storage has lost an unfinished upload, it
    is pending again: restart it with the same key.
    """
    return _upload_response(await uploads.get(uploads.parse_id(id), storage=web_context().storage))


@blueprint.post("/<id>/parts/<number>")
@policy(Policy.OWN_UPLOAD)
@document_querystring(SizeQuery)
@document_response(PartAddress)
@document_response(QuotaProblem, 409)
async def sign_part(id: str, number: str) -> Response:
    """Get an address to upload one part to.

    PUT the part's bytes to `uploadUrl`. Storage refuses a body of any other size. You can send a
    part again, to the same or a new address. A part of a growing upload needs `sizeBytes`: that is
    `partSizeBytes`, except for the last part.
    """
    web = web_context()
    address = await uploads.sign_part(
        uploads.parse_id(id),
        number,
        storage=web.storage,
        url_ttl_s=web.config.upload_url_ttl_s,
        size_bytes=validated_query(SizeQuery, request.args).size_bytes,
        max_bytes=web.config.max_source_bytes,
        quota=web.quota,
    )
    return json_bodies.json_response(PartAddress(upload_url=address))


@blueprint.post("/<id>/complete")
@policy(Policy.OWN_UPLOAD)
@document_querystring(SizeQuery)
@document_response(UploadRecord)
@document_response(PartsProblem, 409)
async def complete_upload(id: str) -> Response:
    """Assemble the file from its parts.

    You can repeat this request: once the file is stored, it always returns 200. A growing upload
    needs `sizeBytes`, the size of the whole file.
    """
    size_bytes = validated_query(SizeQuery, request.args).size_bytes
    view = await uploads.complete(
        uploads.parse_id(id), storage=web_context().storage, size_bytes=size_bytes
    )
    return _upload_response(view)


@blueprint.delete("/<id>")
@policy(Policy.OWN_UPLOAD)
@document_response(Problem, 409)
async def discard_upload(id: str) -> Response:
    """Cancel an upload and remove its stored parts.

    Its key becomes invalid. To try again, ask for a new upload address.
    """
    await uploads.discard(uploads.parse_id(id), storage=web_context().storage)
    return Response(status=204)


def _upload_response(view: uploads.UploadView, status: int = 200) -> Response:
    size_bytes = view.size_bytes
    record = UploadRecord(
        upload_id=view.upload.id.hex,
        key=view.upload.key,
        state=view.state,
        size_bytes=size_bytes,
        is_growing=view.is_growing,
        part_size_bytes=_part_size_of(view),
        part_count=None if size_bytes is None else part_count(size_bytes),
        parts=[
            StoredPartRecord(
                part_number=part.number, size_bytes=part.size_bytes, etag=part.etag.strip('"')
            )
            for part in view.parts
        ],
    )
    return json_bodies.json_response(record, status, cache_control="no-cache")


def _part_size_of(view: uploads.UploadView) -> int | None:
    if view.is_growing:
        return SMALLEST_PART_BYTES
    return None if view.size_bytes is None else part_size_bytes(view.size_bytes)
