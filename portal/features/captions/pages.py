"""Captions in the workshop of a video, and the page where a track is edited."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

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
from portal.features.captions import service as captions
from portal.features.captions import transcription
from portal.features.captions.service import CaptionChange
from portal.features.workshop.pages import announces_save, redirect_to_panel, render_workshop
from portal.films.captions import CaptionText
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy
from portal.http.composition import web_context
from portal.http.languages import gettext
from portal.http.server.context import expect_player
from portal.http.server.limits import Body
from portal.http.stored_texts import track_label
from portal.http.videos import read_progress, read_video
from portal.locale.messages import Message
from portal.transcoding.captions.decoding import CHARSET_LABELS, known_charset
from portal.transcoding.captions.faults import (
    MAX_FILE_BYTES,
    CaptionsUnreadable,
    CaptionWarning,
    EncodingUncertain,
    WarningCode,
)
from portal.transcoding.captions.reading import MAX_SHIFT_S, CaptionContents, ReadOptions
from portal.transcoding.packaging.webvtt import Cue, clock

blueprint = Blueprint("captions", __name__)

# Id of the panel's element.
PANEL = "captions-panel"
# The form that checks a file sends it back as text (base64).
FILE = Body(max_file_bytes=MAX_FILE_BYTES * 4 // 3)
TOO_LARGE = Message("This file is larger than 4 MiB. Choose a smaller one.")
# Languages that the form suggests; any other one may be typed, by its name in any language.
LANGUAGES = (
    Message("English"),
    Message("Spanish"),
    Message("Portuguese"),
    Message("French"),
    Message("German"),
    Message("Italian"),
    Message("Dutch"),
    Message("Polish"),
    Message("Ukrainian"),
    Message("Russian"),
    Message("Turkish"),
    Message("Arabic"),
    Message("Hebrew"),
    Message("Hindi"),
    Message("Bengali"),
    Message("Indonesian"),
    Message("Vietnamese"),
    Message("Thai"),
    Message("Chinese"),
    Message("Japanese"),
    Message("Korean"),
    Message("Swedish"),
    Message("Greek"),
    Message("Czech"),
)
# Cues of a file that the form shows before it is saved.
MAX_SAMPLE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """Caption file with warnings, which the form shows before it is saved.

    `data` is the file in base64, which the form sends back. Encodings can be chosen, and shifts in
    seconds if one is suggested; `sample` has the time and text of the first cues.
    """

    data: str
    charset: str
    shift: str
    shifts: Sequence[tuple[str, str]]
    warnings: Sequence[CaptionWarning]
    sample: Sequence[tuple[str, str]]
    cue_count: int
    is_default: bool
    charsets: Sequence[tuple[str, str]] = tuple(CHARSET_LABELS.items())


@dataclass(frozen=True, slots=True)
class CaptionsForm:
    """Submitted values for new captions, by people or a machine, and their faults."""

    language: str = ""
    spoken: str = ""
    faults: Mapping[str, str] = field(default_factory=dict)
    check: FileCheck | None = None


@blueprint.get("/videos/<video_id>/captions/<language>/edit")
@policy(Policy.EDIT)
async def editor(video_id: str, language: str) -> str:
    """Render the page where captions are edited beside the player."""
    video = await read_video(video_id)
    row = await captions.read_captions_of(video.id, language)
    api = url_for("api_captions.get_captions", id=video.id, language=row.language)
    label = track_label(row.label, row.language)
    return await _editor(video, api, label=label, language=row.language)


@blueprint.get("/videos/<video_id>/chapters/edit")
@policy(Policy.EDIT)
async def chapters_editor(video_id: str) -> str:
    """Render the page where chapters are edited."""
    video = await read_video(video_id)
    return await _editor(video, url_for("api_chapters.get_chapters", id=video.id))


@blueprint.get("/videos/<video_id>/captions/panel")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def captions_panel(video_id: str) -> str:
    """Render the list of captions, which reloads itself while a machine writes some."""
    video = await read_video(video_id)
    return await render_template(
        "captions/_panel.html",
        video=video,
        transcoding=await read_progress(video.id),
        **await read_panel(video),
    )


@blueprint.post("/videos/<video_id>/captions")
@policy(Policy.EDIT, body=FILE)
async def add_captions(video_id: str) -> ResponseReturnValue:
    """Add captions, or show the form. Without a file, open the editor to write them."""
    video = await read_video(video_id)
    added = await _add(video)
    if isinstance(added, CaptionsForm):
        return await render_workshop(video, {"captions_sent": added}), 422 if added.faults else 200
    if not added.cue_count:
        return redirect(url_for("captions.editor", video_id=video.id, language=added.language), 303)
    return redirect_to_panel(video.id, PANEL, saved="captions")


@blueprint.post("/videos/<video_id>/captions/transcription")
@policy(Policy.EDIT)
async def transcribe(video_id: str) -> ResponseReturnValue:
    """Request automatic captions, or show the form with its faults."""
    video = await read_video(video_id)
    spoken = (await request.form).get("spoken", "").strip()
    try:
        language = _language(spoken) if spoken else None
        await transcription.request(video.id, language)
    except InvalidRequest as exc:
        form = CaptionsForm(spoken=spoken, faults={"spoken": exc.by_field["language"]})
    except Conflict as exc:
        form = CaptionsForm(spoken=spoken, faults={"spoken": exc.detail})
    else:
        return redirect_to_panel(video.id, PANEL)
    return await render_workshop(video, {"captions_sent": form}), 422


@blueprint.post("/videos/<video_id>/captions/<language>/shown")
@policy(Policy.EDIT)
async def show_captions(video_id: str, language: str) -> ResponseReturnValue:
    """Show captions by default, or no longer."""
    video = await read_video(video_id)
    with suppress(CaptionsNotFound):
        track = await captions.find_captions(video.id, language)
        change = CaptionChange(is_default=not track.is_default)
        await captions.change(video.id, track.language, change, versions=None)
    return redirect_to_panel(video.id, PANEL)


@blueprint.post("/videos/<video_id>/captions/<language>/remove")
@policy(Policy.EDIT)
async def remove_captions(video_id: str, language: str) -> ResponseReturnValue:
    """Delete captions, whatever their version. Missing ones are no fault."""
    video = await read_video(video_id)
    with suppress(CaptionsNotFound):
        await captions.remove(video.id, language, versions=None)
    return redirect_to_panel(video.id, PANEL)


@blueprint.post("/videos/<video_id>/captions/transcription/cancel")
@policy(Policy.EDIT)
async def cancel_transcription(video_id: str) -> ResponseReturnValue:
    """Cancel machine captions. Finished ones are no fault."""
    video = await read_video(video_id)
    with suppress(TranscriptionNotFound):
        await transcription.cancel(video.id)
    return redirect_to_panel(video.id, PANEL)


async def _editor(video: Video, api: str, *, label: str = "", language: str = "") -> str:
    """Render the editor of captions, or of chapters if there is no label."""
    expect_player(request.scope)
    return await render_template(
        "captions/page.html",
        video=video,
        transcoding=await read_progress(video.id),
        may_edit=True,
        api=api,
        label=label,
        language=language,
    )


async def _add(video: Video) -> Caption | CaptionsForm:
    """Add the captions of the form.

    Returns the captions, or the form with its faults or with a file to check.
    """
    try:
        form = await request.form
        file = (await request.files).get("file")
    except RequestEntityTooLarge:
        return CaptionsForm(faults={"file": TOO_LARGE})
    named = form.get("language", "").strip()
    check = None
    try:
        # Reads in a thread, because Quart keeps larger files on disk.
        data = await asyncio.to_thread(file.read) if file else _decode_file(form.get("data", ""))
        language = _language(named)
        cues: Sequence[Cue] = ()
        if data:
            contents, check = await _read_sent(data, language, form, video)
            is_plain = not check.warnings and "step" not in form
            is_confirmed = form.get("step") == "save" and form.get("charset") == check.charset
            if not is_plain and not is_confirmed:
                return CaptionsForm(named, check=check)
            cues = contents.cues
        text = await asyncio.to_thread(CaptionText.of, cues, film_s=video.duration_s)
        change = CaptionChange(content=text, is_default="isDefault" in form)
        return await captions.add(video.id, language, change)
    except CaptionsUnreadable as exc:
        faults = {"file": exc.message}
    except InvalidRequest as exc:
        faults = {name or "file": words for name, words in exc.by_field.items()}
    except CaptionsExist:
        words = gettext("There are captions in this language. Edit or delete those first.")
        faults = {"language": words}
    except TooManyCaptions as exc:
        faults = {"language": exc.detail}
    is_checked = "data" in form
    return CaptionsForm(named, faults=faults, check=check if is_checked else None)


def _decode_file(text: str) -> bytes:
    """Decode a file that the form sent back. Raises `CaptionsUnreadable`."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        words = Message("The file did not come back whole. Choose it again.")
        raise CaptionsUnreadable(words) from None


