"""The captions of a video on its workshop's page, and the page where one of them is edited."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from langcodes import find
from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.exceptions import RequestEntityTooLarge

from portal.database.models import Caption, Video
from portal.errors import (
    CaptionsExist,
    CaptionsNotFound,
    Conflict,
    FieldError,
    InvalidRequest,
    TooManyCaptions,
    TranscriptionNotFound,
)
from portal.processing.captions import CaptionText
from portal.transcoding.captions.faults import CaptionsUnreadable
from portal.transcoding.captions.reading import ReadOptions
from portal.videos import captions, transcription
from portal.videos.captions import CaptionChange
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.server.context import expect_player
from portal.web.videos import read_progress, read_video

blueprint = Blueprint("captions", __name__)

TOO_LARGE = "This file is larger than 4 MiB. Send captions as SubRip or WebVTT."
# What the form offers; any other may be typed.
LANGUAGES = (
    *("English", "Spanish", "Portuguese", "French", "German", "Italian", "Dutch", "Polish"),
    *("Ukrainian", "Russian", "Turkish", "Arabic", "Hebrew", "Hindi", "Bengali", "Indonesian"),
    *("Vietnamese", "Thai", "Chinese", "Japanese", "Korean", "Swedish", "Greek", "Czech"),
)


@dataclass(frozen=True, slots=True)
class CaptionsForm:
    """What was sent for new captions, by people or a machine, and what is wrong with it."""

    language: str = ""
    spoken: str = ""
    faults: Mapping[str, str] = field(default_factory=dict)


@blueprint.get("/videos/<video_id>/captions/<language>/edit")
@policy(Policy.EDIT)
async def editor(video_id: str, language: str) -> str:
    """The page where captions are edited beside the player."""
    found = await read_video(video_id)
    row = await captions.read_captions_of(found.id, language)
    api = url_for("api_captions.get_captions", id=found.id, language=row.language)
    return await _editor(found, api, label=row.label, language=row.language)


@blueprint.get("/videos/<video_id>/chapters/edit")
@policy(Policy.EDIT)
async def chapters_editor(video_id: str) -> str:
    """The page where chapters are edited, as captions are."""
    found = await read_video(video_id)
    return await _editor(found, url_for("api_captions.get_chapters", id=found.id))


@blueprint.get("/videos/<video_id>/captions/panel")
@policy(Policy.EDIT)
@fragment()
async def captions_panel(video_id: str) -> str:
    """The fragment with the captions; it asks for itself while a machine writes some."""
    found = await read_video(video_id)
    shown = {"video": found, "transcoding": await read_progress(found.id), **await panel(found)}
    return await render_template("videos/_captions.html", **shown)


@blueprint.post("/videos/<video_id>/captions/<language>/shown")
@policy(Policy.EDIT)
async def show_captions(video_id: str, language: str) -> ResponseReturnValue:
    """Show captions by default, or no longer."""
    found, queue = await read_video(video_id), web_context().queue
    with suppress(CaptionsNotFound):
        track = await captions.find_captions(found.id, language)
        change = CaptionChange(is_default=not track.is_default)
        await captions.change(found.id, track.language, change, version=None, queue=queue)
    return _workshop(found)


@blueprint.post("/videos/<video_id>/captions/<language>/remove")
@policy(Policy.EDIT)
async def remove_captions(video_id: str, language: str) -> ResponseReturnValue:
    """Delete captions, whatever their version. Those that are gone already are no fault."""
    found = await read_video(video_id)
    with suppress(CaptionsNotFound):
        await captions.remove(found.id, language, version=None, queue=web_context().queue)
    return _workshop(found)


@blueprint.post("/videos/<video_id>/captions/transcription/cancel")
@policy(Policy.EDIT)
async def cancel_transcription(video_id: str) -> ResponseReturnValue:
    """Give up captions that a machine writes. Those that are done are no fault."""
    found = await read_video(video_id)
    with suppress(TranscriptionNotFound):
        await transcription.cancel(found.id, queue=web_context().queue)
    return _workshop(found)


def _workshop(found: Video) -> ResponseReturnValue:
    address = url_for("workshop.workshop", video_id=found.id, _anchor="captions-panel")
    return redirect(address, 303)


async def _editor(found: Video, api: str, *, label: str = "", language: str = "") -> str:
    """The page that edits what is at this address of the API; without a label chapters."""
    expect_player(request.scope)
    return await render_template(
        "videos/captions.html",
        video=found,
        transcoding=await read_progress(found.id),
        may_edit=True,
        api=api,
        label=label,
        language=language,
    )


async def add(found: Video) -> Caption | CaptionsForm:
    """Add the captions of the form; the track, or the form with its faults."""
    try:
        sent = await request.form
        file = (await request.files).get("file")
    except RequestEntityTooLarge:
        return CaptionsForm(faults={"file": TOO_LARGE})
    named = sent.get("language", "").strip()
    # It lies on disk, by what the framework does with larger files.
    data = await asyncio.to_thread(file.read) if file else b""
    try:
        language = _language(named)
        options = ReadOptions(language=language, duration_s=found.duration_s)
        cues = (await captions.read_file(data, options)).cues if data else ()
        text = await asyncio.to_thread(CaptionText.of, cues)
        change = CaptionChange(content=text, is_default="isDefault" in sent)
        return await captions.add(found.id, language, change, queue=web_context().queue)
    except CaptionsUnreadable as exc:
        return CaptionsForm(named, faults={"file": str(exc)})
    except InvalidRequest as exc:
        return CaptionsForm(
            named, faults={name or "file": words for name, words in exc.by_field.items()}
        )
    except CaptionsExist:
        words = "There are captions in this language. Edit those, or delete them first."
        return CaptionsForm(named, faults={"language": words})
    except TooManyCaptions as exc:
        return CaptionsForm(named, faults={"language": exc.detail})


async def panel(found: Video, sent: CaptionsForm | None = None) -> dict[str, object]:
    """What the workshop's panel of captions shows, with what was sent to it."""
    can_transcribe = web_context().config.captions_model is not None
    return {
        "captions_sent": sent or CaptionsForm(),
        "languages": LANGUAGES,
        "can_transcribe": can_transcribe,
        "transcription": await transcription.read(found.id) if can_transcribe else None,
    }


async def transcribe(found: Video) -> CaptionsForm | None:
    """Have a machine write captions, as the form asks; the form with its faults, if it has any."""
    spoken = (await request.form).get("spoken", "").strip()
    try:
        language = _language(spoken) if spoken else None
        await transcription.request(found.id, language, queue=web_context().queue)
    except InvalidRequest as exc:
        return CaptionsForm(spoken=spoken, faults={"spoken": exc.by_field["language"]})
    except Conflict as exc:
        return CaptionsForm(spoken=spoken, faults={"spoken": exc.detail})
    return None


def _language(named: str) -> str:
    """The tag of a language that is named by its tag, or in English."""
    try:
        return captions.language_of(named)
    except InvalidRequest:
        try:
            return captions.language_of(find(named).to_tag())
        except LookupError:
            words = "There is no such language. Give its name in English, or its tag, like pt-BR."
            raise InvalidRequest([FieldError("/language", words)]) from None
