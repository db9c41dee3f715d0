"""Poster of a ready video, and its replacement by a frame or an uploaded picture."""

import asyncio
import math
from dataclasses import dataclass

from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue
from werkzeug.exceptions import RequestEntityTooLarge

from portal.database.models import PosterRequest, PosterState, Video, VideoStatus
from portal.errors import FieldError, InvalidRequest
from portal.features.posters import service as posters
from portal.features.workshop.pages import redirect_to_panel, render_workshop
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy
from portal.http.server.headers import VIDEO_CHANGED
from portal.http.server.limits import Body
from portal.http.videos import read_video, spread_frames
from portal.locale.messages import Message
from portal.text import whole_number
from portal.transcoding.encoding.pictures import MAX_PICTURE_PIXELS
from portal.transcoding.errors import PictureFault, PictureRejected
from portal.transcoding.planning.storyboard import Tile
from portal.videos.reading import parse_video_id

blueprint = Blueprint("posters", __name__)

OFFERED_FRAMES = 6
MAX_PICTURE_BYTES = 10_000_000
# Sent here, not to storage, so that the form works without scripts.
PICTURE = Body(max_file_bytes=MAX_PICTURE_BYTES)
MAX_MEGABYTES = MAX_PICTURE_BYTES // 1_000_000
MAX_MEGAPIXELS = MAX_PICTURE_PIXELS // 1_000_000
# Faults of an uploaded picture, by code.
FAULTS = {
    PictureFault.TOO_LARGE: Message(
        "This picture is larger than %(megabytes)s MB or %(megapixels)s megapixels. "
        "Choose a smaller one.",
        megabytes=MAX_MEGABYTES,
        megapixels=MAX_MEGAPIXELS,
    ),
    PictureFault.UNREADABLE: Message(
        "This file holds no JPEG, PNG or still WebP. Choose another one."
    ),
    "worker_lost": Message(
        "No poster could be made from this picture. Try again, or choose another one."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PosterView:
    """Poster of a ready video, and the state of its replacement.

    `state` is None when there is nothing to announce. `watched` is the number of the request whose
    end the page announces. `fault` is the fault of the uploaded picture.
    """

    video: Video
    state: PosterState | None
    watched: int
    fault: str
    frames: list[Tile]
    max_bytes: int = MAX_PICTURE_BYTES
    max_megabytes: int = MAX_MEGABYTES
    max_megapixels: int = MAX_MEGAPIXELS
    too_large: str = FAULTS[PictureFault.TOO_LARGE]

    @property
    def is_pending(self) -> bool:
        """Return whether the replacement is in progress."""
        return self.state in (PosterState.WAITING, PosterState.WORKING)


@blueprint.get("/videos/<video_id>/poster")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def poster(video_id: str) -> ResponseReturnValue:
    """Render the fragment with the poster, which polls itself while a new one is in progress."""
    return await _render_poster(video_id, watched=watched_poster())


@blueprint.post("/videos/<video_id>/poster")
@policy(Policy.EDIT)
async def replace_poster(video_id: str) -> ResponseReturnValue:
    """Request a frame as the poster, and show its state in the workshop."""
    requested = await request_frame(video_id)
    return redirect_to_panel(requested.video_id, "poster", watched=requested.number)


@blueprint.post("/videos/<video_id>/poster/picture")
@policy(Policy.EDIT, body=PICTURE)
async def send_picture(video_id: str) -> ResponseReturnValue:
    """Request an uploaded picture as the poster, and show its state in the workshop."""
    requested = await request_picture(video_id)
    if isinstance(requested, PosterRequest):
        return redirect_to_panel(requested.video_id, "poster", watched=requested.number)
    video = await read_video(video_id)
    view = await poster_view(video, fault=requested)
    return await render_workshop(video, {"poster": view}), 422


@blueprint.post("/videos/<video_id>/poster/frame")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def replace_poster_fragment(video_id: str) -> ResponseReturnValue:
    """Request a frame as the poster, and render the fragment with its state."""
    return await _render_poster(video_id, watched=(await request_frame(video_id)).number)


@blueprint.post("/videos/<video_id>/poster/picture/panel")
@policy(Policy.EDIT, body=PICTURE, unavailable_template=VIDEO_UNAVAILABLE)
async def send_picture_fragment(video_id: str) -> ResponseReturnValue:
    """Request an uploaded picture as the poster, and render the fragment with its state."""
    requested = await request_picture(video_id)
    if isinstance(requested, PosterRequest):
        return await _render_poster(video_id, watched=requested.number)
    view = await poster_view(await read_video(video_id), fault=requested)
    return await render_template("posters/_panel.html", poster=view, video_id=video_id), 422


def watched_poster() -> int:
    """Return the number of the poster request whose end the page announces; 0 for none."""
    return whole_number(request.args.get("watched", ""), max_digits=9) or 0


async def request_frame(video_id: str) -> PosterRequest:
    """Request the frame at the form's time as the poster."""
    video = await read_video(video_id)
    try:
        time_s = float((await request.form).get("time", ""))
    except ValueError:
        time_s = math.nan
    if not math.isfinite(time_s):
        words = Message("Give the time of the frame in seconds.")
        raise InvalidRequest([FieldError("/time", words)])
    return await posters.request_poster(video.id, time_s=time_s)


async def request_picture(video_id: str) -> PosterRequest | str:
    """Request the form's picture as the poster. Return the request, or the picture's fault."""
    video = await read_video(video_id)
    try:
        file = (await request.files).get("picture")
    except RequestEntityTooLarge:
        return FAULTS[PictureFault.TOO_LARGE]
    # The framework keeps larger files on disk.
    picture = await asyncio.to_thread(file.read) if file else b""
    if not picture:
        return Message("Choose a picture.")
    if len(picture) > MAX_PICTURE_BYTES:
        return FAULTS[PictureFault.TOO_LARGE]
    try:
        return await posters.request_poster(video.id, picture=picture)
    except PictureRejected as exc:
        return FAULTS[exc.code]


async def read_panel(video: Video) -> dict[str, object]:
    """Return the value of the panel, with the request that the page announces."""
    return {"poster": await poster_view(video, watched=watched_poster())}


async def poster_view(video: Video, *, watched: int = 0, fault: str = "") -> PosterView | None:
    """Return the poster of a video; None unless the video is ready."""
    latest = await PosterRequest.get_or_none(video_id=video.id)
    return await _build_view(video, latest, watched=watched, fault=fault)


async def _render_poster(video_id: str, *, watched: int) -> ResponseReturnValue:
    parsed_id = parse_video_id(video_id)
    latest = await PosterRequest.get_or_none(video_id=parsed_id) if parsed_id else None
    # The video is read after the request, so that it has the picture of a completed one.
    view = await _build_view(await read_video(video_id), latest, watched=watched)
    text = await render_template("posters/_panel.html", poster=view, video_id=video_id)
    return (text, VIDEO_CHANGED) if view and view.state is PosterState.DONE else text


async def _build_view(
    video: Video, latest: PosterRequest | None, *, watched: int, fault: str = ""
) -> PosterView | None:
    """Return the view. Pending requests are shown on all pages, ends on the page that `watched`."""
    if video.status is not VideoStatus.READY:
        return None
    state = latest.state if latest else None
    is_pending = state in (PosterState.WAITING, PosterState.WORKING)
    is_watched = latest is not None and latest.number == watched
    if latest and is_watched and state is PosterState.FAILED and latest.time_s is None:
        fault = fault or FAULTS.get(latest.error_code or "", FAULTS["worker_lost"])
    return PosterView(
        video=video,
        state=state if is_pending or is_watched else None,
        watched=latest.number if latest and is_pending else watched,
        fault=fault,
        frames=await spread_frames(video, OFFERED_FRAMES),
    )
