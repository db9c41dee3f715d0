"""Editing a video's metadata in its page: the summary, the form that takes its place, and both
without scripts as a page of their own.
"""

from quart import Blueprint, make_response, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.models import Video
from portal.errors import InvalidRequest, MetadataChanged
from portal.text import whole_number
from portal.videos import editing, publishing
from portal.web.api.json_bodies import validated
from portal.web.api.metadata_shapes import References, VideoMetadata
from portal.web.context import web_context
from portal.web.pages.editing_views import EditForm, edit_form, typed_metadata
from portal.web.pages.video_views import summary_view

blueprint = Blueprint("editing", __name__)

# What else of the page shows metadata fetches itself again.
SAVED = '{"metadata-saved": {"target": "body"}}'


@blueprint.get("/videos/<video_id>/edit")
async def edit(video_id: str) -> str:
    """The form as a page of its own."""
    found = await publishing.get_video(video_id)
    form = edit_form(found, await web_context().categories.names())
    return await render_template("videos/edit.html", form=form, title=found.title)


@blueprint.post("/videos/<video_id>/edit")
async def save(video_id: str) -> ResponseReturnValue:
    """Save, and show the video's page; or the form again, which says what is wrong."""
    found, form, status = await _save(video_id)
    if form is None:
        return redirect(url_for("pages.video", video_id=found.id), 303)
    return await render_template("videos/edit.html", form=form, title=found.title), status


@blueprint.get("/videos/<video_id>/summary")
async def summary(video_id: str) -> str:
    """The fragment with a video's title and description."""
    return await _summary(await publishing.get_video(video_id))


@blueprint.get("/videos/<video_id>/summary/form")
async def summary_form(video_id: str) -> str:
    """The form, as the fragment that takes the summary's place."""
    found = await publishing.get_video(video_id)
    form = edit_form(found, await web_context().categories.names())
    return await render_template("videos/_form.html", form=form)


@blueprint.post("/videos/<video_id>/summary")
async def save_summary(video_id: str) -> ResponseReturnValue:
    """Save, and show the summary again; or the form, which says what is wrong."""
    found, form, status = await _save(video_id)
    if form is not None:
        return await render_template("videos/_form.html", form=form), status
    response = await make_response(await _summary(found))
    response.headers["HX-Trigger"] = SAVED
    return response


async def _save(video_id: str) -> tuple[Video, EditForm | None, int]:
    """The video; if nothing was saved the form, which says why; and a status."""
    found = await publishing.get_video(video_id)
    categories = await web_context().categories.names()
    sent = await request.form
    typed = typed_metadata(sent)
    # The version that the form was made from; 0, which never is the newest, for none.
    version = whole_number(sent.get("version", ""), max_digits=9) or 0
    references = References(category_ids=categories.keys())
    try:
        metadata = validated(VideoMetadata, typed, context=references)
        return await editing.save_metadata(found.id, metadata.value(), version=version), None, 200
    except InvalidRequest as exc:
        form = edit_form(found, categories, typed=typed, version=version, errors=exc.errors)
        return found, form, exc.status
    except MetadataChanged:
        newest = await publishing.get_video(video_id)
        return newest, edit_form(newest, categories, typed=typed, is_conflict=True), 409


async def _summary(found: Video) -> str:
    return await render_template("videos/_summary.html", summary=summary_view(found))
