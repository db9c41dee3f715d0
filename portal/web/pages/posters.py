"""The poster of a ready video, and what replaces it: a frame of it, or a picture that is sent."""

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass

from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue
from werkzeug.exceptions import RequestEntityTooLarge

from portal.database.models import PosterRequest, PosterState, Video, VideoStatus
from portal.errors import FieldError, InvalidRequest, Unavailable
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.text import whole_number
from portal.transcoding.encoding.pictures import MAX_PICTURE_PIXELS
from portal.transcoding.errors import PictureFault, PictureRejected
from portal.transcoding.planning.storyboard import STORYBOARD_NAME, Tile, spread_tiles
from portal.videos import posters
from portal.videos.reading import parse_video_id
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages.editing import CHANGED
from portal.web.server.limits import Body
from portal.web.videos import read_video

blueprint = Blueprint("posters", __name__)

OFFERED_FRAMES = 6
MAX_PICTURE_BYTES = 10_000_000
# Sent here, not to storage, so that the form works without scripts.
PICTURE = Body(max_file_bytes=MAX_PICTURE_BYTES)
LARGEST = f"{MAX_PICTURE_BYTES // 1_000_000} MB and {MAX_PICTURE_PIXELS // 1_000_000} megapixels"
# What is wrong with a picture that was sent, by code.
FAULTS = {
    PictureFault.TOO_LARGE: f"This picture is larger than {LARGEST}. Choose a smaller one.",
    PictureFault.UNREADABLE: "This file holds no JPEG, PNG or still WebP. Choose another one.",
    "worker_lost": "No poster could be made from this picture. Try again, or choose another one.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PosterView:
    """The poster of a ready video, and how its replacement stands.

    `state` is None when nothing is news. `watched` is the number of the request whose end the page
    announces. `fault` is what is wrong with the picture that was sent.
    """

    video: Video
    state: PosterState | None
    watched: int
    fault: str
    frames: list[Tile]
    max_bytes: int = MAX_PICTURE_BYTES
    largest: str = LARGEST
    too_large: str = FAULTS[PictureFault.TOO_LARGE]

    @property
    def is_pending(self) -> bool:
        return self.state in (PosterState.WAITING, PosterState.WORKING)


@blueprint.get("/videos/<video_id>/poster")
@policy(Policy.EDIT)
@fragment()
async def poster(video_id: str) -> ResponseReturnValue:
    """The fragment with a video's poster; it asks for itself while a new one is being made."""
    return await _fragment(video_id, watched=watched_poster())


@blueprint.post("/videos/<video_id>/poster/frame")
@policy(Policy.EDIT)
@fragment()
async def replace_poster_fragment(video_id: str) -> ResponseReturnValue:
    """Ask for the frame at a time as the poster, and show how that stands."""
    return await _fragment(video_id, watched=(await request_frame(video_id)).number)


@blueprint.post("/videos/<video_id>/poster/picture/panel")
@policy(Policy.EDIT, body=PICTURE)
@fragment()
async def send_picture_fragment(video_id: str) -> ResponseReturnValue:
    """Ask for the picture that is sent as the poster, and show how that stands."""
    asked = await request_picture(video_id)
    if isinstance(asked, PosterRequest):
        return await _fragment(video_id, watched=asked.number)
    view = await poster_view(await read_video(video_id), fault=asked)
    return await render_template("videos/_poster.html", poster=view, video_id=video_id), 422


def watched_poster() -> int:
    """The number of the request for a poster whose end this page announces; 0 for none."""
    return whole_number(request.args.get("watched", ""), max_digits=9) or 0


async def request_frame(video_id: str) -> PosterRequest:
    """Ask for the frame that the form names as the poster."""
    found = await read_video(video_id)
    try:
        time_s = float((await request.form).get("time", ""))
    except ValueError:
        time_s = math.nan
    if not math.isfinite(time_s):
        raise InvalidRequest([FieldError("/time", "Give the time of the frame in seconds.")])
    return await posters.request_poster(found.id, time_s=time_s, queue=web_context().queue)


async def request_picture(video_id: str) -> PosterRequest | str:
    """Ask for the picture of the form as the poster. The request, or what is wrong with it."""
    found = await read_video(video_id)
    try:
        sent = (await request.files).get("picture")
    except RequestEntityTooLarge:
        return FAULTS[PictureFault.TOO_LARGE]
    # It lies on disk, by what the framework does with larger files.
    picture = await asyncio.to_thread(sent.read) if sent else b""
    if not picture:
        return "Choose a picture."
    if len(picture) > MAX_PICTURE_BYTES:
        return FAULTS[PictureFault.TOO_LARGE]
    try:
        return await posters.request_poster(found.id, picture=picture, queue=web_context().queue)
    except PictureRejected as exc:
        return FAULTS[exc.code]


async def poster_view(found: Video, *, watched: int = 0, fault: str = "") -> PosterView | None:
    """The poster of a video as it stands; None of one that isn't ready."""
    asked = await PosterRequest.get_or_none(video_id=found.id)
    return await _view(found, asked, watched=watched, fault=fault)


async def _fragment(video_id: str, *, watched: int) -> ResponseReturnValue:
    parsed = parse_video_id(video_id)
    asked = await PosterRequest.get_or_none(video_id=parsed) if parsed else None
    # Read afterwards: of a request that is done, it has the picture.
    view = await _view(await read_video(video_id), asked, watched=watched)
    text = await render_template("videos/_poster.html", poster=view, video_id=video_id)
    return (text, CHANGED) if view and view.state is PosterState.DONE else text


async def _view(
    video: Video, asked: PosterRequest | None, *, watched: int, fault: str = ""
) -> PosterView | None:
    """A request under way is shown to everyone; its end only to the page that `watched` it."""
    if video.status is not VideoStatus.READY:
        return None
    state = asked.state if asked else None
    is_pending = state in (PosterState.WAITING, PosterState.WORKING)
    if asked and state is PosterState.FAILED and asked.number == watched and asked.time_s is None:
        fault = fault or FAULTS.get(asked.error_code or "", FAULTS["worker_lost"])
    return PosterView(
        video=video,
        state=state if asked and (is_pending or asked.number == watched) else None,
        watched=asked.number if asked and is_pending else watched,
        fault=fault,
        frames=await _offered_frames(video),
    )


async def _offered_frames(video: Video) -> list[Tile]:
    """Some frames from one end of the video to the other; none until there is a storyboard."""
    if video.published_attempt is None or not video.has_storyboard:
        return []
    key = output_prefix(video.id, video.published_attempt) + STORYBOARD_NAME
    # Without storage there is the rest of the page.
    with suppress(Unavailable, ObjectMissing):
        text = (await web_context().storage.get(key)).decode()
        return spread_tiles(text, OFFERED_FRAMES)
    return []
