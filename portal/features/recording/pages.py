"""Page that records, whose scripts call the JSON API and storage."""

from quart import Blueprint, render_template, request

from portal.features.publishing.pages import own_quota
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.http.server.context import expect_recorder

blueprint = Blueprint("recording", __name__)


@blueprint.get("/record")
@policy(Policy.PUBLISH)
async def page() -> str:
    """Show the sources to record, and the form for the details of a recording."""
    expect_recorder(request.scope)
    web = web_context()
    return await render_template(
        "recording/page.html",
        config=web.config,
        categories=await web.categories.names(),
        quota=await own_quota(),
    )
