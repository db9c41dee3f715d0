"""Deleting a video: the question, the deed, and the page that says so."""

from quart import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.errors import VideoNotFound
from portal.videos import publishing
from portal.videos.deletion import delete_video, was_deleted
from portal.web.access import Policy, policy
from portal.web.context import web_context
from portal.web.server.response_cache import forget_shared

blueprint = Blueprint("deletion", __name__)


@blueprint.get("/videos/<video_id>/delete")
@policy(Policy.DELETE)
async def confirm_deletion(video_id: str) -> str:
    """Asks whether the video is really to be deleted; with scripts its page does so itself."""
    found = await publishing.get_video(video_id)
    return await render_template("videos/delete.html", video_id=video_id, title=found.title)


@blueprint.post("/videos/<video_id>/delete")
@policy(Policy.DELETE)
async def delete(video_id: str) -> WerkzeugResponse:
    """Delete the video, and say so; also when it was deleted a moment ago."""
    parsed = publishing.parse_video_id(video_id)
    if parsed is None:
        raise VideoNotFound
    try:
        await delete_video(parsed, queue=web_context().queue)
    except VideoNotFound:
        # Pressed twice, or pressed by two.
        if not await was_deleted(parsed):
            raise
    forget_shared(request.scope, is_less_seen=False)
    return redirect(url_for("deletion.deleted"), 303)


@blueprint.get("/videos/deleted")
@policy(Policy.ANYONE)
async def deleted() -> str:
    """Says that a video was deleted."""
    return await render_template("videos/deleted.html")