async def _read_sent(
    data: bytes, language: str, form: Mapping[str, str], video: Video
) -> tuple[CaptionContents, FileCheck]:
    """Read a file with the form's options, or as detected. Raises `CaptionsUnreadable`."""
    shift_s = _shift_s(form.get("shift", ""))
    chosen = ReadOptions(
        language=language,
        charset=known_charset(form.get("charset", "")),
        shift_s=shift_s,
        duration_s=video.duration_s,
    )
    warnings: list[CaptionWarning] = []
    try:
        contents = await captions.read_file(data, chosen)
    except EncodingUncertain as exc:
        likely = replace(chosen, charset=exc.candidates[0])
        contents = await captions.read_file(data, likely)
        warnings.append(CaptionWarning(WarningCode.ENCODING_DETECTED, exc.message))
    except CaptionsUnreadable as exc:
        if chosen.charset is None:
            raise
        # The file has no captions in the encoding that was chosen.
        contents, check = await _read_sent(data, language, {**form, "charset": ""}, video)
        warning = CaptionWarning(WarningCode.ENCODING_DETECTED, exc.message)
        return contents, replace(check, warnings=(warning, *check.warnings))
    offered_s = shift_s or contents.suggested_shift_s or 0.0
    time = clock(abs(offered_s))
    words = (
        gettext("Shift all cues %(time)s earlier", time=time)
        if offered_s < 0
        else gettext("Shift all cues %(time)s later", time=time)
    )
    shifts = [(f"{offered_s:g}", words), ("0", gettext("Keep the times of the file"))]
    check = FileCheck(
        data=b64encode(data).decode(),
        charset=contents.charset,
        shift=f"{shift_s if 'shift' in form else offered_s:g}",
        shifts=shifts if offered_s else (),
        warnings=(*warnings, *contents.warnings),
        sample=[(clock(cue.start_s), cue.plain_text) for cue in contents.cues[:MAX_SAMPLE]],
        cue_count=len(contents.cues),
        is_default="isDefault" in form,
    )
    return contents, check


def _shift_s(text: str) -> float:
    """Return the shift that the form chooses; 0 for anything else."""
    try:
        shift_s = float(text)
    except ValueError:
        return 0.0
    return shift_s if abs(shift_s) <= MAX_SHIFT_S else 0.0


async def read_panel(video: Video) -> dict[str, object]:
    """Return the values of the panel, with an empty form."""
    return {
        "captions_sent": CaptionsForm(),
        "is_captions_saved": announces_save("captions"),
        "languages": LANGUAGES,
        "can_transcribe": web_context().config.captions_model is not None,
        "transcription": await transcription.read(video.id),
    }


def _language(named: str) -> str:
    """Return the tag of a language, which is named by its tag or in any language."""
    try:
        return captions.language_of(named)
    except InvalidRequest:
        try:
            return captions.language_of(find(named).to_tag())
        except LookupError:
            words = Message("There is no such language. Give its name or its tag, like pt-BR.")
            raise InvalidRequest([FieldError("/language", words)]) from None
