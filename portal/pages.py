"""The HTML pages and their fragments: thin views that ask a use case and render.

The frozen values here are all that the templates see; they hold words, not models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quart import Blueprint, current_app, render_template, request, url_for

from portal import publishing
from portal.models import Video, VideoStatus
from portal.playback import master_url

if TYPE_CHECKING:
    from portal.publishing import Progress
    from portal.resources import Resources

blueprint = Blueprint("pages", __name__)

PAGE_SIZE = 24
# A player's shape until the video's own is known.
DEFAULT_WIDTH, DEFAULT_HEIGHT = 1280, 720
STATUS_WORDS = {
    VideoStatus.PROCESSING: "Processing",
    VideoStatus.READY: "Ready",
    VideoStatus.FAILED: "Failed",
}
STAGE_WORDS = {
    "waiting": "Waiting for its turn",
    "probing": "Examining the file",
    "transcoding": "Converting the video",
    "finishing": "Checking the result",
}
SIZE_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time for a <time> element: for programs, and in words (UTC)."""

    iso: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoCard:
    """A video in the library."""

    id: str
    url: str
    title: str
    status: str
    status_words: str
    poster_url: str | None
    duration: str | None
    created: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoPage:
    """What the page of a video tells apart from its state."""

    url: str
    facts_url: str
    is_processing: bool
    title: str
    description: str
    categories: list[str]
    tags: list[str]
    facts: list[tuple[str, str]]
    created: Moment
    updated: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """The state of a video. `percent` is None while nothing is measured yet."""

    state: str
    url: str
    title: str
    announcement: str
    stage_words: str
    percent: int | None
    figure: str
    time_left: str | None
    failure_message: str
    failure_code: str | None
    playback_url: str
    poster_url: str | None
    width: int
    height: int
    duration_s: float | None


@blueprint.get("/")
async def library() -> str:
    """The library, newest first, a page at a time."""
    before = request.args.get("before")
    page = await publishing.list_videos(before=before, limit=PAGE_SIZE)
    older_url = url_for("pages.library", before=page.next_cursor) if page.next_cursor else None
    return await render_template(
        "library/index.html",
        cards=[_card(video) for video in page.videos],
        is_first_page=not before,
        older_url=older_url,
    )


@blueprint.get("/upload")
async def upload() -> str:
    """The upload form; its scripts talk to the JSON API and to storage."""
    return await render_template(
        "upload/index.html", categories=await _resources().categories.names()
    )


@blueprint.get("/videos/<video_id>")
async def video(video_id: str) -> str:
    """One video: its player or its progress, and everything known of it."""
    found = await publishing.get_video(video_id)
    return await render_template(
        "videos/detail.html",
        page=_page(found, await _resources().categories.names()),
        status=_status(found, await publishing.get_progress(found)),
    )


@blueprint.get("/videos/<video_id>/status")
async def status(video_id: str) -> str:
    """The fragment with a video's state alone; it asks for itself again while processing."""
    found = await publishing.get_video(video_id)
    progress = await publishing.get_progress(found)
    return await render_template("videos/_status.html", status=_status(found, progress))


@blueprint.get("/videos/<video_id>/facts")
async def facts(video_id: str) -> str:
    """The fragment with what is known of a video; a page fetches it once processing has ended."""
    found = await publishing.get_video(video_id)
    names = await _resources().categories.names()
    return await render_template("videos/_facts.html", page=_page(found, names))


def _card(video: Video) -> VideoCard:
    return VideoCard(
        id=str(video.id),
        url=url_for("pages.video", video_id=video.id),
        title=video.title,
        status=video.status.value,
        status_words=STATUS_WORDS[video.status],
        poster_url=_poster_url(video),
        duration=_clock(video.duration_s) if video.duration_s is not None else None,
        created=_moment(video.created_at),
    )


def _page(video: Video, category_names: Mapping[int, str]) -> VideoPage:
    return VideoPage(
        url=url_for("pages.video", video_id=video.id),
        facts_url=url_for("pages.facts", video_id=video.id),
        is_processing=video.status is VideoStatus.PROCESSING,
        title=video.title,
        description=video.description.strip(),
        categories=[category_names[number] for number in video.category_ids],
        tags=_tags(video.tags),
        facts=_facts(video),
        created=_moment(video.created_at),
        updated=_moment(video.updated_at),
    )


def _status(video: Video, progress: Progress | None) -> StatusView:
    words = STAGE_WORDS.get(progress.stage, "Processing") if progress else ""
    percent = int(progress.percent) if progress and progress.ahead is None else None
    return StatusView(
        state=video.status.value,
        url=url_for("pages.status", video_id=video.id),
        title=video.title,
        announcement=words or STATUS_WORDS[video.status],
        stage_words=words,
        percent=percent,
        figure=f"{percent} %" if percent is not None else _queue_words(progress),
        time_left=_time_left(progress.eta_s) if progress else None,
        failure_message=video.failure_message or "Something went wrong while it was processed.",
        failure_code=video.failure_code,
        playback_url=_playback_path(video),
        poster_url=_poster_url(video),
        width=video.width or DEFAULT_WIDTH,
        height=video.height or DEFAULT_HEIGHT,
        duration_s=video.duration_s,
    )


def _playback_path(video: Video) -> str:
    # From this page the portal's own playlists are reached by the name the viewer used, which
    # need not be the public one.
    config = _resources().config
    address = master_url(config, video.id, video.published_attempt)
    return address.removeprefix(config.public_url)


def _poster_url(video: Video) -> str | None:
    if video.published_attempt is None:
        return None
    return url_for("playback.poster", video_id=video.id)


def _facts(video: Video) -> list[tuple[str, str]]:
    facts = [("File", video.file_name), ("Size", _size(video.size_bytes))]
    if video.duration_s is not None:
        facts.append(("Duration", _clock(video.duration_s)))
    if video.width and video.height:
        facts.append(("Resolution", f"{video.width} × {video.height}"))  # noqa: RUF001 - a sign
    return facts


def _tags(tags: str) -> list[str]:
    stripped = (tag.strip() for tag in tags.split(","))
    return [tag for tag in stripped if tag]


def _queue_words(progress: Progress | None) -> str:
    if progress is None or not progress.ahead:
        return "Next in line"
    return "1 video ahead" if progress.ahead == 1 else f"{progress.ahead} videos ahead"


def _time_left(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    if seconds < 5:
        return "a few seconds left"
    if seconds < 60:
        return f"about {-(-int(seconds) // 5) * 5} s left"
    if seconds < 3600:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _size(size_bytes: int) -> str:
    value, unit = float(size_bytes), 0
    while value >= 999.5 and unit < len(SIZE_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 1 if unit and value < 99.95 else 0
    return f"{value:.{digits}f} {SIZE_UNITS[unit]}"


def _moment(moment: datetime) -> Moment:
    utc = moment.astimezone(UTC)
    return Moment(iso=utc.isoformat(), words=f"{utc.day} {utc:%b %Y, %H:%M} UTC")


def _resources() -> Resources:
    resources: Resources = current_app.extensions["portal"]
    return resources
