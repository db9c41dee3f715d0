"""The workshop of a video: one page for who may edit it, whose parts save by themselves.

With scripts these fetch fragments of their own (`editing`, `visibility`, `posters`); without, their
forms are sent to addresses here, which lead to this page or answer with it.
"""

from typing import Any
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.models import PosterRequest, Video, VideoStatus
from portal.errors import TooManyPlaybackLinks
from portal.text import whole_number
from portal.videos import playback_links
from portal.web.auth import Policy, may_edit, policy, principal
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages import captions, editing, posters, visibility
from portal.web.playback import link_addresses
from portal.web.server.context import expect_player
from portal.web.videos import read_progress, read_video

blueprint = Blueprint("workshop", __name__)

# How long a playback link may be made to work, by seconds, in words.
LIVES = {
    3600: "1 hour",
    24 * 3600: "1 day",
    7 * 24 * 3600: "7 days",
    30 * 24 * 3600: "30 days",
    365 * 24 * 3600: "1 year",
}
# The page lists so many playback links; the API lists all.
MAX_SHOWN_LINKS = 20


@blueprint.get("/videos/<video_id>/edit")
@policy(Policy.EDIT)
async def workshop(video_id: str) -> str:
    """Everything that can be changed of a video, and all that is known of it."""
    return await _page(await read_video(video_id))


@blueprint.get("/videos/<video_id>/facts")
@policy(Policy.EDIT)
@fragment()
async def facts(video_id: str) -> str:
    """The fragment with what is known of a video; a page fetches it once that has changed."""
    found = await read_video(video_id)
    transcoding = await read_progress(found.id)
    return await render_template("videos/_facts.html", video=found, transcoding=transcoding)


@blueprint.post("/videos/<video_id>/edit")
@policy(Policy.EDIT)
async def save_details(video_id: str) -> ResponseReturnValue:
    """Save the details, and show what has come of it."""
    form = await editing.save(video_id)
    if not form.is_saved:
        return await _page(form.video, details=form), form.status
    return _redirect(form.video.id, "save-button", saved="details", kept=form.kept)


@blueprint.post("/videos/<video_id>/access")
@policy(Policy.EDIT)
async def save_access(video_id: str) -> ResponseReturnValue:
    """Save who may see the video, and show what has come of it."""
    form = await visibility.save(video_id)
    if not form.is_saved:
        return await _page(form.video, access=form), form.status
    return _redirect(form.video.id, "access", saved="access", kept=form.kept)


@blueprint.post("/videos/<video_id>/poster")
@policy(Policy.EDIT)
async def replace_poster(video_id: str) -> ResponseReturnValue:
    """Ask for the frame at a time as the poster, and show how that stands."""
    asked = await posters.request_frame(video_id)
    return _redirect(asked.video_id, "poster", watched=asked.number)


@blueprint.post("/videos/<video_id>/poster/picture")
@policy(Policy.EDIT, body=posters.PICTURE)
async def send_picture(video_id: str) -> ResponseReturnValue:
    """Ask for the picture that is sent as the poster, and show how that stands."""
    asked = await posters.request_picture(video_id)
    if isinstance(asked, PosterRequest):
        return _redirect(asked.video_id, "poster", watched=asked.number)
    found = await read_video(video_id)
    return await _page(found, poster=await posters.poster_view(found, fault=asked)), 422


@blueprint.post("/videos/<video_id>/captions")
@policy(Policy.EDIT, body=captions.FILE)
async def add_captions(video_id: str) -> ResponseReturnValue:
    """Add captions, or answer with the form; without a file they are written in the editor."""
    found = await read_video(video_id)
    added = await captions.add(found)
    if isinstance(added, captions.CaptionsForm):
        status = 422 if added.faults else 200
        return await _page(found, **await captions.panel(found, added)), status
    if not added.cue_count:
        editor = url_for("captions.editor", video_id=found.id, language=added.language)
        return redirect(editor, 303)
    return _redirect(found.id, "captions-panel")


@blueprint.post("/videos/<video_id>/captions/transcription")
@policy(Policy.EDIT)
async def transcribe(video_id: str) -> ResponseReturnValue:
    """Have a machine write captions, or say at the form why not."""
    found = await read_video(video_id)
    if sent := await captions.transcribe(found):
        return await _page(found, **await captions.panel(found, sent)), 422
    return _redirect(found.id, "captions-panel")


@blueprint.post("/videos/<video_id>/links")
@policy(Policy.EDIT)
async def make_link(video_id: str) -> ResponseReturnValue:
    """Make a playback link, and show it; or say at the form why not."""
    found = await read_video(video_id)
    sent = await request.form
    life_s, label = whole_number(sent.get("life", ""), max_digits=9), sent.get("label", "")
    if life_s not in LIVES:
        return await _page(found, link_fault=f"Choose one of {', '.join(LIVES.values())}."), 422
    try:
        by = await principal()
        link = await playback_links.make(found.id, life_s=life_s, by=by, label=label)
    except TooManyPlaybackLinks as exc:
        return await _page(found, link_fault=exc.detail), exc.status
    return _redirect(found.id, "links", link=link.id)


@blueprint.post("/videos/<video_id>/links/<uuid:link_id>/revoke")
@policy(Policy.EDIT)
async def revoke_link(video_id: str, link_id: UUID) -> ResponseReturnValue:
    """Make a playback link void. One that is void already is no fault."""
    found = await read_video(video_id)
    await playback_links.revoke(link_id, video_id=found.id)
    return _redirect(found.id, "links")


async def _page(found: Video, **changed: object) -> str:
    """The page, with those of its forms that have something to say; the others as recorded."""
    expect_player(request.scope)
    sent, links = request.args, await _links(found)
    saved, kept = sent.get("saved"), sent.getlist("kept")
    given = {
        "details": editing.recorded_form(found, kept=kept, is_saved=saved == "details"),
        "access": await visibility.recorded_form(found, kept=kept, is_saved=saved == "access"),
        "poster": await posters.poster_view(found, watched=posters.watched_poster()),
        **await captions.panel(found),
        "link_fault": "",
        **changed,
    }
    shown_links = (links or [])[:MAX_SHOWN_LINKS]
    return await render_template(
        "videos/workshop.html",
        video=found,
        video_id=found.id,
        transcoding=await read_progress(found.id),
        may_edit=True,
        categories=await web_context().categories.names(),
        has_links=links is not None,
        links=[(it, await link_addresses(it)) for it in shown_links],
        more_links=len(links or []) - len(shown_links),
        lives=LIVES.items(),
        opened_link=sent.get("link", ""),
        **given,
    )


async def _links(found: Video) -> list[playback_links.PlaybackLink] | None:
    """The links of a ready video, for who is signed in and may edit it; None for others.

    On a portal without accounts everyone may watch everything.
    """
    is_for_them = (await principal()).is_signed_in and await may_edit(found)
    if found.status is not VideoStatus.READY or not is_for_them:
        return None
    return await playback_links.list_links(found.id)


def _redirect(video_id: UUID, part: str, **values: Any) -> ResponseReturnValue:
    address = url_for("workshop.workshop", video_id=video_id, **values, _anchor=part)
    return redirect(address, 303)
