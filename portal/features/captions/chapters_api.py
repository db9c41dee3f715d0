"""JSON API of the chapters of a video."""

from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import (
    document_headers,
    document_request,
    document_response,
    tag_blueprint,
)

from portal.database.models import Video
from portal.errors import FieldError, InvalidRequest
from portal.features.captions.api import WEBVTT, read_caption_file, webvtt_response
from portal.http import json_bodies
from portal.http.auth import Policy, policy
from portal.http.schemas.base import ClosedShape, PatchHeaders, Problem, Text
from portal.http.schemas.validation import validated
from portal.http.server.limits import Body
from portal.http.videos import read_video
from portal.locale.messages import Message
from portal.transcoding.captions.faults import MAX_FILE_BYTES
from portal.transcoding.captions.reading import ReadOptions
from portal.transcoding.planning.chapters import Chapter
from portal.videos import chapters
from portal.videos.chapters import Chapters, ChapterSource

blueprint = Blueprint("api_chapters", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Captions"])

CHAPTERS = Body(content_types=(json_bodies.JSON, WEBVTT), max_file_bytes=MAX_FILE_BYTES)


class ChapterRecord(ClosedShape):
    """Chapter, which lasts until the next one."""

    start_seconds: float = Field(
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        strict=True,
        description="Start of the chapter in the video.",
    )
    title: Annotated[Text, Field(min_length=1, max_length=chapters.MAX_TITLE_LENGTH)] = Field(
        description="Title of the chapter."
    )


class ChapterList(ClosedShape):
    """Chapters of a video, from its beginning."""

    elsewhere: ClassVar = {
        "source": Message("Leave it out: chapters that you send become `saved` ones.")
    }

    chapters: list[ChapterRecord] = Field(
        max_length=chapters.MAX_CHAPTERS,
        description="The first begins at 0. An empty list restores the chapters of the description "
        "(at least three times, from 0:00) or of the file.",
    )


class RecordedChapters(ChapterList):
    """Chapters of a video, and their source."""

    source: ChapterSource = Field(description="Where the chapters come from.")


class PresentChapters(RecordedChapters):
    """Chapters of a video, also as WebVTT."""

    text: str = Field(description="The chapters as WebVTT.")
    version: str = Field(description="The value of the ETag.")


class ChaptersConflict(Problem):
    """Problem details with the recorded version, whose ETag the response has."""

    present: PresentChapters = Field(description="The recorded chapters.")


@blueprint.get("/videos/<id>/chapters")
@policy(Policy.WATCH, content_types=(json_bodies.JSON, WEBVTT), headers=("ETag",))
@document_response(RecordedChapters)
async def get_chapters(id: str) -> Response:
    """Read the chapters of a video, as JSON or, if Accept names it, as WebVTT."""
    video = await read_video(id)
    recorded = await chapters.read_chapters(video.id)
    if request.accept_mimetypes.best_match([json_bodies.JSON, WEBVTT]) == WEBVTT:
        answer = webvtt_response(recorded.webvtt(video.duration_s), recorded.version)
    else:
        answer = _chapters_response(recorded, cache_control="no-cache")
    answer.headers["Vary"] = "Accept"
    return await answer.make_conditional(request)


@blueprint.put("/videos/<id>/chapters")
@policy(Policy.EDIT, body=CHAPTERS, headers=("ETag",))
@document_headers(PatchHeaders)
@document_request(ChapterList)
@document_response(RecordedChapters)
@document_response(ChaptersConflict, 412)
async def put_chapters(id: str) -> Response:
    """Save the chapters of a video, as JSON or as WebVTT.

    With an ETag in If-Match, chapters that someone else has changed since then are not replaced,
    unless the recorded chapters equal the body.
    """
    video = await read_video(id)
    versions = json_bodies.named_versions()
    submitted = await _read_chapters_body()
    if fault := chapters.chapters_fault(submitted):
        raise InvalidRequest([FieldError("/chapters", fault)])
    async with json_bodies.showing_present(partial(_present_chapters, video)):
        saved = await chapters.save_chapters(video.id, submitted, versions=versions)
    return _chapters_response(saved)


async def _read_chapters_body() -> list[Chapter]:
    """Return the chapters in the body of the current request."""
    if request.mimetype == WEBVTT:
        body: bytes = await request.get_data(cache=True, as_text=False, parse_form_data=False)
        if body.strip() == b"WEBVTT":
            return []
        file = await read_caption_file(body, ReadOptions())
        return [Chapter(cue.start_s, " ".join(cue.plain_text.split())) for cue in file.cues]
    records = validated(ChapterList, await json_bodies.read_json()).chapters
    return [Chapter(record.start_seconds, record.title) for record in records]


def _chapters_response(recorded: Chapters, *, cache_control: str = "") -> Response:
    record = RecordedChapters(**_chapter_columns(recorded))
    return json_bodies.json_response(record, cache_control=cache_control, etag=recorded.version)


def _chapter_columns(recorded: Chapters) -> dict[str, Any]:
    records = [
        ChapterRecord(start_seconds=chapter.start_s, title=chapter.title)
        for chapter in recorded.chapters
    ]
    return {"chapters": records, "source": recorded.source}


async def _present_chapters(video: Video) -> tuple[PresentChapters, str]:
    """Return the recorded chapters of a video, and their version."""
    present = await chapters.read_chapters(video.id)
    text = present.webvtt(video.duration_s)
    columns = _chapter_columns(present)
    return PresentChapters(**columns, text=text, version=present.version), present.version
