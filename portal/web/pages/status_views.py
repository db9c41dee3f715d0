"""What the templates see of a video's state: frozen values of words, not models."""

from dataclasses import dataclass

from quart import request, url_for

from portal.config import Config
from portal.database.models import Video
from portal.database.states import VideoStatus
from portal.text import shown
from portal.videos.progress import (
    JobProgress,
    Progress,
    RenditionProgress,
    RenditionStage,
    TranscodeStage,
)
from portal.videos.publishing import RETRY_HELPS
from portal.videos.reading import audience_of
from portal.web.pages.formatting import queue_words, time_left, whole_seconds
from portal.web.playback_addresses import master_url

# A player's shape until the video's own is known.
DEFAULT_WIDTH, DEFAULT_HEIGHT = 1280, 720
STATUS_WORDS = {
    VideoStatus.PROCESSING: "Processing",
    VideoStatus.READY: "Ready",
    VideoStatus.FAILED: "Failed",
}
STAGE_WORDS = {
    TranscodeStage.WAITING: "Waiting for its turn",
    TranscodeStage.PROBING: "Examining the file",
    TranscodeStage.TRANSCODING: "Converting the video",
    TranscodeStage.FINISHING: "Checking the result",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryView:
    """A form that asks for another try; with scripts its answer replaces `target` alone."""

    url: str
    fragment_url: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingView:
    """What of a ready video is still being made, or could not be; `words` is empty for neither.

    `complete_count` changes when a quality was added; `storyboard_url` is there once that is made.
    """

    url: str
    is_working: bool
    words: str
    complete_count: int
    storyboard_url: str | None
    retry: RetryView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """The state of a video. `percent` is None while nothing is measured yet."""

    id: str
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
    retry: RetryView | None
    playback_url: str
    poster_url: str | None
    storyboard_url: str | None
    width: int
    height: int
    duration_s: float | None
    plays_elsewhere: bool
    """Whether its address is enough for another device to play it, which has no session here."""

    @property
    def length_s(self) -> int:
        """The duration as it is told, if there is one."""
        return whole_seconds(self.duration_s or 0)


def poster_url(video: Video) -> str | None:
    """Address of a video's poster, if it has one."""
    if video.published_attempt is None or not video.has_poster:
        return None
    return url_for("playback.poster", video_id=video.id, v=video.poster_version)


def storyboard_url(video: Video) -> str | None:
    """Address of the pictures for a video's time bar, if it has them."""
    if video.published_attempt is None or not video.has_storyboard:
        return None
    return url_for("playback.storyboard", video_id=video.id)


def status_view(video: Video, progress: Progress, *, config: Config) -> StatusView:
    """The state of a video, for the fragment that follows it until it is ready or failed."""
    work = progress.work
    words = STAGE_WORDS.get(work.stage, "")
    # It has ended between the reading of the video and that of its progress.
    if video.status is VideoStatus.PROCESSING and not words:
        words = STAGE_WORDS[TranscodeStage.FINISHING]
    is_waiting = work.stage is TranscodeStage.WAITING
    helps = work.stage is TranscodeStage.FAILED and video.failure_code in RETRY_HELPS
    return StatusView(
        id=str(video.id),
        state=video.status.value,
        url=url_for("pages.status", video_id=video.id),
        title=shown(video.title),
        announcement=words or STATUS_WORDS[video.status],
        stage_words=words,
        percent=None if is_waiting else int(work.percent),
        figure=queue_words(work.queue_position) if is_waiting else f"{int(work.percent)}%",
        time_left=time_left(work.seconds_left),
        failure_message=video.failure_message or "Something went wrong while it was processed.",
        failure_code=video.failure_code,
        retry=_retry(video, fragment="status") if helps else None,
        playback_url=_player_address(video, config),
        poster_url=poster_url(video),
        storyboard_url=storyboard_url(video),
        width=video.width or DEFAULT_WIDTH,
        height=video.height or DEFAULT_HEIGHT,
        duration_s=video.duration_s,
        plays_elsewhere=not audience_of(video).is_private or bool(request.root_path),
    )


def _player_address(video: Video, config: Config) -> str:
    """Where the player of this page finds the stream.

    The portal's own playlists are reached by the name the viewer used, which need not be the public
    one, and below the playback link by which the page was.
    """
    is_private = audience_of(video).is_private
    address = master_url(config, video.id, video.published_attempt, is_private=is_private)
    path = address.removeprefix(config.public_url)
    return address if path == address else request.root_path + path


def remaining_view(video: Video, progress: Progress) -> RemainingView:
    """What is missing of a ready video's qualities."""
    complete = [it for it in progress.renditions if it.state is RenditionStage.COMPLETE]
    has_failed = progress.remaining is None and bool(progress.failed)
    return RemainingView(
        url=url_for("pages.remaining", video_id=video.id),
        is_working=progress.remaining is not None,
        words=_remaining_words(progress),
        complete_count=len(complete),
        storyboard_url=storyboard_url(video),
        retry=_retry(video, fragment="remaining") if has_failed else None,
    )


def _remaining_words(progress: Progress) -> str:
    if progress.remaining is not None:
        if not (progress.unfinished or progress.has_storyboard):
            return "Pictures for the time bar are being made."
        return _work_words(progress.remaining, progress.unfinished)
    if progress.failed:
        return f"Could not be made: {_names(progress.failed)}."
    return ""


def _work_words(work: JobProgress, unfinished: tuple[RenditionProgress, ...]) -> str:
    if not unfinished:
        return "The last quality is being added."
    names = _names(unfinished)
    if work.stage is TranscodeStage.WAITING:
        return f"More qualities are waiting to be made: {names}"
    return f"More qualities are being made: {names} – {int(work.percent)}%"  # noqa: RUF001 - a dash


def _names(renditions: tuple[RenditionProgress, ...]) -> str:
    return ", ".join(rendition.name for rendition in renditions)


def _retry(video: Video, *, fragment: str) -> RetryView:
    return RetryView(
        url=url_for("pages.retry", video_id=video.id),
        fragment_url=url_for(f"pages.retry_{fragment}", video_id=video.id),
        target=f"#{fragment}",
    )
