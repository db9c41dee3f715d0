"""Uploads in parts over JSON. The parts themselves go to storage."""

from quart import Blueprint, Response, url_for
from quart_schema import document_request, document_response, tag_blueprint

from portal.storage.keys import upload_id
from portal.uploads import service as uploads
from portal.uploads.service import UploadView
from portal.web.api.json_bodies import json_response, read_json, validated
from portal.web.api.openapi import document_problems
from portal.web.api.upload_shapes import (
    PartAddress,
    PartsProblem,
    QuotaProblem,
    StartUploadRequest,
    UploadRecord,
    max_upload_bytes,
    upload_record,
)
from portal.web.auth import Policy, account_id, policy, require_own_upload
from portal.web.context import web_context

blueprint = Blueprint("api_uploads", __name__, url_prefix="/api/uploads")
tag_blueprint(blueprint, ["Uploads in parts"])


@blueprint.post("")
@policy(Policy.PUBLISH)
@document_request(StartUploadRequest)
@document_response(UploadRecord, 201)
@document_response(UploadRecord, 200)
@document_problems(400, 404, 413, 415, 422, 503)
@document_response(QuotaProblem, 409)
async def start_upload() -> Response:
    """Start an upload in parts, for large files and unsteady lines.

    Send each part of `partSizeBytes` bytes, the last one shorter, to an address of its own; those
    in `parts` are stored already. The same request again answers 200 with what is stored so far.
    An upload that nobody goes on with, or makes a video of, for a day is removed.
    """
    web = web_context()
    largest = max_upload_bytes(web.config.max_source_bytes)
    wanted = validated(StartUploadRequest, await read_json(), context=largest)
    await require_own_upload(upload_id(wanted.key))
    started = await uploads.start(
        wanted.key,
        wanted.size_bytes,
        storage=web.storage,
        owner_id=await account_id(),
        quota=web.quota,
    )
    response = _answer(started.upload, 201 if started.created else 200)
    response.headers["Location"] = url_for("api_uploads.get_upload", id=started.upload.upload_id)
    return response


@blueprint.get("/<id>")
@policy(Policy.OWN_UPLOAD)
@document_response(UploadRecord)
@document_problems(404, 503)
async def get_upload(id: str) -> Response:
    """See how an upload stands.

    After a break, send the parts that are not in `parts`. When storage has lost an unfinished
    upload it is pending again: start it anew with the same key.
    """
    return _answer(await uploads.get(id, storage=web_context().storage))


@blueprint.post("/<id>/parts/<number>")
@policy(Policy.OWN_UPLOAD)
@document_response(PartAddress)
@document_problems(404, 409, 503)
async def sign_part(id: str, number: str) -> Response:
    """Ask for the address to upload one part to.

    PUT the part's bytes to `uploadUrl`. Storage refuses a body of any other size. A part may be
    sent again, to the same or to another address.
    """
    web = web_context()
    address = await uploads.sign_part(
        id, number, storage=web.storage, url_ttl_s=web.config.upload_url_ttl_s
    )
    return json_response(PartAddress(upload_url=address))


@blueprint.post("/<id>/complete")
@policy(Policy.OWN_UPLOAD)
@document_response(UploadRecord)
@document_problems(404, 503)
@document_response(PartsProblem, 409)
async def complete_upload(id: str) -> Response:
    """Make the file of its parts.

    Repeat this as often as needed: once the file is stored the answer stays 200.
    """
    return _answer(await uploads.complete(id, storage=web_context().storage))


@blueprint.delete("/<id>")
@policy(Policy.OWN_UPLOAD)
@document_problems(404, 409, 503)
async def discard_upload(id: str) -> Response:
    """Give an upload up and remove what has arrived of it.

    Its key cannot be used any more; for another attempt ask for a new one.
    """
    await uploads.discard(id, storage=web_context().storage)
    return Response(status=204)


def _answer(upload: UploadView, status: int = 200) -> Response:
    response = json_response(upload_record(upload), status)
    response.headers["Cache-Control"] = "no-cache"
    return response
