"""Who may see a video: read and changed by those who may edit it."""

from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.models import Video
from portal.videos import publishing
from portal.videos.visibility import recorded_access, save_access
from portal.web.api.access_shapes import AccessRecord, access_record
from portal.web.api.json_bodies import json_response, read_json, validated
from portal.web.api.metadata_shapes import EditHeaders
from portal.web.api.openapi import document_problems
from portal.web.api.versions import version_read
from portal.web.auth import Policy, policy

blueprint = Blueprint("api_access", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])


@blueprint.get("/videos/<id>/access")
@policy(Policy.EDIT)
@document_response(AccessRecord)
@document_problems(404, 503)
async def get_access(id: str) -> Response:
    """Read who may see a video.

    The ETag names this version of it; send it back in If-Match with a change.
    """
    response = _access(await publishing.get_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/access")
@policy(Policy.EDIT)
@document_headers(EditHeaders)
@document_request(AccessRecord)
@document_response(AccessRecord)
@document_problems(400, 404, 412, 413, 415, 422, 428, 503)
async def put_access(id: str) -> Response:
    """Change who may see a video.

    Once it is answered, it counts for every request; unless the video is public then, that takes
    2 s. If-Match must name the version that was read (or be `*`);
    when someone else has changed it since, nothing is written.
    """
    video = await publishing.get_video(id)
    version = version_read(recorded_access(video).version)
    sent = validated(AccessRecord, await read_json())
    saved = await save_access(video.id, sent.value(), version=version)
    return _access(saved)


def _access(video: Video) -> Response:
    access = recorded_access(video)
    response = json_response(access_record(access))
    response.headers["Cache-Control"] = "private, no-cache"
    response.set_etag(access.version)
    return response
