"""Who may see a video: the form in its workshop."""

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.models import Video
from portal.database.states import Visibility
from portal.errors import AccessChanged, InvalidRequest
from portal.videos import publishing
from portal.videos.visibility import save_access
from portal.web.access import Policy, policy, principal
from portal.web.api.access_shapes import AccessRecord
from portal.web.api.json_bodies import validated
from portal.web.context import web_context
from portal.web.fragments import fragment
from portal.web.pages.access_views import (
    AccessForm,
    access_form,
    recorded_access_form,
    typed_access,
)
from portal.web.pages.workshop import saved_fragment, workshop_page
from portal.web.server.response_cache import forget_shared

blueprint = Blueprint("access", __name__)


@blueprint.post("/videos/<video_id>/access")
@policy(Policy.EDIT)
async def save(video_id: str) -> ResponseReturnValue:
    """Save, and show the workshop, where the form says what has come of it."""
    found, form, status = await _save(video_id)
    if form.is_saved:
        workshop = url_for("workshop.workshop", video_id=found.id, saved="access", _anchor="access")
        return redirect(workshop, 303)
    return await workshop_page(found, access=form), status


@blueprint.get("/videos/<video_id>/access/panel")
@policy(Policy.EDIT)
@fragment()
async def panel(video_id: str) -> str:
    """The form with what is recorded."""
    form = await recorded_access_form(await publishing.get_video(video_id))
    return await render_template("videos/_access.html", access=form)


@blueprint.post("/videos/<video_id>/access/panel")
@policy(Policy.EDIT)
@fragment()
async def save_panel(video_id: str) -> ResponseReturnValue:
    """Save, and show the fragment, which says what has come of it."""
    found, form, status = await _save(video_id)
    if form.is_saved:
        return await saved_fragment(found, "videos/_access.html", access=form)
    return await render_template("videos/_access.html", access=form), status


async def _save(video_id: str) -> tuple[Video, AccessForm, int]:
    """The video, the form as it is then, and a status."""
    found = await publishing.get_video(video_id)
    who, config, sent = await principal(), web_context().config, await request.form
    typed, version = typed_access(sent), sent.get("version", "")
    try:
        wanted = validated(AccessRecord, typed).value()
        found = await save_access(found.id, wanted, version=version, queue=web_context().queue)
    except InvalidRequest as exc:
        again = access_form(found, who, config, typed=typed, version=version, errors=exc.errors)
        return found, again, exc.status
    except AccessChanged as exc:
        newest = await publishing.get_video(video_id)
        return newest, access_form(newest, who, config, typed=typed, is_conflict=True), exc.status
    forget_shared(request.scope, is_less_seen=found.visibility is not Visibility.PUBLIC)
    return found, access_form(found, who, config, is_saved=True), 200
