"""The shape of the API's transcode document: how the transcoding of a video stands.

Members that are not known yet are null; none is ever left out.
"""

from __future__ import annotations

from pydantic import Field

from portal.transcoding.packaging.master import Kind
from portal.transcoding.planning.notes import Note
from portal.videos.progress import Progress, RenditionProgress, RenditionStage, TranscodeStage, Work
from portal.web.api.shapes import SIZE_FORMAT, Shape


class TranscodeFailure(Shape):
    """Why a video failed."""

    code: str = Field(description="Stable name of the reason, for programs.")
    message: str


class TranscodeNote(Shape):
    """Something that is not as in the source."""

    code: Note
    message: str


class RenditionRecord(Shape):
    """A rendition, planned or made."""

    name: str
    kind: Kind
    state: RenditionStage
    width: int | None
    height: int | None
    frame_rate: float | None
    codecs: str | None = Field(description="As in the CODECS attribute of the master playlist.")
    bandwidth: int | None = Field(description="Peak rate in bits per second.")
    average_bandwidth: int | None
    size_bytes: int | None = Field(json_schema_extra=SIZE_FORMAT)
    language: str | None
    copied: bool = Field(description="Whether the source's own stream is delivered.")
    error_code: str | None


class TranscodeRemaining(Shape):
    """The job that completes the ladder of a video that is ready."""

    stage: TranscodeStage
    percent: float = Field(ge=0, le=100)
    seconds_left: int | None
    queue_position: int | None


class TranscodeRecord(Shape):
    """How the transcoding of a video stands."""

    stage: TranscodeStage = Field(description="How far the video is on its way to ready.")
    percent: float = Field(ge=0, le=100)
    seconds_left: int | None
    queue_position: int | None = Field(description="1 is next.")
    failure: TranscodeFailure | None
    notes: list[TranscodeNote]
    renditions: list[RenditionRecord]
    remaining: TranscodeRemaining | None = Field(
        description="What is still being made of a ready video."
    )
    poster_url: str | None = Field(json_schema_extra={"format": "uri"})
    storyboard_url: str | None = Field(
        description="WebVTT with the pictures for a seek bar.", json_schema_extra={"format": "uri"}
    )


def transcode_record(progress: Progress, *, video_url: str) -> TranscodeRecord:
    """The document; `video_url` is the absolute address of the video's page."""
    failure = None
    if progress.failure_code is not None:
        failure = TranscodeFailure(
            code=progress.failure_code, message=progress.failure_message or ""
        )
    return TranscodeRecord(
        stage=progress.work.stage,
        percent=round(progress.work.percent, 1),
        seconds_left=_whole(progress.work.seconds_left),
        queue_position=progress.work.queue_position,
        failure=failure,
        notes=[TranscodeNote(code=note, message=note.words) for note in progress.notes],
        renditions=[_rendition(rendition) for rendition in progress.renditions],
        remaining=_remaining(progress.remaining) if progress.remaining else None,
        poster_url=f"{video_url}/poster.jpg" if progress.has_poster else None,
        storyboard_url=f"{video_url}/storyboard.vtt" if progress.has_storyboard else None,
    )


def _remaining(work: Work) -> TranscodeRemaining:
    return TranscodeRemaining(
        stage=work.stage,
        percent=round(work.percent, 1),
        seconds_left=_whole(work.seconds_left),
        queue_position=work.queue_position,
    )


def _rendition(rendition: RenditionProgress) -> RenditionRecord:
    return RenditionRecord(
        name=rendition.name,
        kind=rendition.kind,
        state=rendition.state,
        width=rendition.width,
        height=rendition.height,
        frame_rate=round(rendition.fps, 3) if rendition.fps is not None else None,
        codecs=rendition.codecs,
        bandwidth=rendition.bandwidth_bps,
        average_bandwidth=rendition.average_bandwidth_bps,
        size_bytes=rendition.size_bytes,
        language=rendition.language,
        copied=rendition.copied,
        error_code=rendition.error_code,
    )


def _whole(seconds: float | None) -> int | None:
    return round(seconds) if seconds is not None else None
