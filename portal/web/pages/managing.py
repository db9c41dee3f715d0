"""What else editors do on a video's page: replace the poster, take the original, delete."""

from __future__ import annotations

import math

from quart import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.database.models import PosterRequest
from portal.errors import FieldError, InvalidRequest, NotFound, VideoNotFound
from portal.processing.sources import SourceChanged, check_source
from portal.videos import posters, publishing
from portal.videos.deletion import delete_video, was_deleted
from portal.web.context import web_context
from portal.web.pages.fragments import polled
from portal.web.pages.poster_views import poster_view

blueprint = Blueprint("managing", __name__)


@blueprint.get("/videos/<video_id>/poster")
@polled(gone="videos/_gone.html")
async def poster(video_id: str) -> str:
    """The fragment with a video's poster; it asks for itself while a new one is being cut."""
    return await _poster(video_id, watched=_watched())


@blueprint.post("/videos/<video_id>/poster")
async def replace_poster(video_id: str) -> WerkzeugResponse:
    """Ask for the frame at a time as the poster, and show the page."""
    found = await _requested(video_id)
    return redirect(url_for("pages.video", video_id=found.video_id, _anchor="poster"), 303)


@blueprint.post("/videos/<video_id>/poster/frame")
async def replace_poster_fragment(video_id: str) -> str:
    """Ask for the frame at a time as the poster, and show how that stands."""
    asked = await _requested(video_id)
    return await _poster(video_id, watched=asked.number)


@blueprint.get("/videos/<video_id>/original")
async def original(video_id: str) -> WerkzeugResponse:
    """Redirects to the file that was uploaded, where the operator allows that."""
    web = web_context()
    if not web.config.downloads:
        raise NotFound
    found = await publishing.get_video(video_id)
    try:
        await check_source(found, web.storage)
    except SourceChanged as exc:
        raise NotFound("The uploaded file was changed or removed after it was sent.") from exc
    address = await web.storage.presign_download(
        found.storage_key, file_name=found.file_name, ttl_s=web.config.playback_url_ttl_s
    )
    response = redirect(address)
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/videos/<video_id>/delete")
async def confirm_deletion(video_id: str) -> str:
    """Asks whether the video is really to be deleted; with scripts its page does so itself."""
    found = await publishing.get_video(video_id)
    return await render_template("videos/delete.html", video_id=video_id, title=found.title)


@blueprint.post("/videos/<video_id>/delete")
async def delete(video_id: str) -> WerkzeugResponse:
    """Delete the video, and say so; the same to whoever comes second."""
    parsed = publishing.parse_video_id(video_id)
    if parsed is None:
        raise VideoNotFound
    try:
        await delete_video(parsed, queue=web_context().queue)
    except VideoNotFound:
        # Pressed twice, or pressed by two.
        if not await was_deleted(parsed):
            raise
    return redirect(url_for("managing.deleted"), 303)


@blueprint.get("/videos/deleted")
async def deleted() -> str:
    """Says that a video was deleted."""
    return await render_template("videos/deleted.html")


async def _requested(video_id: str) -> PosterRequest:
    web = web_context()
    found = await publishing.get_video(video_id)
    time_s = _seconds((await request.form).get("time", ""))
    return await posters.request_poster(found.id, time_s=time_s, queue=web.queue)


async def _poster(video_id: str, *, watched: int) -> str:
    parsed = publishing.parse_video_id(video_id)
    asked = await PosterRequest.get_or_none(video_id=parsed) if parsed else None
    # Read afterwards: of a request that is done, it has the picture.
    found = await publishing.get_video(video_id)
    return await render_template(
        "videos/_poster.html", poster=poster_view(found, asked, watched=watched)
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise InvalidRequest([FieldError("/time", "Give the time of the frame in seconds.")])
    return seconds


def _watched() -> int:
    """The request whose end whoever asks wants to hear of; 0 for none."""
    text = request.args.get("watched", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
