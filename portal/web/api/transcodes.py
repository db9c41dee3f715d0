"""How a video's transcoding stands, and another try of what failed.

Members that are not known yet are null; none is ever left out.
"""

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

from pydantic import BeforeValidator, Field
from quart import Blueprint, Response
from quart_schema import document_response, tag_blueprint

from portal.database.work_models import Import
from portal.errors import VideoNotFound
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Kind
from portal.videos import publishing
from portal.videos.progress import JobProgress, Progress, RenditionStage, TranscodeStage
from portal.videos.reading import preview_url
from portal.web.api.json_bodies import Problem, Shape, Size, Uri, json_response
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.videos import read_import, read_progress, read_video

blueprint = Blueprint("api_transcodes", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])


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
    size_bytes: Size | None
    language: str | None
    copied: bool = Field(description="Whether the source's own stream is delivered.")
    error_code: str | None


class TranscodeRemaining(Shape, from_attributes=True):
    """The job that completes the ladder of a video that is ready."""

    stage: TranscodeStage
    percent: Percent
    seconds_left: Seconds
    queue_position: int | None
    workers: int


class TranscodeRecord(Shape):
    """How the transcoding of a video stands."""

    stage: TranscodeStage = Field(description="How far the video is on its way to ready.")
    percent: Percent
    seconds_left: Seconds
    queue_position: int | None = Field(description="1 is next.")
    workers: int = Field(description="How many are at it, on several machines perhaps.")
    failure: TranscodeFailure | None
    notes: list[TranscodeNote]
    renditions: list[RenditionRecord]
    remaining: TranscodeRemaining | None = Field(
        description="What is still being made of a ready video."
    )
    poster_url: Uri | None
    preview_url: Uri | None = Field(
        description="HLS of what is made so far of a video that is not ready; it grows."
    )
    storyboard_url: Uri | None = Field(description="WebVTT with the pictures for a seek bar.")


@blueprint.get("/videos/<id>/transcode")
@policy(Policy.WATCH)
@document_response(TranscodeRecord)
async def get_transcode(id: str) -> Response:
    """See how a video's transcoding stands.

    `stage` is the way to ready: waiting, probing, transcoding, finishing, then ready or failed.
    An import begins with importing, and is shown to its owner alone until there is a video. Its
    percent stays 0 when the server doesn't tell the file's size.
    A long video is ready before all its renditions are made; `remaining` then tells how far the
    rest is, and is null once the ladder is complete.
    """
    try:
        video = await read_video(id)
    except VideoNotFound:
        found = await read_import(id)
        return _answer(found.id, _importing(found), cache_control="private, no-cache")
    return _answer(video.id, await read_progress(video.id))


@blueprint.post("/videos/<id>/transcode")
@policy(Policy.EDIT)
@document_response(TranscodeRecord, 202)
@document_response(Problem, 409)
async def retry_transcode(id: str) -> Response:
    """Try again what failed: a failed video, or the renditions that a ready one lacks.

    No body is needed. A failed video is processing again and gets another `transcodeJobId`.
    """
    video = await read_video(id)
    await publishing.retry_transcode(video, queue=web_context().queue)
    return _answer(video.id, await read_progress(video.id), 202)


def _importing(found: Import) -> Progress:
    stage = TranscodeStage.IMPORTING if found.error_code is None else TranscodeStage.FAILED
    percent = 100 * found.received_bytes / found.whole_bytes if found.whole_bytes else 0
    return Progress(
        work=JobProgress(stage=stage, percent=percent),
        failure_code=found.error_code,
        failure_message=found.error_message,
    )


def _answer(
    video_id: UUID, found: Progress, status: int = 200, *, cache_control: str = "no-cache"
) -> Response:
    config = web_context().config
    video_url = f"{config.public_url}/videos/{video_id}"
    failure = None
    if (code := found.failure_code) is not None:
        failure = TranscodeFailure(code=code, message=found.failure_message or "")
    record = TranscodeRecord(
        **asdict(found.work),
        failure=failure,
        notes=[TranscodeNote(code=note, message=note.words) for note in found.notes],
        renditions=found.renditions,
        remaining=found.remaining,
        poster_url=f"{video_url}/poster.jpg" if found.has_poster else None,
        preview_url=preview_url(config, video_id) if found.has_preview else None,
        storyboard_url=f"{video_url}/storyboard.vtt" if found.has_storyboard else None,
    )
    return json_response(record, status, cache_control=cache_control)
