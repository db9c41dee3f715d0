"""JSON API of a video's processing: transcoding, retries, and speech to text.

Members are null until their values are known, and never left out.
"""

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field
from quart import Blueprint, Response, request
from quart_schema import document_querystring, document_response, tag_blueprint

from portal.database.models import Video
from portal.database.work_models import Import
from portal.errors import NoTranscription, TranscriptionNotFound, VideoNotFound
from portal.events.records import Shape, Size, TranscodeFailure, Uri
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Kind
from portal.videos import captions, publishing, transcription
from portal.videos.progress import JobProgress, Progress, RenditionStage, TranscodeStage
from portal.videos.reading import audience_of, preview_url
from portal.web.api.json_bodies import json_response
from portal.web.auth import Policy, account_id, policy
from portal.web.composition import web_context
from portal.web.playback import token_base
from portal.web.schemas.base import ClosedShape, Problem, Text
from portal.web.schemas.validation import validated_query
from portal.web.videos import read_import, read_progress, read_video

blueprint = Blueprint("api_transcodes", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])

TRANSCRIPTION = "/videos/<id>/captions/transcription"


def _round_to(digits: int | None) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else round(value, digits))


Percent = Annotated[float, Field(ge=0, le=100), _round_to(1)]
Seconds = Annotated[int | None, _round_to(None)]


class TranscodeNote(Shape):
    """Difference between the source and the output."""

    code: Note
    message: str


class RenditionRecord(Shape, from_attributes=True):
    """Rendition, planned or complete."""

    name: str
    kind: Kind
    state: RenditionStage
    width: int | None
    height: int | None
    frame_rate: Annotated[float | None, _round_to(3)] = Field(validation_alias="fps")
    codecs: str | None = Field(description="CODECS attribute in the master playlist.")
    bandwidth: int | None = Field(
        validation_alias="bandwidth_bps", description="Peak rate in bits per second."
    )
    average_bandwidth: int | None = Field(validation_alias="average_bandwidth_bps")
    size_bytes: Size | None
    language: str | None
    copied: bool = Field(description="Whether the source's own stream is delivered.")
    error_code: str | None


class TranscodeRemaining(Shape, from_attributes=True):
    """Job that adds the missing renditions of a video that is ready."""

    stage: TranscodeStage = Field(description="Step on the way to ready.")
    percent: Percent
    seconds_left: Seconds
    queue_position: int | None = Field(description="1 is next.")
    workers: int = Field(description="Number of workers on it, possibly on several machines.")


class TranscodeRecord(TranscodeRemaining):
    """Progress of a video's transcoding."""

    failure: TranscodeFailure | None
    notes: list[TranscodeNote]
    renditions: list[RenditionRecord]
    remaining: TranscodeRemaining | None = Field(
        description="Work that continues after the video is ready."
    )
    poster_url: Uri | None
    preview_url: Uri | None = Field(
        description="Growing HLS playlist of a video that is not ready yet."
    )
    storyboard_url: Uri | None = Field(description="WebVTT with thumbnails for a seek bar.")


class TranscriptionQuery(ClosedShape):
    """Language of the speech."""

    language: Text | None = Field(None, description="BCP 47. Detected by default.")


class TranscriptionRecord(Shape, from_attributes=True):
    """Progress of automatic captions."""

    state: Literal["waiting", "working", "failed"]
    percent: Percent
    language: str | None
    error_code: str | None = Field(
        description="Why they failed; `no_speech` if the video has no speech."
    )


@blueprint.get("/videos/<id>/transcode")
@policy(Policy.WATCH)
@document_response(TranscodeRecord)
async def get_transcode(id: str) -> Response:
    """Read the progress of a video's transcoding.

    `stage` goes from waiting through probing, transcoding and finishing to ready or failed. An
    import begins with importing, and only its owner can see it until the video exists. Its percent
    stays 0 if the server doesn't report the file's size.
    A long video is ready before all its renditions are complete. Until then `remaining` has the
    progress of the others; afterwards it is null.
    """
    try:
        video = await read_video(id)
    except VideoNotFound:
        row = await read_import(id)
        # An import has no addresses yet.
        return _transcode_response(
            row.id, _import_progress(row), "", cache_control="private, no-cache"
        )
    return _transcode_response(video.id, await read_progress(video.id), await _base_of(video))


