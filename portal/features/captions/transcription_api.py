"""JSON API of automatic captions: their progress, requests and cancellations."""

from http import HTTPStatus
from typing import Literal

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import document_querystring, document_response, tag_blueprint

from portal.database.models import Video
from portal.errors import NoTranscription, TranscriptionNotFound
from portal.events.records import Percent, Shape
from portal.features.captions import service as captions
from portal.features.captions import transcription
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.http.json_bodies import json_response
from portal.http.schemas.base import ClosedShape, Problem, Text
from portal.http.schemas.validation import validated_query
from portal.http.videos import read_video

blueprint = Blueprint("api_transcription", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])

TRANSCRIPTION = "/videos/<id>/captions/transcription"


class TranscriptionQuery(ClosedShape):
    """Language of the speech."""

    language: Text | None = Field(None, description="BCP 47. Detected by default.")


class TranscriptionRecord(Shape, from_attributes=True):
    """Progress of automatic captions."""

    state: Literal["waiting", "working", "failed"] = Field(
        description="`waiting`, `working` or `failed`."
    )
    percent: Percent = Field(description="Progress of the transcription.")
    language: str | None = Field(
        description="Language of the speech (BCP 47); null until it is known."
    )
    error_code: str | None = Field(
        description="Why they failed, such as `no_speech` in a video, or `no_sound` in a new file."
    )


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
    await transcription.request(video.id, language)
    return await _transcription_response(video, HTTPStatus.ACCEPTED)


@blueprint.delete(TRANSCRIPTION)
@policy(Policy.EDIT)
async def cancel_transcription_answer(id: str) -> Response:
    """Cancel automatic captions."""
    video = await _read_transcribable(id)
    await transcription.cancel(video.id)
    return Response(status=HTTPStatus.NO_CONTENT)


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
