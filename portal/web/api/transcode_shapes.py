"""The shape of the API's transcode document: how the transcoding of a video stands.

Members that are not known yet are null; none is ever left out.
"""

from dataclasses import asdict
from typing import Annotated

from pydantic import BeforeValidator, Field

from portal.transcoding.packaging.master import Kind
from portal.transcoding.planning.notes import Note
from portal.videos.progress import Progress, RenditionStage, TranscodeStage
from portal.web.api.shapes import SIZE_FORMAT, Shape


def _rounded(digits: int | None) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else round(value, digits))


Percent = Annotated[float, Field(ge=0, le=100), _rounded(1)]
Seconds = Annotated[int | None, _rounded(None)]


class TranscodeFailure(Shape):
    """Why a video failed."""

    code: str = Field(description="Stable name of the reason, for programs.")
    message: str


class TranscodeNote(Shape):
    """Something that is not as in the source."""

    code: Note
    message: str


class RenditionRecord(Shape, from_attributes=True):
    """A rendition, planned or made."""

    name: str
    kind: Kind
    state: RenditionStage
    width: int | None
    height: int | None
    frame_rate: Annotated[float | None, _rounded(3)] = Field(validation_alias="fps")
    codecs: str | None = Field(description="As in the CODECS attribute of the master playlist.")
    bandwidth: int | None = Field(
        validation_alias="bandwidth_bps", description="Peak rate in bits per second."
    )
    average_bandwidth: int | None = Field(validation_alias="average_bandwidth_bps")
    size_bytes: int | None = Field(json_schema_extra=SIZE_FORMAT)
    language: str | None
    copied: bool = Field(description="Whether the source's own stream is delivered.")
    error_code: str | None


class TranscodeRemaining(Shape, from_attributes=True):
    """The job that completes the ladder of a video that is ready."""

    stage: TranscodeStage
    percent: Percent
    seconds_left: Seconds
    queue_position: int | None


class TranscodeRecord(Shape):
    """How the transcoding of a video stands."""

    stage: TranscodeStage = Field(description="How far the video is on its way to ready.")
    percent: Percent
    seconds_left: Seconds
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
    if (code := progress.failure_code) is not None:
        failure = TranscodeFailure(code=code, message=progress.failure_message or "")
    return TranscodeRecord(
        **asdict(progress.work),
        failure=failure,
        notes=[TranscodeNote(code=note, message=note.words) for note in progress.notes],
        renditions=progress.renditions,
        remaining=progress.remaining,
        poster_url=f"{video_url}/poster.jpg" if progress.has_poster else None,
        storyboard_url=f"{video_url}/storyboard.vtt" if progress.has_storyboard else None,
    )
