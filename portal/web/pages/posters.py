"""Replacing a video's poster with a frame of it."""

import math

from quart import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.database.models import PosterRequest
from portal.database.states import VideoStatus
from portal.errors import FieldError, InvalidRequest
from portal.text import whole_number
from portal.videos import posters, publishing
from portal.web.access import Policy, policy
from portal.web.context import web_context
from portal.web.fragments import fragment
from portal.web.pages.poster_views import poster_view

blueprint = Blueprint("posters", __name__)


@blueprint.get("/videos/<video_id>/poster")
@policy(Policy.EDIT)
@fragment()
async def poster(video_id: str) -> str:
    """The fragment with a video's poster; it asks for itself while a new one is being cut."""
    # The number of the request whose end this page announces; 0 for none.
    watched = whole_number(request.args.get("watched", ""), max_digits=9) or 0
    return await _poster(video_id, watched=watched)


@blueprint.post("/videos/<video_id>/poster")
@policy(Policy.EDIT)
async def replace_poster(video_id: str) -> WerkzeugResponse:
    """Ask for the frame at a time as the poster, and show the workshop."""
    found = await _requested(video_id)
    return redirect(url_for("workshop.workshop", video_id=found.video_id, _anchor="poster"), 303)


@blueprint.post("/videos/<video_id>/poster/frame")
@policy(Policy.EDIT)
@fragment()
async def replace_poster_fragment(video_id: str) -> str:
    """Ask for the frame at a time as the poster, and show how that stands."""
    asked = await _requested(video_id)
    return await _poster(video_id, watched=asked.number)


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
    is_ready = found.status is VideoStatus.READY
    view = poster_view(found, asked, watched=watched) if is_ready else None
    return await render_template("videos/_poster.html", poster=view, video_id=video_id)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise InvalidRequest([FieldError("/time", "Give the time of the frame in seconds.")])
    return seconds
