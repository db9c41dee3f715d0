"""Replacing a video's poster with a frame of it, or with a picture that is sent."""

import asyncio
import math

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.database.models import PosterRequest
from portal.errors import FieldError, InvalidRequest
from portal.transcoding.errors import PictureFault, PictureRejected
from portal.videos import posters
from portal.videos.reading import parse_video_id
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages.poster_views import FAULTS, NO_PICTURE, poster_view, recorded_poster
from portal.web.pages.workshop import CHANGED, watched_poster, workshop_page
from portal.web.server.limits import MAX_PICTURE_BYTES
from portal.web.videos import read_video

blueprint = Blueprint("posters", __name__)


@blueprint.get("/videos/<video_id>/poster")
@policy(Policy.EDIT)
@fragment()
async def poster(video_id: str) -> ResponseReturnValue:
    """The fragment with a video's poster; it asks for itself while a new one is being made."""
    return await _poster(video_id, watched=watched_poster())


@blueprint.post("/videos/<video_id>/poster")
@policy(Policy.EDIT)
async def replace_poster(video_id: str) -> WerkzeugResponse:
    """Ask for the frame at a time as the poster, and show the workshop."""
    return _to_workshop(await _request_frame(video_id))


@blueprint.post("/videos/<video_id>/poster/frame")
@policy(Policy.EDIT)
@fragment()
async def replace_poster_fragment(video_id: str) -> ResponseReturnValue:
    """Ask for the frame at a time as the poster, and show how that stands."""
    asked = await _request_frame(video_id)
    return await _poster(video_id, watched=asked.number)


@blueprint.post("/videos/<video_id>/poster/picture")
@policy(Policy.EDIT)
async def send_picture(video_id: str) -> ResponseReturnValue:
    """Ask for the picture that is sent as the poster, and show the workshop."""
    asked = await _request_picture(video_id)
    if isinstance(asked, PosterRequest):
        return _to_workshop(asked)
    found = await read_video(video_id)
    return await workshop_page(found, poster=await recorded_poster(found, fault=asked)), 422


@blueprint.post("/videos/<video_id>/poster/picture/panel")
@policy(Policy.EDIT)
@fragment()
async def send_picture_fragment(video_id: str) -> ResponseReturnValue:
    """Ask for the picture that is sent as the poster, and show how that stands."""
    asked = await _request_picture(video_id)
    if isinstance(asked, PosterRequest):
        return await _poster(video_id, watched=asked.number)
    view = await recorded_poster(await read_video(video_id), fault=asked)
    return await render_template("videos/_poster.html", poster=view, video_id=video_id), 422


async def _request_frame(video_id: str) -> PosterRequest:
    found = await read_video(video_id)
    time_s = _seconds((await request.form).get("time", ""))
    return await posters.request_poster(found.id, time_s=time_s, queue=web_context().queue)


async def _request_picture(video_id: str) -> PosterRequest | str:
    """The request, or what is wrong with the picture."""
    found = await read_video(video_id)
    try:
        sent = (await request.files).get("picture")
    except RequestEntityTooLarge:
        return FAULTS[PictureFault.TOO_LARGE]
    # It lies on disk, by what the framework does with larger files.
    picture = await asyncio.to_thread(sent.read) if sent else b""
    if not picture:
        return NO_PICTURE
    if len(picture) > MAX_PICTURE_BYTES:
        return FAULTS[PictureFault.TOO_LARGE]
    try:
        return await posters.request_poster(found.id, picture=picture, queue=web_context().queue)
    except PictureRejected as exc:
        return FAULTS[exc.code]


def _to_workshop(asked: PosterRequest) -> WerkzeugResponse:
    """To the page that tells how the request stands, and how it ends."""
    workshop = url_for(
        "workshop.workshop", video_id=asked.video_id, watched=asked.number, _anchor="poster"
    )
    return redirect(workshop, 303)


async def _poster(video_id: str, *, watched: int) -> ResponseReturnValue:
    parsed = parse_video_id(video_id)
    asked = await PosterRequest.get_or_none(video_id=parsed) if parsed else None
    # Read afterwards: of a request that is done, it has the picture.
    found = await read_video(video_id)
    view = await poster_view(found, asked, watched=watched)
    text = await render_template("videos/_poster.html", poster=view, video_id=video_id)
    return (text, CHANGED) if view and view.is_news else text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise InvalidRequest([FieldError("/time", "Give the time of the frame in seconds.")])
    return seconds
