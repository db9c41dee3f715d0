"""Workshop of a video: the page on which editors change it, part by part.

With scripts the parts fetch separate fragments (`editing`, `visibility`, `posters`). Without, their
forms are sent to addresses of this module, which redirect to the page or return it.
"""

from contextlib import suppress
from typing import Any
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.models import PosterRequest, Video, VideoStatus
from portal.errors import ReplacementChanged, ReplacementNotFound, TooManyPlaybackLinks
from portal.features.captions import pages as captions
from portal.features.cuts import service as cuts
from portal.features.deletion import service as deletion
from portal.features.editing import pages as editing
from portal.features.editing import visibility
from portal.features.posters import pages as posters
from portal.features.replacement import service as replacement
from portal.features.replacement.service import VersionState
from portal.http.addresses import link_addresses
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, may_edit, policy, principal
from portal.http.composition import web_context
from portal.http.server.context import expect_player
from portal.http.videos import read_progress, read_video
from portal.text import whole_number
from portal.videos import playback_links

blueprint = Blueprint("workshop", __name__)

# Lifetimes of playback links, by seconds.
LIVES = {
    3600: "1 hour",
    24 * 3600: "1 day",
    7 * 24 * 3600: "7 days",
    30 * 24 * 3600: "30 days",
    365 * 24 * 3600: "1 year",
}
# Playback links on the page; the API lists all.
MAX_SHOWN_LINKS = 20
# Other parts of the page show the new file on these events.
REPLACED = {
    "HX-Trigger": '{"video-changed": {"target": "body"}, "file-replaced": {"target": "body"}}'
}


@blueprint.get("/videos/<video_id>/edit")
@policy(Policy.EDIT)
async def workshop(video_id: str) -> str:
    """Show the page."""
    return await _render_workshop(await read_video(video_id))


@blueprint.get("/videos/<video_id>/facts")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def facts(video_id: str) -> str:
    """Render the fragment with facts about a video, which the page fetches after changes."""
    video = await read_video(video_id)
    transcoding = await read_progress(video.id)
    return await render_template(
        "videos/_facts.html",
        video=video,
        transcoding=transcoding,
        film_s=await _read_whole_length_s(video),
    )


@blueprint.post("/videos/<video_id>/edit")
@policy(Policy.EDIT)
async def save_details(video_id: str) -> ResponseReturnValue:
    """Save the details, and show the result."""
    form = await editing.save(video_id)
    if not form.is_saved:
        return await _render_workshop(form.video, details=form), form.status
    return _redirect_to_part(form.video.id, "save-button", saved="details", kept=form.kept)


@blueprint.post("/videos/<video_id>/access")
@policy(Policy.EDIT)
async def save_access(video_id: str) -> ResponseReturnValue:
    """Save the audience, and show the result."""
    form = await visibility.save(video_id)
    if not form.is_saved:
        return await _render_workshop(form.video, access=form), form.status
    return _redirect_to_part(form.video.id, "access", saved="access", kept=form.kept)


@blueprint.post("/videos/<video_id>/poster")
@policy(Policy.EDIT)
async def replace_poster(video_id: str) -> ResponseReturnValue:
    """Request a frame as the poster, and show its state."""
    requested = await posters.request_frame(video_id)
    return _redirect_to_part(requested.video_id, "poster", watched=requested.number)


@blueprint.post("/videos/<video_id>/poster/picture")
@policy(Policy.EDIT, body=posters.PICTURE)
async def send_picture(video_id: str) -> ResponseReturnValue:
    """Request an uploaded picture as the poster, and show its state."""
    requested = await posters.request_picture(video_id)
    if isinstance(requested, PosterRequest):
        return _redirect_to_part(requested.video_id, "poster", watched=requested.number)
    video = await read_video(video_id)
    return await _render_workshop(
        video, poster=await posters.poster_view(video, fault=requested)
    ), 422


@blueprint.post("/videos/<video_id>/captions")
@policy(Policy.EDIT, body=captions.FILE)
async def add_captions(video_id: str) -> ResponseReturnValue:
    """Add captions, or show the form. Without a file, open the editor to write them."""
    video = await read_video(video_id)
    added = await captions.add(video)
    if isinstance(added, captions.CaptionsForm):
        status = 422 if added.faults else 200
        return await _render_workshop(video, **await captions.panel(video, added)), status
    if not added.cue_count:
        editor = url_for("captions.editor", video_id=video.id, language=added.language)
        return redirect(editor, 303)
    return _redirect_to_part(video.id, "captions-panel", saved="captions")


@blueprint.post("/videos/<video_id>/captions/transcription")
@policy(Policy.EDIT)
async def transcribe(video_id: str) -> ResponseReturnValue:
    """Request automatic captions, or show the form with its faults."""
    video = await read_video(video_id)
    if form := await captions.transcribe(video):
        return await _render_workshop(video, **await captions.panel(video, form)), 422
    return _redirect_to_part(video.id, "captions-panel")


