"""The JSON API of captions, the text of each as WebVTT, and of chapters."""

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel, StrictBool
from quart import Blueprint, Response, request, url_for
from quart.blueprints import BlueprintSetupState
from quart_schema import (
    document_headers,
    document_querystring,
    document_request,
    document_response,
    tag_blueprint,
)
from werkzeug.routing import BaseConverter

from portal.database.models import Caption, CaptionSource, Video
from portal.errors import FieldError, InvalidRequest, NotCaptions
from portal.events.records import Shape
from portal.features.captions import service as captions
from portal.features.captions.service import CaptionChange
from portal.films.captions import CaptionText, folder_name
from portal.http import json_bodies
from portal.http.auth import Policy, may_edit, policy
from portal.http.schemas.base import ClosedShape, PatchHeaders, Problem, Text, Timestamp, reject_if
from portal.http.schemas.validation import validated, validated_query
from portal.http.server.headers import conditional_response
from portal.http.server.limits import Body
from portal.http.videos import read_video
from portal.locale.messages import Message
from portal.transcoding.captions.decoding import CHARSETS, known_charset
from portal.transcoding.captions.faults import (
    MAX_FILE_BYTES,
    MAX_WARNINGS,
    CaptionsUnreadable,
    EncodingUncertain,
    WarningCode,
)
from portal.transcoding.captions.reading import MAX_SHIFT_S, CaptionContents, ReadOptions
from portal.transcoding.planning.tracks import attribute_text


class LanguageConverter(BaseConverter):
    """Language in an address; `transcription` is the address of a request, not a language."""

    regex = r"(?!transcription\Z).+"


def _add_converter(state: BlueprintSetupState) -> None:
    state.app.url_map.converters["language"] = LanguageConverter


blueprint = Blueprint("api_captions", __name__, url_prefix="/api")
blueprint.record_once(_add_converter)
tag_blueprint(blueprint, ["Captions"])

CAPTIONS = "/videos/<string:id>/captions"
TRACK = f"{CAPTIONS}/<language:language>"
WEBVTT = "text/vtt"
# Accepted types of caption files, whose format is recognised by their content. Many generated
# clients can only send the last type.
CONTENT_TYPES = (
    WEBVTT,
    "application/x-subrip",
    "text/x-sbv",
    "application/ttml+xml",
    "application/octet-stream",
)


FILE = Body(content_types=CONTENT_TYPES, max_file_bytes=MAX_FILE_BYTES)


def _label_fault(label: str) -> str | None:
    if attribute_text(label) == label:
        return None
    return Message("Use one line of text without quotes.")


def _charset_fault(name: str) -> str | None:
    if known_charset(name):
        return None
    return Message("Choose one of %(names)s.", names=", ".join(CHARSETS))


Label = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=captions.MAX_LABEL_LENGTH,
        description="Name in menus. Default: the name of the language.",
    ),
    reject_if(_label_fault),
]
Default = Annotated[StrictBool, Field(description="Whether players show them by default.")]


class CaptionRecord(Shape):
    """Captions in one language."""

    language: str = Field(description="BCP 47.")
    label: str = Field(description="Name in menus.")
    is_default: bool = Field(description="Whether players show them by default.")
    source: CaptionSource = Field(description="`upload` once a person has saved them.")
    cue_count: int = Field(description="Number of cues that viewers get.")
    changed_at: Timestamp = Field(description="Time of the last change.")
    error_code: str | None = Field(
        description="Why players on other sites don't get this version, if storing it failed."
    )
    version: str = Field(description="The value of the ETag.")


class FileWarning(Shape):
    """Guess, change or omission in a caption file."""

    code: WarningCode = Field(description="Stable name of the warning, for programs.")
    message: str = Field(description="Message for people, in English.")
    line: int | None = Field(
        description="The line of the file, counted from 1; null for the whole file."
    )


class SavedCaptions(CaptionRecord):
    """Captions that were saved, and how their file was read."""

    charset: str = Field(description="The character encoding of the file, as it was read.")
    suggested_shift_seconds: float | None = Field(
        description="If all cues begin after the end of the video, a `shiftSeconds` that moves "
        "them into it."
    )
    warnings: list[FileWarning] = Field(
        description=f"Guesses, changes and omissions; at most {MAX_WARNINGS}."
    )


class PresentCaptions(CaptionRecord):
    """Captions with their text, as WebVTT."""

    text: str = Field(description="The captions as WebVTT.")


class CaptionList(Shape):
    """Captions of a video, the default ones first."""

    captions: list[CaptionRecord] = Field(description="The captions, without their text.")


