"""The JSON API of chapters, which are WebVTT, too."""

from typing import Annotated, Any

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.errors import ChaptersChanged, FieldError, InvalidRequest
from portal.videos import captions, chapters
from portal.videos.chapters import Chapter, Chapters, ChapterSource
from portal.web.api import json_bodies
from portal.web.api.captions import WEBVTT, webvtt_answer
from portal.web.auth import Policy, policy
from portal.web.videos import read_video

blueprint = Blueprint("api_chapters", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Captions"])


class ChapterRecord(json_bodies.Shape):
    """A part of a video, up to the next one."""

    start_seconds: float = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    title: Annotated[json_bodies.Text, Field(min_length=1, max_length=chapters.MAX_TITLE_LENGTH)]


class ChapterList(json_bodies.Shape):
    """All chapters of a video, from its beginning."""

    chapters: list[ChapterRecord] = Field(
        max_length=chapters.MAX_CHAPTERS,
        description="The first begins at 0. Without any, those of the description (three times or "
        "more, from 0:00) count, or of the file.",
    )


class RecordedChapters(ChapterList):
    """The same, and where they come from."""

    source: ChapterSource


class PresentChapters(RecordedChapters):
    """The same as WebVTT, too."""

    text: str
    version: str


class ChaptersConflict(json_bodies.Problem):
    """Problem details with what is recorded; its version is the answer's ETag."""

    present: PresentChapters


@blueprint.get("/videos/<id>/chapters")
@policy(Policy.WATCH)
@document_response(RecordedChapters)
async def get_chapters(id: str) -> Response:
    """Read the chapters of a video; as WebVTT if that is what Accept names."""
    video = await read_video(id)
    found = await chapters.read_chapters(video.id)
    if request.accept_mimetypes.best_match([json_bodies.JSON, WEBVTT]) == WEBVTT:
        answer = webvtt_answer(found.webvtt(video.duration_s), found.version)
    else:
        answer = _chapters_answer(found, cache_control="no-cache")
    answer.headers["Vary"] = "Accept"
    return await answer.make_conditional(request)


@blueprint.put("/videos/<id>/chapters")
@policy(Policy.EDIT)
@document_headers(json_bodies.PatchHeaders)
@document_request(ChapterList)
@document_response(RecordedChapters)
@document_response(ChaptersConflict, 412)
async def put_chapters(id: str) -> Response:
    """Save the chapters of a video, as JSON or as WebVTT.

    With their ETag in If-Match, nothing is written when there are others by now, unless what is
    sent is recorded already.
    """
    video = await read_video(id)
    read = await chapters.read_chapters(video.id)
    version = json_bodies.version_read(read.version, is_needed=False)
    wanted = await _sent_chapters()
    if fault := chapters.chapters_fault(wanted):
        raise InvalidRequest([FieldError("/chapters", fault)])
    try:
        saved = await chapters.save_chapters(video.id, wanted, version=version)
    except ChaptersChanged as exc:
        present = await chapters.read_chapters(video.id)
        text = present.webvtt(video.duration_s)
        told = PresentChapters(**_chapter_columns(present), text=text, version=present.version)
        exc.tell_present(told.model_dump(mode="json"), version=present.version)
        raise
    return _chapters_answer(saved)


async def _sent_chapters() -> list[Chapter]:
    """The chapters of the current request's body."""
    if request.mimetype == WEBVTT:
        body: bytes = await request.get_data(cache=True, as_text=False, parse_form_data=False)
        cues = [] if body.strip() == b"WEBVTT" else await captions.read_cues(body)
        return [Chapter(cue.start_s, " ".join(cue.plain_text.split())) for cue in cues]
    sent = json_bodies.validated(ChapterList, await json_bodies.read_json())
    return [Chapter(it.start_seconds, it.title) for it in sent.chapters]


def _chapters_answer(found: Chapters, *, cache_control: str = "") -> Response:
    record = RecordedChapters(**_chapter_columns(found))
    return json_bodies.json_response(record, cache_control=cache_control, etag=found.version)


def _chapter_columns(found: Chapters) -> dict[str, Any]:
    records = [ChapterRecord(start_seconds=it.start_s, title=it.title) for it in found.chapters]
    return {"chapters": records, "source": found.source}
