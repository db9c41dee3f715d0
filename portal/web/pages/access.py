"""Who may see a video: the form in its workshop."""

from dataclasses import dataclass

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.models import Video
from portal.errors import InvalidRequest
from portal.videos.visibility import merge_access
from portal.web.api.json_bodies import validated
from portal.web.api.visibility import AccessRecord
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages.access_views import (
    AccessForm,
    access_conflict_form,
    access_form,
    base_access,
    read_access,
    recorded_access_form,
    typed_access,
)
from portal.web.pages.workshop import saved_fragment, workshop_page
from portal.web.videos import read_video

blueprint = Blueprint("access", __name__)


@blueprint.post("/videos/<video_id>/access")
@policy(Policy.EDIT)
async def save(video_id: str) -> ResponseReturnValue:
    """Save, and show the workshop, where the form says what has come of it."""
    sent = await _save(video_id)
    if not sent.form.is_saved:
        return await workshop_page(sent.video, access=sent.form), sent.status
    workshop = url_for(
        "workshop.workshop",
        video_id=sent.video.id,
        saved="access",
        kept=sent.kept,
        _anchor="access",
    )
    return redirect(workshop, 303)


@blueprint.get("/videos/<video_id>/access/panel")
@policy(Policy.EDIT)
@fragment()
async def panel(video_id: str) -> str:
    """The form with what is recorded."""
    form = await recorded_access_form(await read_video(video_id))
    return await render_template("videos/_access.html", access=form)


@blueprint.post("/videos/<video_id>/access/panel")
@policy(Policy.EDIT)
@fragment()
async def save_panel(video_id: str) -> ResponseReturnValue:
    """Save, and show the fragment, which says what has come of it."""
    sent = await _save(video_id)
    if sent.form.is_saved:
        return await saved_fragment(sent.video, "videos/_access.html", access=sent.form)
    return await render_template("videos/_access.html", access=sent.form), sent.status


@dataclass(frozen=True, slots=True)
class _Sent:
    """The video, the form as it is then, its status, and what it keeps of others' changes."""

    video: Video
    form: AccessForm
    status: int
    kept: tuple[str, ...] = ()


async def _save(video_id: str) -> _Sent:
    found = await read_video(video_id)
    who, web, sent = await principal(), web_context(), await request.form
    base, typed = read_access(sent, prefix="base."), typed_access(sent)
    try:
        mine = validated(AccessRecord, typed).value()
    except InvalidRequest as exc:
        again = access_form(found, who, web.config, base=base, typed=typed, errors=exc.errors)
        return _Sent(found, again, exc.status)
    video, merged = await merge_access(found.id, mine, base=base_access(base))
    if merged.conflicts:
        asking = access_conflict_form(video, who, web.config, base=base, merged=merged)
        return _Sent(video, asking, 409)
    saved = access_form(video, who, web.config, kept=merged.kept, is_saved=True)
    return _Sent(video, saved, 200, merged.kept)
