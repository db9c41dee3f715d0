"""Uploads in parts over JSON. The parts themselves go to storage."""

from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, ValidationInfo
from pydantic_core import PydanticCustomError
from quart import Blueprint, Response, url_for
from quart_schema import document_request, document_response, tag_blueprint

from portal.events.records import Shape, Size, Uri
from portal.storage.objects import MAX_FILE_BYTES, MAX_PARTS, part_count, part_size_bytes, upload_id
from portal.uploads import service as uploads
from portal.web.api import json_bodies
from portal.web.auth import Policy, account_id, policy, require_own_upload
from portal.web.composition import web_context
from portal.web.schemas.base import ClosedShape, Problem, QuotaProblem, Text
from portal.web.schemas.validation import validated

blueprint = Blueprint("api_uploads", __name__, url_prefix="/api/uploads")
tag_blueprint(blueprint, ["Uploads in parts"])


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


class StartUploadRequest(ClosedShape):
    """Starts an upload in parts."""

    key: Annotated[Text, Field(description="The key from POST /api/videos/presign.")]
    size_bytes: Annotated[
        StrictInt,
        AfterValidator(_is_size),
        Field(
            description="Size of the whole file. The portal may be set to take less.",
            json_schema_extra={"format": "int64", "minimum": 1, "maximum": MAX_FILE_BYTES},
        ),
    ]


class StoredPartRecord(Shape):
    """A part that is stored whole."""

    part_number: int = Field(ge=1, le=MAX_PARTS)
    size_bytes: Size
    etag: str = Field(description="As storage answered it to the part's PUT, without quotes.")


class UploadRecord(Shape):
    """How an upload stands."""

    upload_id: str = Field(description="The unique id inside the key.")
    key: str
    state: uploads.UploadState = Field(
        description="`pending` while nothing is there, `uploading` in parts, `stored` when whole."
    )
    size_bytes: Size | None = Field(description="As announced, or as stored; null while pending.")
    part_size_bytes: Size | None = Field(
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

    upload_url: Uri = Field(
        description="Signed address; PUT the part's bytes, all of them and no more."
    )


class PartsProblem(Problem):
    """Problem details that tell which parts are missing, if that is the problem."""

    missing_parts: list[int] = Field(
        default=[], description="With parts_missing only: their numbers, at most the first 1,000."
    )


@blueprint.post("")
@policy(Policy.PUBLISH, headers=("Location",))
@document_request(StartUploadRequest)
@document_response(UploadRecord, 201)
@document_response(UploadRecord, 200)
@document_response(Problem, 404)
@document_response(QuotaProblem, 409)
async def start_upload() -> Response:
    """Start an upload in parts, for large files and unsteady lines.

    Send each part of `partSizeBytes` bytes, the last one shorter, to an address of its own; those
    in `parts` are stored already. The same request again answers 200 with what is stored so far.
    An upload that nobody goes on with, or makes a video of, for a day is removed.
    """
    web = web_context()
    # 0 stands for no limit but that of storage.
    largest = min(web.config.max_source_bytes or MAX_FILE_BYTES, MAX_FILE_BYTES)
    wanted = validated(StartUploadRequest, await json_bodies.read_json(), context=largest)
    await require_own_upload(upload_id(wanted.key))
    upload, is_new = await uploads.start(
        wanted.key,
        wanted.size_bytes,
        storage=web.storage,
        owner_id=await account_id(),
        quota=web.quota,
    )
    response = _answer(upload, 201 if is_new else 200)
    response.headers["Location"] = url_for("api_uploads.get_upload", id=upload.upload_id)
    return response


@blueprint.get("/<id>")
@policy(Policy.OWN_UPLOAD)
@document_response(UploadRecord)
async def get_upload(id: str) -> Response:
    """See how an upload stands.

    After a break, send the parts that are not in `parts`. When storage has lost an unfinished
    upload it is pending again: start it anew with the same key.
    """
    return _answer(await uploads.get(id, storage=web_context().storage))


@blueprint.post("/<id>/parts/<number>")
@policy(Policy.OWN_UPLOAD)
@document_response(PartAddress)
@document_response(Problem, 409)
async def sign_part(id: str, number: str) -> Response:
    """Ask for the address to upload one part to.

    PUT the part's bytes to `uploadUrl`. Storage refuses a body of any other size. A part may be
    sent again, to the same or to another address.
    """
    web = web_context()
    address = await uploads.sign_part(
        id, number, storage=web.storage, url_ttl_s=web.config.upload_url_ttl_s
    )
    return json_bodies.json_response(PartAddress(upload_url=address))


@blueprint.post("/<id>/complete")
@policy(Policy.OWN_UPLOAD)
@document_response(UploadRecord)
@document_response(PartsProblem, 409)
async def complete_upload(id: str) -> Response:
    """Make the file of its parts.

    Repeat this as often as needed: once the file is stored the answer stays 200.
    """
    return _answer(await uploads.complete(id, storage=web_context().storage))


@blueprint.delete("/<id>")
@policy(Policy.OWN_UPLOAD)
@document_response(Problem, 409)
async def discard_upload(id: str) -> Response:
    """Give an upload up and remove what has arrived of it.

    Its key cannot be used any more; for another attempt ask for a new one.
    """
    await uploads.discard(id, storage=web_context().storage)
    return Response(status=204)


def _answer(upload: uploads.UploadView, status: int = 200) -> Response:
    size_bytes = upload.size_bytes
    record = UploadRecord(
        upload_id=upload.upload_id,
        key=upload.key,
        state=upload.state,
        size_bytes=size_bytes,
        part_size_bytes=None if size_bytes is None else part_size_bytes(size_bytes),
        part_count=None if size_bytes is None else part_count(size_bytes),
        parts=[
            StoredPartRecord(
                part_number=part.number, size_bytes=part.size_bytes, etag=part.etag.strip('"')
            )
            for part in upload.parts
        ],
    )
    return json_bodies.json_response(record, status, cache_control="no-cache")
