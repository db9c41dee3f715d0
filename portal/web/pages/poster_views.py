"""What the template of the poster's tool shows."""

from contextlib import suppress
from dataclasses import dataclass

from quart import url_for

from portal.database.models import PosterRequest, Video
from portal.database.states import PosterState, VideoStatus
from portal.errors import Unavailable
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.posters import MAX_PICTURE_PIXELS
from portal.transcoding.errors import PictureFault
from portal.transcoding.planning.storyboard import STORYBOARD_NAME, Tile, spread_tiles
from portal.web.composition import web_context
from portal.web.pages.formatting import clock
from portal.web.pages.status_views import poster_url
from portal.web.server.limits import MAX_PICTURE_BYTES

OFFERED = 6
WORDS = {
    PosterState.WAITING: "Waiting for the worker…",
    PosterState.WORKING: "Making the poster…",
    PosterState.DONE: "The poster was replaced.",
    PosterState.FAILED: "The frame couldn’t be cut. Try again, or choose another one.",  # noqa: RUF001 - typography
}
LARGEST = f"{MAX_PICTURE_BYTES // 1_000_000} MB and {MAX_PICTURE_PIXELS // 1_000_000} megapixels"
# What is wrong with a picture that was sent, by code.
FAULTS = {
    PictureFault.TOO_LARGE: f"This picture is larger than {LARGEST}. Choose a smaller one.",
    PictureFault.UNREADABLE: "No JPEG, PNG or still WebP can be read in it. Choose another one.",
    "worker_lost": "No poster could be made of this picture. Try again, or choose another one.",
}
NO_PICTURE = "Choose a picture."


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedFrame:
    """A thumbnail of the storyboard, as a part of its sprite: `view` is x, y, width, height."""

    time_s: str
    words: str
    sprite_url: str
    view: str
    sprite_width: int
    sprite_height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PosterView:
    """The poster of a ready video, and how its replacement stands.

    `url` asks for the fragment again while `is_pending`. `words` is empty when nothing is news;
    `fault` is what is wrong with the picture that was sent.
    """

    url: str
    video_id: str
    image_url: str | None
    version: int
    is_pending: bool
    has_failed: bool
    is_news: bool
    words: str
    fault: str
    duration_s: float
    frames: list[OfferedFrame]
    max_bytes: int
    largest: str
    too_large: str


async def recorded_poster(found: Video, *, watched: int = 0, fault: str = "") -> PosterView | None:
    """The poster of a video as it stands; None of one that isn't ready."""
    return await poster_view(
        found, await PosterRequest.get_or_none(video_id=found.id), watched=watched, fault=fault
    )


async def poster_view(
    video: Video, asked: PosterRequest | None, *, watched: int = 0, fault: str = ""
) -> PosterView | None:
    """A request under way is shown to everyone; its end only to the page that `watched` it."""
    if video.status is not VideoStatus.READY:
        return None
    state, number = (asked.state, asked.number) if asked else (None, None)
    is_pending = state in (PosterState.WAITING, PosterState.WORKING)
    news = state if is_pending or number == watched else None
    has_failed = news is PosterState.FAILED
    if asked is not None and has_failed and asked.time_s is None:
        fault = fault or FAULTS.get(asked.error_code or "", FAULTS["worker_lost"])
    return PosterView(
        url=url_for("posters.poster", video_id=video.id, watched=number if is_pending else watched),
        video_id=str(video.id),
        image_url=poster_url(video),
        version=video.poster_version,
        is_pending=is_pending,
        has_failed=has_failed,
        is_news=news is PosterState.DONE,
        words=fault or (WORDS[news] if news else ""),
        fault=fault,
        duration_s=video.duration_s or 0.0,
        frames=await _offered(video),
        max_bytes=MAX_PICTURE_BYTES,
        largest=LARGEST,
        too_large=FAULTS[PictureFault.TOO_LARGE],
    )


async def _offered(video: Video) -> list[OfferedFrame]:
    """Some frames from one end of the video to the other; none until there is a storyboard."""
    if video.published_attempt is None or not video.has_storyboard:
        return []
    key = output_prefix(video.id, video.published_attempt) + STORYBOARD_NAME
    # Without storage there is the rest of the page.
    with suppress(Unavailable, ObjectMissing):
        text = (await web_context().storage.get(key)).decode()
        return [_frame(video, tile) for tile in spread_tiles(text, OFFERED)]
    return []


def _frame(video: Video, tile: Tile) -> OfferedFrame:
    width, height = tile.sprite_size
    return OfferedFrame(
        time_s=f"{tile.at_s:.3f}",
        words=clock(tile.at_s),
        sprite_url=url_for(
            "playback.output",
            video_id=video.id,
            attempt=video.published_attempt,
            name=tile.sprite,
        ),
        view=f"{tile.x} {tile.y} {tile.width} {tile.height}",
        sprite_width=width,
        sprite_height=height,
    )
