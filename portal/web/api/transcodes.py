"""How workers get on with a video: its transcoding, another try of what failed, speech to text.

Members that are not known yet are null; none is ever left out.
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


def _rounded(digits: int | None) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else round(value, digits))


Percent = Annotated[float, Field(ge=0, le=100), _rounded(1)]
Seconds = Annotated[int | None, _rounded(None)]


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


class TranscriptionQuery(ClosedShape):
    """What is spoken."""

    language: Text | None = Field(None, description="BCP 47; else it is found out.")


class TranscriptionRecord(Shape, from_attributes=True):
    """How far captions are that a machine writes."""

    state: Literal["waiting", "working", "failed"]
    percent: Percent
    language: str | None
    error_code: str | None = Field(description="Why it failed: `no_speech` where nobody speaks.")


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
        # An import has no addresses yet.
        return _answer(found.id, _importing(found), "", cache_control="private, no-cache")
    return _answer(video.id, await read_progress(video.id), await _base_of(video))


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
    return _answer(video.id, await read_progress(video.id), await _base_of(video), 202)


@blueprint.get(TRANSCRIPTION)
@policy(Policy.WATCH)
@document_response(TranscriptionRecord)
async def get_transcription_answer(id: str) -> Response:
    """See how far captions are that a machine writes; 404 once they are there."""
    return await _transcription_answer(await _transcribed(id))


@blueprint.post(TRANSCRIPTION)
@policy(Policy.EDIT)
@document_querystring(TranscriptionQuery)
@document_response(TranscriptionRecord, 202)
@document_response(Problem, 409)
async def transcribe(id: str) -> Response:
    """Have a machine write captions of what is said, where speech to text is installed.

    They are of the source `machine` until a person saves them; captions that a person has saved are
    left as they are. No body is needed.
    """
    asked = validated_query(TranscriptionQuery, request.args).language
    video = await _transcribed(id)
    language = None if asked is None else captions.language_of(asked)
    await transcription.request(video.id, language, queue=web_context().queue)
    return await _transcription_answer(video, HTTPStatus.ACCEPTED)


@blueprint.delete(TRANSCRIPTION)
@policy(Policy.EDIT)
async def cancel_transcription_answer(id: str) -> Response:
    """Give up captions that a machine writes."""
    video = await _transcribed(id)
    await transcription.cancel(video.id, queue=web_context().queue)
    return Response(status=HTTPStatus.NO_CONTENT)


def _importing(found: Import) -> Progress:
    stage = TranscodeStage.IMPORTING if found.error_code is None else TranscodeStage.FAILED
    percent = 100 * found.received_bytes / found.whole_bytes if found.whole_bytes else 0
    return Progress(
        work=JobProgress(stage=stage, percent=percent),
        failure_code=found.error_code,
        failure_message=found.error_message,
    )


async def _base_of(video: Video) -> str:
    """Return the address below which the client of this request watches a video."""
    web = web_context()
    own_id = await account_id() if audience_of(video).is_private else None
    return web.config.public_url if own_id is None else await token_base(own_id, video.id, web=web)


def _answer(
    video_id: UUID,
    found: Progress,
    base: str,
    status: int = 200,
    *,
    cache_control: str = "no-cache",
) -> Response:
    video_url = f"{base}/videos/{video_id}"
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
        preview_url=preview_url(base, video_id) if found.has_preview else None,
        storyboard_url=f"{video_url}/storyboard.vtt" if found.has_storyboard else None,
    )
    return json_response(record, status, cache_control=cache_control)


async def _transcribed(id: str) -> Video:
    video = await read_video(id)
    if web_context().config.captions_model is None:
        raise NoTranscription
    return video


async def _transcription_answer(video: Video, status: int = HTTPStatus.OK) -> Response:
    found = await transcription.read(video.id)
    if found is None:
        raise TranscriptionNotFound
    return json_response(TranscriptionRecord.model_validate(found), status)