@blueprint.post("/videos/<video_id>/links")
@policy(Policy.EDIT)
async def make_link(video_id: str) -> ResponseReturnValue:
    """Create a playback link and show it, or show the form with its faults."""
    video = await read_video(video_id)
    fields = await request.form
    life_s = whole_number(fields.get("life", ""), max_digits=9)
    if life_s not in LIVES:
        return await _render_workshop(
            video, link_fault=f"Choose one of {', '.join(LIVES.values())}."
        ), 422
    try:
        link = await playback_links.make(
            video.id, life_s=life_s, by=await principal(), label=fields.get("label", "")
        )
    except TooManyPlaybackLinks as exc:
        return await _render_workshop(video, link_fault=exc.detail), exc.status
    return _redirect_to_part(video.id, "links", link=link.id)


@blueprint.post("/videos/<video_id>/links/<uuid:link_id>/revoke")
@policy(Policy.EDIT)
async def revoke_link(video_id: str, link_id: UUID) -> ResponseReturnValue:
    """Revoke a playback link, unless it is revoked already."""
    video = await read_video(video_id)
    await playback_links.revoke(link_id, video_id=video.id)
    return _redirect_to_part(video.id, "links")


@blueprint.get("/videos/<video_id>/replacement")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def replacement_panel(video_id: str) -> ResponseReturnValue:
    """Render the section that replaces the file, which polls itself during the processing."""
    video = await read_video(video_id)
    panel = await _replacement_values(video)
    text = await render_template(
        "videos/_replacement.html",
        video=video,
        transcoding=await read_progress(video.id),
        **await captions.panel(video),
        **panel,
    )
    current = panel["replacement"]
    is_live = current is not None and current.state is VersionState.LIVE
    return (text, REPLACED) if is_live else text


@blueprint.post("/videos/<video_id>/replacement/withdraw")
@policy(Policy.EDIT)
async def withdraw_replacement(video_id: str) -> ResponseReturnValue:
    """Cancel or dismiss the replacement of the file, or go back, and show the result."""
    web = web_context()
    video = await read_video(video_id)
    shown = (await request.form).get("withdrawn", "")
    # The form may be outdated, or sent twice.
    with suppress(ReplacementChanged, ReplacementNotFound):
        await replacement.withdraw(video.id, storage=web.storage, hooks=web.hooks, expected={shown})
    return _redirect_to_part(video.id, "replacement")


async def _replacement_values(video: Video) -> dict[str, Any]:
    """Return the values of the section that replaces the file."""
    return {
        "replacement": await replacement.read(video.id),
        "max_source_bytes": web_context().config.max_source_bytes,
    }


async def _render_workshop(video: Video, **changed: object) -> str:
    """Render the page with changed forms; the other forms have the recorded values."""
    expect_player(request.scope)
    links = await _list_shareable_links(video)
    saved = request.args.get("saved")
    kept = request.args.getlist("kept")
    values = {
        "details": editing.recorded_form(video, kept=kept, is_saved=saved == "details"),
        "access": await visibility.recorded_form(video, kept=kept, is_saved=saved == "access"),
        "poster": await posters.poster_view(video, watched=posters.watched_poster()),
        **await captions.panel(video),
        "is_captions_saved": saved == "captions",
        **await _replacement_values(video),
        "link_fault": "",
        **changed,
    }
    shown_links = (links or [])[:MAX_SHOWN_LINKS]
    return await render_template(
        "videos/workshop.html",
        video=video,
        video_id=video.id,
        transcoding=await read_progress(video.id),
        film_s=await _read_whole_length_s(video),
        may_edit=True,
        is_file_shared=await deletion.is_file_shared(video),
        categories=await web_context().categories.names(),
        has_links=links is not None,
        links=[(link, await link_addresses(link)) for link in shown_links],
        more_links=len(links or []) - len(shown_links),
        lives=LIVES.items(),
        opened_link=request.args.get("link", ""),
        **values,
    )


async def _read_whole_length_s(video: Video) -> float | None:
    """Return the length of the whole film of a cut video; None for a whole one."""
    return (await cuts.read(video.id)).film_s if video.keep else None


async def _list_shareable_links(video: Video) -> list[playback_links.PlaybackLink] | None:
    """Return the playback links of a ready video; None for people who can't edit it.

    None also on a portal without accounts, where everyone may watch everything.
    """
    may_share = (await principal()).is_signed_in and await may_edit(video)
    if video.status is not VideoStatus.READY or not may_share:
        return None
    return await playback_links.list_links(video.id)


def _redirect_to_part(video_id: UUID, part: str, **values: Any) -> ResponseReturnValue:
    address = url_for("workshop.workshop", video_id=video_id, **values, _anchor=part)
    return redirect(address, 303)
