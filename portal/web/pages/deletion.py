"""Deleting one video: the question, and the deed. `bulk_actions` deletes several."""

from quart import Blueprint, redirect, render_template, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.errors import VideoNotFound
from portal.text import shown
from portal.videos.deletion import delete_undoably, was_deleted
from portal.videos.reading import parse_video_id
from portal.web.auth import Policy, policy
from portal.web.pages.library_views import TABLE
from portal.web.pages.toasts import ActionResult, ToastKind, toast_arguments
from portal.web.videos import read_video

blueprint = Blueprint("deletion", __name__)


@blueprint.get("/videos/<video_id>/delete")
@policy(Policy.DELETE)
async def confirm_deletion(video_id: str) -> str:
    """Asks whether the video is really to be deleted; with scripts its page does so itself."""
    found = await read_video(video_id)
    return await render_template(
        "videos/delete.html",
        ids=[video_id],
        titles=[shown(found.title)],
        action=url_for("deletion.delete", video_id=video_id),
        back=url_for("pages.video", video_id=video_id),
    )


@blueprint.post("/videos/<video_id>/delete")
@policy(Policy.DELETE)
async def delete(video_id: str) -> WerkzeugResponse:
    """Delete the video, and say so; also when it was deleted a moment ago."""
    parsed = parse_video_id(video_id)
    if parsed is None:
        raise VideoNotFound
    try:
        await delete_undoably(parsed)
    except VideoNotFound:
        # Pressed twice, or pressed by two.
        if not await was_deleted(parsed):
            raise
    toast = toast_arguments(ToastKind.DELETED, {ActionResult.DONE: 1}, undo_ids=[video_id])
    return redirect(url_for(TABLE, **toast), 303)
