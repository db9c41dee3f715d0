"""JSON API for editors: the metadata of a video, and its deletion."""

from functools import partial

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.models import Video
from portal.errors import VideoNotFound
from portal.events.records import DeletedVideo
from portal.features.deletion import service as deletion
from portal.http import json_bodies
from portal.http.auth import Policy, policy, principal
from portal.http.composition import web_context
from portal.http.schemas.base import PatchHeaders, Problem
from portal.http.schemas.metadata import EditedVideo, MetadataRecord, VideoPatch
from portal.http.schemas.validation import recorded_shape, validated
from portal.http.server.limits import Body
from portal.http.videos import read_pending, read_video, require_video
from portal.videos import metadata

blueprint = Blueprint("api_editing", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Editing"])

# Ids are longer than `presign`, which is another route.
VIDEO = "/videos/<string(minlength=8):id>"
PATCH = Body(content_types=(json_bodies.JSON, "application/merge-patch+json"))


class EditConflict(Problem):
    """Problem details with the recorded values. The ETag header names their version."""

    present: EditedVideo = Field(description="The recorded values.")


@blueprint.patch(VIDEO)
@policy(Policy.EDIT, body=PATCH, headers=("ETag",))
@document_headers(PatchHeaders)
@document_request(VideoPatch)
@document_response(EditedVideo)
@document_response(EditConflict, 412)
async def patch_video(id: str) -> Response:
    """Change the members of a video that a JSON merge patch (RFC 7396) names.

    Either all of them change or none. With the ETag of the record or of the metadata in If-Match,
    nothing is written if someone else has changed the metadata or the visibility since, unless your
    values are recorded already. A video that you make public or unlisted is no longer limited to
    accounts.
    """
    video_id = await require_video(id)
    versions = json_bodies.named_versions()
    categories = await web_context().categories.names()
    body = await json_bodies.read_json(mimetypes=PATCH.content_types)
    patch = validated(VideoPatch, body, context=categories)
    async with json_bodies.showing_present(partial(_present_metadata, id)):
        video = await metadata.patch_video(video_id, versions=versions, **patch.named())
    return _metadata_response(EditedVideo, video)


@blueprint.delete(VIDEO)
@policy(Policy.DELETE)
@document_headers(PatchHeaders)
@document_response(DeletedVideo, 202)
@document_response(Problem, 409)
@document_response(EditConflict, 412)
async def delete_video(id: str) -> Response:
    """Delete a video permanently, with its uploaded file.

    With the ETag of the record or of the metadata in If-Match, nothing is deleted if someone else
    has changed the metadata or the visibility since. The record and the playlists are removed at
    once, the files soon after. Until then a repeated request returns 204, afterwards 404. To
    publish the file again, upload it under a new key. An import that is not a video yet is
    cancelled.
    """
    try:
        video = await read_video(id)
        versions = json_bodies.named_versions()
        async with json_bodies.showing_present(partial(_present_metadata, id)):
            await deletion.delete_video(video.id, versions=versions)
    except VideoNotFound:
        if await deletion.is_being_removed(id, by=await principal()):
            return Response(status=204)
        await (await read_pending(id)).cancel(web_context().storage)
    return json_bodies.json_response(DeletedVideo(id=id), 202)


@blueprint.get("/videos/<id>/metadata")
@policy(Policy.WATCH, headers=("ETag",))
@document_response(MetadataRecord)
async def get_metadata(id: str) -> Response:
    """Read the editable metadata of a video.

    Send the ETag back in If-Match when you change or delete the video.
    """
    response = _metadata_response(MetadataRecord, await read_video(id))
    return await response.make_conditional(request)


async def _present_metadata(id: str) -> tuple[EditedVideo, str]:
    """Return the recorded values that PATCH can change, and their version."""
    video = await read_video(id)
    return recorded_shape(EditedVideo, video), str(video.metadata_version)


def _metadata_response(shape: type[MetadataRecord], video: Video) -> Response:
    record = recorded_shape(shape, video)
    version = str(video.metadata_version)
    return json_bodies.json_response(record, cache_control="no-cache", etag=version)
