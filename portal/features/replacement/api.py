"""JSON API of the replacement of a video's file."""

from functools import partial
from http import HTTPStatus

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.models import Video
from portal.errors import ReplacementNotFound, VideoNotFound
from portal.features.replacement import service as replacement
from portal.features.replacement.service import ReplacementRecord
from portal.films.versions import VersionState
from portal.http.auth import Policy, account_id, policy
from portal.http.composition import web_context
from portal.http.json_bodies import json_response, named_versions, read_json, showing_present
from portal.http.schemas.base import ClosedShape, PatchHeaders, Problem, QuotaProblem
from portal.http.schemas.metadata import FileName, UploadKey
from portal.http.schemas.validation import validated
from portal.http.server.headers import conditional_response
from portal.http.videos import read_video

blueprint = Blueprint("api_replacement", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])

REPLACEMENT = "/videos/<id>/replacement"


class ReplaceFileRequest(ClosedShape):
    """Uploaded file that replaces the file of a video."""

    file_name: FileName
    key: UploadKey


class ReplacementConflict(Problem):
    """Problem details with the replacement as it is now, whose ETag the response has."""

    present: ReplacementRecord = Field(description="The replacement as it is now.")


@blueprint.get(REPLACEMENT)
@policy(Policy.EDIT, headers=("ETag",))
@document_response(ReplacementRecord)
async def get_replacement(id: str) -> Response:
    """Read the file that replaces that of a video.

    `state` goes from processing to live or failed. Returns 404 if there is no such file, and once
    the former file can't be restored any more. Send the ETag in the If-Match of DELETE.
    """
    video = await read_video(id)
    record, version = await _present_replacement(video)
    return await conditional_response(record.model_dump_json(), version=version)


@blueprint.post(REPLACEMENT)
@policy(Policy.EDIT)
@document_request(ReplaceFileRequest)
@document_response(ReplacementRecord, 202)
@document_response(ReplacementRecord, 200)
@document_response(QuotaProblem, 409)
async def replace_file(id: str) -> Response:
    """Replace the file of a video by an uploaded one.

    The former file plays until the new one is ready; then the record of the video has the new
    `storageKey`, `fileName`, `sizeBytes` and `transcodeJobId`. If the new file fails, the former
    one stays. If you repeat the request with the same key, nothing else happens; once the file is
    that of the video, the response is 200.
    """
    web = web_context()
    video = await read_video(id)
    requested = validated(ReplaceFileRequest, await read_json())
    await replacement.request(
        video.id,
        key=requested.key,
        file_name=requested.file_name,
        storage=web.storage,
        max_source_bytes=web.config.max_source_bytes,
        quota=web.quota,
        owner_id=await account_id(),
    )
    current = await replacement.read(video.id, of_first_file=True)
    if current is None:
        raise VideoNotFound
    is_live = current.state is VersionState.LIVE
    status = HTTPStatus.OK if is_live else HTTPStatus.ACCEPTED
    return json_response(current, status, etag=current.version)


@blueprint.delete(REPLACEMENT)
@policy(Policy.EDIT)
@document_headers(PatchHeaders)
@document_response(ReplacementConflict, 412)
async def withdraw_replacement(id: str) -> Response:
    """Cancel the replacement of a video's file, dismiss a failed one, or go back.

    Within 7 days after a replacement, the former file becomes the current one again. Send the ETag
    of the replacement in If-Match: otherwise a repeated request brings the new file back.
    """
    web = web_context()
    video = await read_video(id)
    versions = named_versions()
    async with showing_present(partial(_present_replacement, video)):
        await replacement.withdraw(
            video.id, storage=web.storage, hooks=web.hooks, expected=versions
        )
    return Response(status=HTTPStatus.NO_CONTENT)


async def _present_replacement(video: Video) -> tuple[ReplacementRecord, str]:
    """Return the replacement of a video's file, and its version."""
    current = await replacement.read(video.id)
    if current is None:
        raise ReplacementNotFound
    return current, current.version