class CaptionsConflict(Problem):
    """Problem details with the recorded version, whose ETag the response has."""

    present: PresentCaptions = Field(description="The recorded captions.")


class TrackQuery(ClosedShape):
    """Options of captions in the address."""

    label: Label | None = None
    # Parameters of an address are text, so this is no `StrictBool`.
    is_default: bool | None = Field(None, description="Whether players show them by default.")
    charset: (
        Annotated[
            Text,
            Field(
                max_length=40,
                description="The character encoding of the file, such as windows-1251. Without it, "
                "it is detected, with the language as a hint, or refused if that is uncertain.",
            ),
            reject_if(_charset_fault),
        ]
        | None
    ) = None
    shift_seconds: float = Field(
        0.0,
        ge=-MAX_SHIFT_S,
        le=MAX_SHIFT_S,
        allow_inf_nan=False,
        description="Seconds by which all cues are shown later; earlier if negative.",
    )


class NewTrackQuery(TrackQuery):
    """Options of new captions."""

    language: Text = Field(description="BCP 47, such as en or pt-BR.")


class CaptionFile(RootModel[str]):
    """WebVTT, SubRip, SBV or TTML file."""

    # Generators of clients know files by this format.
    model_config = ConfigDict(json_schema_extra={"format": "binary"})


class WebVtt(RootModel[str]):
    """WebVTT."""

    model_config = ConfigDict(title="CaptionText")


class CaptionsPatch(ClosedShape):
    """Changes of captions other than their text; missing members stay unchanged."""

    label: Label | None = None
    is_default: Default | None = None


@blueprint.get(CAPTIONS)
@policy(Policy.WATCH, headers=("ETag",))
@document_response(CaptionList)
async def list_captions(id: str) -> Response:
    """List the captions of a video, with those that its file contained."""
    video = await read_video(id)
    rows = await captions.list_captions(video.id)
    listed = CaptionList(captions=[CaptionRecord(**_caption_columns(row)) for row in rows])
    return await conditional_response(listed.model_dump_json())


@blueprint.post(CAPTIONS)
@policy(Policy.EDIT, body=FILE, headers=("Location", "ETag"))
@document_querystring(NewTrackQuery)
@document_request(CaptionFile)
@document_response(SavedCaptions, 201)
@document_response(Problem, 409)
async def add_captions(id: str) -> Response:
    """Add captions in another language: the body is a WebVTT, SubRip, SBV or TTML file.

    Encoding, times and markup are repaired as in players, and `warnings` lists each guess, change
    and omission. A file without readable cues is refused with the line. A video that isn't ready
    shows the captions once it is.
    """
    video = await read_video(id)
    query = validated_query(NewTrackQuery, request.args)
    language = captions.language_of(query.language)
    file, change = await _read_caption_body(video, language, query)
    row = await captions.add(video.id, language, change)
    return _saved_response(row, file, HTTPStatus.CREATED)


@blueprint.get(TRACK)
@policy(Policy.WATCH, content_types=(WEBVTT,), headers=("ETag",))
@document_response(WebVtt)
async def get_captions(id: str, language: str) -> Response:
    """Read captions as WebVTT. The ETag names their version.

    With permission to edit the video, they include cues that begin after its end.
    """
    video = await read_video(id)
    row = await captions.read_captions_of(video.id, language)
    text = captions.editable_text(row, video) if await may_edit(video) else row.text or ""
    return await webvtt_response(text, folder_name(row)).make_conditional(request)