@blueprint.post("/videos/<id>/transcode")
@policy(Policy.EDIT)
@document_response(TranscodeRecord, 202)
@document_response(Problem, 409)
async def retry_transcode(id: str) -> Response:
    """Retry a failed video, or the missing renditions of a ready one.

    Send no body. A failed video returns to processing and gets a new `transcodeJobId`.
    """
    video = await read_video(id)
    await publishing.retry_transcode(video, queue=web_context().queue)
    return _transcode_response(video.id, await read_progress(video.id), await _base_of(video), 202)


@blueprint.get(TRANSCRIPTION)
@policy(Policy.WATCH)
@document_response(TranscriptionRecord)
async def get_transcription_answer(id: str) -> Response:
    """Read the progress of automatic captions. Returns 404 once they are complete."""
    return await _transcription_response(await _read_transcribable(id))


@blueprint.post(TRANSCRIPTION)
@policy(Policy.EDIT)
@document_querystring(TranscriptionQuery)
@document_response(TranscriptionRecord, 202)
@document_response(Problem, 409)
async def transcribe(id: str) -> Response:
    """Generate captions automatically, where speech to text is installed.

    Their source is `machine` until a person saves them. Captions that a person has saved are not
    replaced. Send no body.
    """
    spoken = validated_query(TranscriptionQuery, request.args).language
    video = await _read_transcribable(id)
    language = None if spoken is None else captions.language_of(spoken)
    await transcription.request(video.id, language, queue=web_context().queue)
    return await _transcription_response(video, HTTPStatus.ACCEPTED)


@blueprint.delete(TRANSCRIPTION)
@policy(Policy.EDIT)
async def cancel_transcription_answer(id: str) -> Response:
    """Cancel automatic captions."""
    video = await _read_transcribable(id)
    await transcription.cancel(video.id, queue=web_context().queue)
    return Response(status=HTTPStatus.NO_CONTENT)


def _import_progress(row: Import) -> Progress:
    stage = TranscodeStage.IMPORTING if row.error_code is None else TranscodeStage.FAILED
    percent = 100 * row.received_bytes / row.whole_bytes if row.whole_bytes else 0
    return Progress(
        work=JobProgress(stage=stage, percent=percent),
        failure_code=row.error_code,
        failure_message=row.error_message,
    )


async def _base_of(video: Video) -> str:
    """Return the base of the addresses at which the caller watches a video."""
    web = web_context()
    own_id = await account_id() if audience_of(video).is_private else None
    return web.config.public_url if own_id is None else await token_base(own_id, video.id, web=web)


def _transcode_response(
    video_id: UUID,
    progress: Progress,
    base: str,
    status: int = 200,
    *,
    cache_control: str = "no-cache",
) -> Response:
    video_url = f"{base}/videos/{video_id}"
    failure = None
    if (code := progress.failure_code) is not None:
        failure = TranscodeFailure(code=code, message=progress.failure_message or "")
    record = TranscodeRecord(
        **asdict(progress.work),
        failure=failure,
        notes=[TranscodeNote(code=note, message=note.words) for note in progress.notes],
        renditions=progress.renditions,
        remaining=progress.remaining,
        poster_url=f"{video_url}/poster.jpg" if progress.has_poster else None,
        preview_url=preview_url(base, video_id) if progress.has_preview else None,
        storyboard_url=f"{video_url}/storyboard.vtt" if progress.has_storyboard else None,
    )
    return json_response(record, status, cache_control=cache_control)


async def _read_transcribable(id: str) -> Video:
    video = await read_video(id)
    if web_context().config.captions_model is None:
        raise NoTranscription
    return video


async def _transcription_response(video: Video, status: int = HTTPStatus.OK) -> Response:
    row = await transcription.read(video.id)
    if row is None:
        raise TranscriptionNotFound
    return json_response(TranscriptionRecord.model_validate(row), status)
