"""The JSON API of captions, the text of each as WebVTT, and of speech to text."""

from http import HTTPStatus
from typing import Annotated, Literal

from pydantic import Field, StrictBool
from quart import Blueprint, Response, request, url_for
from quart_schema import (
    document_headers,
    document_querystring,
    document_request,
    document_response,
    tag_blueprint,
)
from werkzeug.routing import BaseConverter

from portal.database.models import Caption, CaptionSource, Video
from portal.errors import (
    CaptionsChanged,
    CaptionsNotFound,
    NotCaptions,
    NoTranscription,
    TranscriptionNotFound,
)
from portal.processing.captions import folder_name
from portal.transcoding.planning.tracks import attribute_text
from portal.videos import captions, transcription
from portal.videos.captions import CaptionChange
from portal.web.api import json_bodies
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.videos import read_video

blueprint = Blueprint("api_captions", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Captions"])

CAPTIONS = "/videos/<string:id>/captions"
TRACK = f"{CAPTIONS}/<language:language>"
TRANSCRIPTION = f"{CAPTIONS}/transcription"
WEBVTT = "text/vtt"
CONTENT_TYPES = (WEBVTT, "application/x-subrip")


class LanguageConverter(BaseConverter):
    """In an address, a language; there are no captions in `transcription`."""

    regex = r"(?!transcription\Z).+"


def _label_fault(label: str) -> str | None:
    return None if attribute_text(label) == label else "Use one line of text without quotes."


Label = Annotated[
    json_bodies.Text,
    Field(
        min_length=1,
        max_length=captions.MAX_LABEL_LENGTH,
        description="What menus call them; without it the name of the language.",
    ),
    json_bodies.reject_if(_label_fault),
]
Default = Annotated[StrictBool, Field(description="Whether players show them by themselves.")]


class CaptionRecord(json_bodies.Shape):
    """Captions in one language."""

    language: str = Field(description="BCP 47.")
    label: str
    is_default: bool
    source: CaptionSource = Field(description="`upload` once a person has saved them.")
    cue_count: int
    changed_at: json_bodies.Timestamp
    version: str = Field(description="What the ETag says.")


class PresentCaptions(CaptionRecord):
    """Captions with their text, as WebVTT."""

    text: str


class CaptionList(json_bodies.Shape):
    """All captions of a video, those shown by themselves first."""

    captions: list[CaptionRecord]


class CaptionsConflict(json_bodies.Problem):
    """Problem details with what is recorded; its version is the answer's ETag."""

    present: PresentCaptions


class TrackQuery(json_bodies.Shape, extra="forbid"):
    """What may be said of captions in the address."""

    label: Label | None = None
    # In an address it is text.
    is_default: bool | None = Field(None, description="Whether players show them by themselves.")


class NewTrackQuery(TrackQuery):
    """Which captions are added."""

    language: json_bodies.Text = Field(description="BCP 47, such as en or pt-BR.")


class TranscriptionQuery(json_bodies.Shape, extra="forbid"):
    """What is spoken."""

    language: json_bodies.Text | None = Field(None, description="BCP 47; else it is found out.")


class TranscriptionRecord(json_bodies.Shape, from_attributes=True):
    """How far captions are that a machine writes."""

    state: Literal["waiting", "working", "failed"]
    percent: float = Field(ge=0, le=100)
    language: str | None
    error_code: str | None = Field(description="Why it failed: `no_speech` where nobody speaks.")


class CaptionsPatch(json_bodies.Shape, extra="forbid"):
    """What may be changed besides the text; what is left out stays."""

    label: Label | None = None
    is_default: Default | None = None


@blueprint.get(CAPTIONS)
@policy(Policy.WATCH)
@document_response(CaptionList)
async def list_captions(id: str) -> Response:
    """List the captions of a video: those of its file, and those that were added."""
    video = await read_video(id)
    rows = await captions.list_captions(video.id)
    answer = json_bodies.json_response(
        CaptionList(captions=[CaptionRecord(**_columns(it)) for it in rows]),
        cache_control="no-cache",
        etag=".".join(map(folder_name, rows)) or "none",
    )
    return await answer.make_conditional(request)


@blueprint.post(CAPTIONS)
@policy(Policy.EDIT)
@document_querystring(NewTrackQuery)
@document_response(CaptionRecord, 201)
@document_response(json_bodies.Problem, 409)
async def add_captions(id: str) -> Response:
    """Add captions in another language: the body is a WebVTT or a SubRip file.

    What players would repair is repaired: the encoding, the order of cues, unknown markup. Anything
    else is refused with the line. A video that is not ready has them once it is.
    """
    video = await read_video(id)
    asked = json_bodies.validated_query(NewTrackQuery)
    language = captions.language_of(asked.language)
    return await _add(video, language, await _sent(asked))


@blueprint.get(TRACK)
@policy(Policy.WATCH)
@document_response(CaptionRecord)
async def get_captions(id: str, language: str) -> Response:
    """Read captions as WebVTT. The ETag names this version of them."""
    video = await read_video(id)
    row = await captions.read_captions_of(video.id, language)
    return await webvtt_answer(row.text or "", folder_name(row)).make_conditional(request)


@blueprint.put(TRACK)
@policy(Policy.EDIT)
@document_headers(json_bodies.PatchHeaders)
@document_querystring(TrackQuery)
@document_response(CaptionRecord)
@document_response(CaptionRecord, 201)
@document_response(CaptionsConflict, 412)
async def put_captions(id: str, language: str) -> Response:
    """Replace captions, or add them; the body is as for adding.

    With their ETag in If-Match, nothing is written when someone else has changed them since, unless
    what is sent is recorded already.
    """
    video = await read_video(id)
    tag = captions.language_of(language)
    sent = await _sent(json_bodies.validated_query(TrackQuery))
    try:
        return await _change(video, tag, sent)
    except CaptionsNotFound:
        if "If-Match" in request.headers:
            raise
        return await _add(video, tag, sent)


@blueprint.patch(TRACK)
@policy(Policy.EDIT)
@document_headers(json_bodies.PatchHeaders)
@document_request(CaptionsPatch)
@document_response(CaptionRecord)
@document_response(CaptionsConflict, 412)
async def patch_captions(id: str, language: str) -> Response:
    """Change what captions are called, or whether players show them by themselves."""
    video = await read_video(id)
    sent = json_bodies.validated(CaptionsPatch, await json_bodies.read_json())
    change = CaptionChange(label=sent.label, is_default=sent.is_default)
    return await _change(video, captions.known_as(language), change)


@blueprint.delete(TRACK)
@policy(Policy.EDIT)
@document_headers(json_bodies.PatchHeaders)
@document_response(CaptionsConflict, 412)
async def delete_captions(id: str, language: str) -> Response:
    """Delete captions; those of the file stay in the file."""
    video = await read_video(id)
    tag = captions.known_as(language)
    try:
        await captions.remove(
            video.id, tag, version=await _version_read(video, tag), queue=web_context().queue
        )
    except CaptionsChanged as exc:
        await _tell_present(exc, video, tag)
        raise
    return Response(status=HTTPStatus.NO_CONTENT)


@blueprint.get(TRANSCRIPTION)
@policy(Policy.WATCH)
@document_response(TranscriptionRecord)
async def get_transcription(id: str) -> Response:
    """See how far captions are that a machine writes; 404 once they are there."""
    return await _transcription(await _transcribed(id))


@blueprint.post(TRANSCRIPTION)
@policy(Policy.EDIT)
@document_querystring(TranscriptionQuery)
@document_response(TranscriptionRecord, 202)
@document_response(json_bodies.Problem, 409)
async def transcribe(id: str) -> Response:
    """Have a machine write captions of what is said, where speech to text is installed.

    They are of the source `machine` until a person saves them; captions that a person has saved are
    left as they are. No body is needed.
    """
    video = await _transcribed(id)
    asked = json_bodies.validated_query(TranscriptionQuery).language
    language = None if asked is None else captions.language_of(asked)
    await transcription.request(video.id, language, queue=web_context().queue)
    return await _transcription(video, HTTPStatus.ACCEPTED)


@blueprint.delete(TRANSCRIPTION)
@policy(Policy.EDIT)
async def cancel_transcription(id: str) -> Response:
    """Give up captions that a machine writes."""
    video = await _transcribed(id)
    await transcription.cancel(video.id, queue=web_context().queue)
    return Response(status=HTTPStatus.NO_CONTENT)


async def _transcribed(id: str) -> Video:
    video = await read_video(id)
    if web_context().config.captions_model is None:
        raise NoTranscription
    return video


async def _transcription(video: Video, status: int = HTTPStatus.OK) -> Response:
    found = await transcription.read(video.id)
    if found is None:
        raise TranscriptionNotFound
    return json_bodies.json_response(TranscriptionRecord.model_validate(found), status)


def webvtt_answer(text: str, version: str) -> Response:
    """WebVTT, with its version as its ETag."""
    answer = Response(text, content_type=f"{WEBVTT}; charset=utf-8")
    answer.headers["Cache-Control"] = "no-cache"
    answer.set_etag(version)
    return answer


async def _sent(asked: TrackQuery) -> CaptionChange:
    """The captions of the current request's body, and what its address says of them."""
    if request.mimetype not in CONTENT_TYPES:
        raise NotCaptions
    body: bytes = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    said = await captions.read_file(body)
    return CaptionChange(said=said, label=asked.label, is_default=asked.is_default)


async def _add(video: Video, language: str, sent: CaptionChange) -> Response:
    row = await captions.add(video.id, language, sent, queue=web_context().queue)
    answer = _answer(row, HTTPStatus.CREATED)
    answer.headers["Location"] = url_for(
        "api_captions.get_captions", id=video.id, language=row.language
    )
    return answer


async def _change(video: Video, language: str, sent: CaptionChange) -> Response:
    version = await _version_read(video, language)
    try:
        row = await captions.change(
            video.id, language, sent, version=version, queue=web_context().queue
        )
    except CaptionsChanged as exc:
        await _tell_present(exc, video, language)
        raise
    return _answer(row)


async def _version_read(video: Video, language: str) -> str | None:
    """The version that If-Match names; None for any."""
    if "If-Match" not in request.headers:
        return None
    row = await captions.read_captions_of(video.id, language)
    return json_bodies.version_read(folder_name(row))


async def _tell_present(exc: CaptionsChanged, video: Video, language: str) -> None:
    row = await captions.read_captions_of(video.id, language)
    present = PresentCaptions(**_columns(row), text=row.text or "")
    exc.tell_present(present.model_dump(mode="json"), version=folder_name(row))


def _answer(row: Caption, status: int = HTTPStatus.OK) -> Response:
    record = CaptionRecord(**_columns(row))
    return json_bodies.json_response(record, status, etag=folder_name(row))


def _columns(row: Caption) -> dict[str, object]:
    names = [name for name in CaptionRecord.model_fields if name != "version"]
    return {**{name: getattr(row, name) for name in names}, "version": folder_name(row)}
