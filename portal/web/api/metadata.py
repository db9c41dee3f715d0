"""The JSON API for editors: read and change a video's metadata, delete a video."""

from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.models import Video
from portal.videos import editing, publishing
from portal.videos.deletion import delete_video
from portal.web.api.json_bodies import json_response, read_json, validated
from portal.web.api.metadata_shapes import (
    DeletedVideo,
    EditHeaders,
    References,
    VideoMetadata,
    metadata_record,
)
from portal.web.api.openapi import document_problems
from portal.web.api.versions import version_read
from portal.web.auth import Policy, policy
from portal.web.context import web_context
from portal.web.videos import read_video

blueprint = Blueprint("api_metadata", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Editing"])


@blueprint.get("/videos/<id>/metadata")
@policy(Policy.WATCH)
@document_response(VideoMetadata)
@document_problems(404, 503)
async def get_metadata(id: str) -> Response:
    """Read what editors may change of a video.

    The ETag names this version of it; send it back in If-Match with a change.
    """
    response = _metadata(await read_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/metadata")
@policy(Policy.EDIT)
@document_headers(EditHeaders)
@document_request(VideoMetadata)
@document_response(VideoMetadata)
@document_problems(400, 404, 412, 413, 415, 422, 428, 503)
async def put_metadata(id: str) -> Response:
    """Change a video's title, description, categories and tags.

    The same rules hold as for its creation. If-Match must name the version that was read (or be
    `*`, which overwrites whatever is there); when someone else has changed the metadata since,
    nothing is written. Sending a change again that is recorded already is no conflict.
    """
    web = web_context()
    video = await publishing.get_video(id)
    version = version_read(str(video.metadata_version))
    references = References(category_ids=(await web.categories.names()).keys())
    sent = validated(VideoMetadata, await read_json(), context=references)
    return _metadata(await editing.save_metadata(video.id, sent.value(), version=version))


@blueprint.post("/videos/<id>/deletion")
@policy(Policy.DELETE)
@document_response(DeletedVideo, 202)
@document_problems(404, 503)
async def delete(id: str) -> Response:
    """Delete a video for ever, with the file it was made from.

    No body is needed. The record is gone at once, and with it the playlists; the files follow
    soon after. The storage key is void: upload the file anew to publish it again.
    """
    web = web_context()
    video = await publishing.get_video(id)
    await delete_video(video.id, queue=web.queue)
    return json_response(DeletedVideo(id=id), 202)


def _metadata(video: Video) -> Response:
    response = json_response(metadata_record(editing.recorded(video)))
    response.headers["Cache-Control"] = "no-cache"
    response.set_etag(str(video.metadata_version))
    return response
