"""JSON API of the audience of a video."""

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.models import Video
from portal.features.editing.invitations import Invitation, invite_guests
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.http.json_bodies import json_response, named_versions, read_json
from portal.http.schemas.access import AccessRecord, access_record
from portal.http.schemas.base import EditHeaders
from portal.http.schemas.validation import validated
from portal.http.videos import read_video, require_video
from portal.videos import visibility

blueprint = Blueprint("api_access", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])


class SavedAccess(AccessRecord):
    """Access to a video after a change."""

    invitations: list[Invitation] = Field(
        description="Links of the guests whom the request invited. They are shown once."
    )


@blueprint.get("/videos/<id>/access")
@policy(Policy.EDIT, headers=("ETag",))
@document_response(AccessRecord)
async def get_access(id: str) -> Response:
    """Read the audience of a video.

    Send the ETag back in If-Match when you change the audience.
    """
    response = await _access_response(await read_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/access")
@policy(Policy.EDIT, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(AccessRecord)
@document_response(SavedAccess)
async def put_access(id: str) -> Response:
    """Change the audience of a video.

    The change is in effect when you get the response, which takes up to 2 s unless the video is
    public now. If-Match must name the version that you read, or be `*`. If someone else has changed
    the audience since, nothing is written.
    """
    video_id = await require_video(id)
    versions = named_versions(is_required=True)
    record, invited = await invite_guests(validated(AccessRecord, await read_json()))
    video = await visibility.save_access(
        video_id,
        await record.value(),
        versions=versions,
        keeps_shares=record.shares is None,
        password=await record.password_change(web_context().passwords),
    )
    return await _access_response(video, invited)


async def _access_response(video: Video, invited: list[Invitation] | None = None) -> Response:
    access = visibility.recorded_access(video)
    record = await access_record(access)
    if invited is not None:
        record = SavedAccess.model_construct(**dict(record), invitations=invited)
    return json_response(record, cache_control="private, no-cache", etag=access.version)
