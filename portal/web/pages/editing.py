"""Saving what is said of a video: the form in its workshop."""

from dataclasses import dataclass

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.models import Video
from portal.errors import InvalidRequest
from portal.videos import editing
from portal.web.api.json_bodies import validated
from portal.web.api.metadata import VideoMetadata
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages.editing_views import (
    EditForm,
    base_metadata,
    conflict_form,
    edit_form,
    read_metadata,
    recorded_form,
    typed_metadata,
)
from portal.web.pages.workshop import saved_fragment, workshop_page
from portal.web.videos import read_video

blueprint = Blueprint("editing", __name__)


@blueprint.post("/videos/<video_id>/edit")
@policy(Policy.EDIT)
async def save(video_id: str) -> ResponseReturnValue:
    """Save, and show the workshop, where the form says what has come of it."""
    saved = await _save(video_id)
    if isinstance(saved, _NotSaved):
        return await workshop_page(saved.video, form=saved.form), saved.status
    workshop = url_for(
        "workshop.workshop",
        video_id=saved.video.id,
        saved="details",
        kept=saved.kept,
        _anchor="save-button",
    )
    return redirect(workshop, 303)


@blueprint.post("/videos/<video_id>/edit/details")
@policy(Policy.EDIT)
@fragment()
async def save_details(video_id: str) -> ResponseReturnValue:
    """Save, and show the form, which says what has come of it; with it the head of its page."""
    saved = await _save(video_id)
    if isinstance(saved, _NotSaved):
        return await render_template("videos/_form.html", form=saved.form), saved.status
    form = await recorded_form(saved.video, kept=saved.kept, is_saved=True)
    return await saved_fragment(saved.video, "videos/_form.html", form=form)


@dataclass(frozen=True, slots=True)
class _Saved:
    """The video as it is now, and the fields of which someone else's change was kept."""

    video: Video
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _NotSaved:
    """The video, the form that says why, and the status it is sent with."""

    video: Video
    form: EditForm
    status: int


async def _save(video_id: str) -> _Saved | _NotSaved:
    found = await read_video(video_id)
    categories = await web_context().categories.names()
    sent = await request.form
    base, typed = read_metadata(sent, prefix="base."), typed_metadata(sent)
    try:
        mine = validated(VideoMetadata, typed, context=categories).value()
    except InvalidRequest as exc:
        form = edit_form(found.id, categories, base=base, typed=typed, errors=exc.errors)
        return _NotSaved(found, form, exc.status)
    former = base_metadata(base)
    video, merged = await editing.merge_metadata(found.id, mine, base=former)
    if not merged.conflicts:
        return _Saved(video, merged.kept)
    theirs = editing.recorded(video)
    form = conflict_form(video.id, categories, base=former, theirs=theirs, merged=merged)
    return _NotSaved(video, form, 409)
