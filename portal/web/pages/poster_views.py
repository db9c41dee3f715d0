"""What the template of the poster's tool shows."""

from dataclasses import dataclass

from quart import url_for

from portal.database.models import PosterRequest, Video
from portal.database.states import PosterState, VideoStatus
from portal.web.pages.status_views import poster_url

WORDS = {
    PosterState.WAITING: "Waiting for the worker …",
    PosterState.WORKING: "Cutting the frame …",
    PosterState.DONE: "This frame is the poster now.",
    PosterState.FAILED: "The frame couldn’t be cut. Try again, or choose another one.",  # noqa: RUF001 - typography
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PosterView:
    """The poster of a ready video, and how its replacement stands.

    `url` asks for the fragment again while `is_pending`. `words` is empty when nothing is news.
    """

    url: str
    action: str
    fragment_action: str
    image_url: str | None
    version: int
    is_pending: bool
    has_failed: bool
    words: str
    duration_s: float


async def recorded_poster(found: Video) -> PosterView | None:
    """The poster of a video as it stands; None of one that isn't ready."""
    if found.status is not VideoStatus.READY:
        return None
    return poster_view(found, await PosterRequest.get_or_none(video_id=found.id))


def poster_view(video: Video, asked: PosterRequest | None, *, watched: int = 0) -> PosterView:
    """A request under way is shown to everyone; its end only to the page that `watched` it."""
    state, number = (asked.state, asked.number) if asked else (None, None)
    is_pending = state in (PosterState.WAITING, PosterState.WORKING)
    news = state if is_pending or number == watched else None
    watching = number if is_pending else watched
    return PosterView(
        url=url_for("posters.poster", video_id=video.id, watched=watching),
        action=url_for("posters.replace_poster", video_id=video.id),
        fragment_action=url_for("posters.replace_poster_fragment", video_id=video.id),
        image_url=poster_url(video),
        version=video.poster_version,
        is_pending=is_pending,
        has_failed=news is PosterState.FAILED,
        words=WORDS[news] if news else "",
        duration_s=video.duration_s or 0.0,
    )
