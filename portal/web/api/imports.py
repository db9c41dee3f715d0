"""Imports for programs: files that the portal fetches by itself."""

from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response, url_for
from quart_schema import document_request, document_response, tag_blueprint

from portal.accounts.permissions import Audience
from portal.database.models import Visibility
from portal.videos import imports
from portal.web.api import json_bodies
from portal.web.api.editing import Description, MetadataRecord, Tags
from portal.web.api.webhooks import Address
from portal.web.auth import Policy, account_id, policy
from portal.web.composition import web_context

blueprint = Blueprint("api_imports", __name__, url_prefix="/api/imports")
tag_blueprint(blueprint, ["Videos"])


class ImportRequest(MetadataRecord):
    """Asks for a file at a public https address to be fetched, and describes the video."""

    url: Address
    description: Description = ""
    tags: Tags = ""
    visibility: Visibility | None = Field(None, description="Who may see it from the start.")


class ImportRecord(json_bodies.Shape):
    """The video that an import will be."""

    id: UUID
    url: str = Field(description="The record's address, once the file has been fetched.")


@blueprint.post("")
@policy(Policy.PUBLISH)
@document_request(ImportRequest)
@document_response(ImportRecord, 202)
@document_response(json_bodies.QuotaProblem, 409)
async def create_import() -> Response:
    """Have the portal fetch an MP4 or QuickTime file and publish it.

    GET /api/videos/{id}/transcode tells how far it is: `importing`, then as any video, or failed
    with `import_unreachable`, `import_too_slow`, `import_not_video` or `import_too_large`. The
    video is there once the file is; DELETE its address to cancel. Five redirects are followed.
    """
    web = web_context()
    categories = await web.categories.names()
    sent = json_bodies.validated(ImportRequest, await json_bodies.read_json(), context=categories)
    visibility = Visibility(sent.visibility or web.config.default_visibility)
    video_id = await imports.begin(
        sent.url,
        sent.value(),
        audience=Audience(visibility, owner_id=await account_id()),
        passthrough=sent.passthrough,
        quota=web.quota,
        queue=web.queue,
    )
    address = url_for("api_videos.get_video", id=video_id)
    response = json_bodies.json_response(ImportRecord(id=video_id, url=address), 202)
    response.headers["Location"] = address
    return response