@blueprint.put(TRACK)
@policy(Policy.EDIT, body=FILE, headers=("ETag",))
@document_headers(PatchHeaders)
@document_querystring(TrackQuery)
@document_request(CaptionFile)
@document_response(SavedCaptions)
@document_response(SavedCaptions, 201)
@document_response(CaptionsConflict, 412)
async def put_captions(id: str, language: str) -> Response:
    """Replace captions, or add them; the body is as for adding.

    With an ETag in If-Match, captions that someone else has changed since then are not replaced,
    unless the recorded captions equal the body.
    """
    video = await read_video(id)
    tag = captions.language_of(language)
    query = validated_query(TrackQuery, request.args)
    file, change = await _read_caption_body(video, tag, query)
    if "If-Match" in request.headers:
        row = await _change_captions(video, tag, change)
        return _saved_response(row, file, HTTPStatus.OK)
    row, is_new = await captions.put(video.id, tag, change)
    return _saved_response(row, file, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


@blueprint.patch(TRACK)
@policy(Policy.EDIT, headers=("ETag",))
@document_headers(PatchHeaders)
@document_request(CaptionsPatch)
@document_response(CaptionRecord)
@document_response(CaptionsConflict, 412)
async def patch_captions(id: str, language: str) -> Response:
    """Change the label of captions, or whether players show them by default."""
    video = await read_video(id)
    patch = validated(CaptionsPatch, await json_bodies.read_json())
    change = CaptionChange(label=patch.label, is_default=patch.is_default)
    row = await _change_captions(video, captions.known_as(language), change)
    return json_bodies.json_response(CaptionRecord(**_caption_columns(row)), etag=folder_name(row))


@blueprint.delete(TRACK)
@policy(Policy.EDIT)
@document_headers(PatchHeaders)
@document_response(CaptionsConflict, 412)
async def delete_captions(id: str, language: str) -> Response:
    """Delete captions. The uploaded file keeps its own."""
    video = await read_video(id)
    tag = captions.known_as(language)
    versions = json_bodies.named_versions()
    async with json_bodies.showing_present(partial(_present_captions, video, tag)):
        await captions.remove(video.id, tag, versions=versions)
    return Response(status=HTTPStatus.NO_CONTENT)


def webvtt_response(text: str, version: str) -> Response:
    """Return a response with WebVTT, and its version as the ETag."""
    answer = Response(text, content_type=f"{WEBVTT}; charset=utf-8")
    answer.headers["Cache-Control"] = "no-cache"
    answer.set_etag(version)
    return answer


async def _read_caption_body(
    video: Video, language: str, query: TrackQuery
) -> tuple[CaptionContents, CaptionChange]:
    """Read the caption file in the body of the current request; return it with its change."""
    if request.mimetype not in CONTENT_TYPES:
        raise NotCaptions
    body: bytes = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    charset = known_charset(query.charset or request.mimetype_params.get("charset", ""))
    if charset == "utf-8" and query.charset is None:
        # Many clients add this parameter to any text, whatever its encoding.
        charset = None
    options = ReadOptions(
        language=language,
        charset=charset,
        shift_s=query.shift_seconds,
        duration_s=video.duration_s,
    )
    file = await read_caption_file(body, options)
    text = await asyncio.to_thread(CaptionText.of, file.cues, film_s=video.duration_s)
    return file, CaptionChange(content=text, label=query.label, is_default=query.is_default)


async def read_caption_file(body: bytes, options: ReadOptions) -> CaptionContents:
    """Read a caption file. Raises `InvalidRequest`.

    Its pointer is `/charset` if the encoding is uncertain, and empty for other faults of the file.
    """
    try:
        return await captions.read_file(body, options)
    except EncodingUncertain as exc:
        remedy = Message(
            "%(fault)s Name it in the address: ?charset=%(encoding)s",
            fault=exc.message,
            encoding=exc.candidates[0],
        )
        raise InvalidRequest([FieldError("/charset", remedy)]) from exc
    except CaptionsUnreadable as exc:
        raise InvalidRequest([FieldError("", exc.message)]) from exc


async def _change_captions(video: Video, language: str, change: CaptionChange) -> Caption:
    """Change captions of the version that If-Match names; a conflict shows the recorded ones."""
    versions = json_bodies.named_versions()
    async with json_bodies.showing_present(partial(_present_captions, video, language)):
        return await captions.change(video.id, language, change, versions=versions)


async def _present_captions(video: Video, language: str) -> tuple[PresentCaptions, str]:
    """Return the recorded captions in a language, and their version."""
    row = await captions.read_captions_of(video.id, language)
    text = captions.editable_text(row, video)
    return PresentCaptions(**_caption_columns(row), text=text), folder_name(row)


def _saved_response(row: Caption, file: CaptionContents, status: HTTPStatus) -> Response:
    """Return the response with captions that were saved from a file."""
    record = SavedCaptions(
        **_caption_columns(row),
        charset=file.charset,
        suggested_shift_seconds=file.suggested_shift_s,
        warnings=[
            FileWarning(code=warning.code, message=warning.message, line=warning.line)
            for warning in file.warnings
        ],
    )
    answer = json_bodies.json_response(record, status, etag=folder_name(row))
    if status == HTTPStatus.CREATED:
        answer.headers["Location"] = url_for(
            "api_captions.get_captions", id=row.video_id, language=row.language
        )
    return answer


def _caption_columns(row: Caption) -> dict[str, Any]:
    names = [name for name in CaptionRecord.model_fields if name != "version"]
    return {**{name: getattr(row, name) for name in names}, "version": folder_name(row)}
