"""Page on which a series is edited, and the panel of series in the workshop of a video.

Forms work without scripts. With scripts, those of the list return the list alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts.directory import Holder, fetch_holders
from portal.accounts.permissions import EVERYONES, Action, Principal, Right, visible_to
from portal.database.models import Video
from portal.errors import InvalidRequest, SeriesChanged
from portal.features.editing.pages import Body
from portal.features.editing.visibility import (
    body_of,
    read_access,
    visibility_choices,
    with_added,
    with_password,
    without_removed,
)
from portal.features.library.bulk_actions import change_selected
from portal.features.series import service
from portal.features.series.api import SeriesDetails
from portal.features.series.service import Series, SeriesSummary
from portal.features.workshop.pages import redirect_to_panel, render_workshop
from portal.http.auth import Policy, policy, principal
from portal.http.composition import web_context
from portal.http.schemas.access import AudienceRecord
from portal.http.schemas.validation import validated
from portal.http.videos import read_video
from portal.text import whole_number
from portal.videos.visibility import access_of, audience_with

blueprint = Blueprint("series_editing", __name__)

MAX_INDEX_DIGITS = 3


class EditedSeries(SeriesDetails, AudienceRecord):
    """Details and audience of a series, as its form sends them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesForm:
    """Form for details and audience of a series, with `typed` values in the API's shape.

    `version` is that of the values that the form was made from. `added` are the names that were
    typed to share the series with.
    """

    version: str
    typed: Body
    choices: Sequence[tuple[str, str, str]]
    holders: Sequence[Holder]
    is_open_portal: bool
    has_password: bool
    faults: Mapping[str, str] = field(default_factory=dict)
    conflicts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    has_conflict: bool = False
    added: str = ""
    added_right: str = Right.WATCH

    @property
    def rights(self) -> dict[UUID, str]:
        """Return the typed rights by account or group."""
        return {UUID(share["id"]): share["right"] for share in self.typed["shares"]}


@blueprint.app_template_global()
async def series_to_edit() -> list[SeriesSummary]:
    """Return the newest series that the viewer may edit."""
    return await service.series_to_edit(await principal())


@blueprint.get("/series/<series_id>/edit")
@policy(Policy.PUBLISH)
async def editor(series_id: str) -> str:
    """Show the page."""
    editor = await principal()
    series = await service.read_editable(series_id, editor)
    return await _render_editor(series, await _recorded_form(series, editor), editor)


@blueprint.post("/series/<series_id>/edit")
@policy(Policy.PUBLISH)
async def save(series_id: str) -> ResponseReturnValue:
    """Save details and audience, or show the form with its faults."""
    editor = await principal()
    series = await service.read_editable(series_id, editor)
    fields = await request.form
    typed = read_access(fields) | {
        "title": fields.get("title", ""),
        "description": fields.get("description", "").replace("\r\n", "\n"),
    }
    # Members of the access to a video alone.
    del typed["embedOrigins"], typed["hasPublicPage"]
    typed, holders = await without_removed(typed)
    form = replace(
        await _recorded_form(series, editor),
        typed=typed,
        holders=holders,
        added=fields.get("added", ""),
        added_right=fields.get("addedRight", ""),
    )
    try:
        record = validated(EditedSeries, with_password(await with_added(typed, fields), fields))
        access = await record.value()
        changed = await service.edit(
            series.id,
            lambda recorded: replace(
                recorded,
                title=record.title,
                description=record.description,
                audience=audience_with(access, recorded.audience.owner_id),
            ),
            versions=[fields.get("version", "")],
            version_of=lambda recorded: recorded.details_version,
            password=await record.password_change(web_context().passwords),
        )
    except InvalidRequest as exc:
        form = replace(form, faults=exc.by_field, version=fields.get("version", ""))
        return await _render_editor(series, form, editor), exc.status
    except SeriesChanged:
        form = replace(form, has_conflict=True)
        return await _render_editor(series, form, editor), 409
    if not editor.may(Action.EDIT, on=changed.audience):
        return redirect(url_for("series.index"), 303)
    return redirect(url_for("series_editing.editor", series_id=series.id, saved=1), 303)


@blueprint.post("/series/<series_id>/videos/<uuid:member_id>")
@policy(Policy.PUBLISH)
async def move(series_id: str, member_id: UUID) -> ResponseReturnValue:
    """Move a video of a series to an index among those that the person sees.

    Scripts send the index as `to`, and the buttons as `up` or `down`.
    """
    editor = await principal()
    series = await service.read_editable(series_id, editor)
    fields = await request.form
    typed = next((fields[name] for name in ("to", "up", "down") if name in fields), "")
    index = whole_number(typed, max_digits=MAX_INDEX_DIGITS)
    if index is not None:
        await service.move_video(series.id, member_id, index, by=editor)
    return await _list_response(series, editor, moved_id=member_id, is_down="down" in fields)


@blueprint.post("/series/<series_id>/videos/<uuid:member_id>/remove")
@policy(Policy.PUBLISH)
async def remove(series_id: str, member_id: UUID) -> ResponseReturnValue:
    """Remove a video from a series. `at` is `workshop` if the workshop of the video asks."""
    editor = await principal()
    series = await service.read_editable(series_id, editor)
    await service.remove_video(series.id, member_id, by=editor)
    if request.args.get("at") == "workshop":
        return redirect_to_panel(member_id, "series")
    return await _list_response(series, editor)


@blueprint.get("/series/<series_id>/delete")
@policy(Policy.PUBLISH)
async def confirm_deletion(series_id: str) -> str:
    """Ask to confirm the deletion of a series; with scripts its page does so itself."""
    series = await service.read_editable(series_id, await principal())
    return await render_template("series/delete.html", series=series)


@blueprint.post("/series/<series_id>/delete")
@policy(Policy.PUBLISH)
async def delete(series_id: str) -> ResponseReturnValue:
    """Delete a series, and show the others."""
    series = await service.read_editable(series_id, await principal())
    await service.remove(series.id, versions=None)
    return redirect(url_for("series.index"), 303)


@blueprint.post("/videos/<video_id>/series")
@policy(Policy.EDIT)
async def add_to_series(video_id: str) -> ResponseReturnValue:
    """Add a video to a series, and show the panel of its workshop."""
    video = await read_video(video_id)
    editor = await principal()
    series = await service.read_editable((await request.form).get("series", ""), editor)
    try:
        await service.add_videos(series.id, [video.id], by=editor)
    except InvalidRequest as exc:
        fault = exc.errors[-1].message
        return await render_workshop(video, {"series_fault": fault}), exc.status
    return redirect_to_panel(video.id, "series")


@blueprint.post("/series/selected")
@policy(Policy.PUBLISH)
async def add_selected() -> ResponseReturnValue:
    """Add the videos that are selected in the table to a series."""
    editor = await principal()
    fields = await request.form
    series = await service.read_editable(fields.get("series", ""), editor)
    return await change_selected(
        "series", fields, lambda video: service.add_videos(series.id, [video.id], by=editor)
    )


async def read_panel(video: Video) -> dict[str, object]:
    """Return the series of a video that the person may see, and others to add it to."""
    editor = await principal()
    listed = await service.series_of(video.id, editor)
    ids = {series.id for series in listed}
    return {
        "series_of_video": [
            (series, editor.may(Action.EDIT, on=series.audience)) for series in listed
        ],
        "series_choices": [
            series for series in await service.series_to_edit(editor) if series.id not in ids
        ],
        "series_fault": "",
    }


async def _recorded_form(series: Series, person: Principal) -> SeriesForm:
    access = access_of(series.audience)
    return SeriesForm(
        version=series.details_version,
        typed=body_of(access) | {"title": series.title, "description": series.description},
        choices=visibility_choices(person, series.audience.owner_id),
        holders=await fetch_holders([share.holder_id for share in access.shares]),
        is_open_portal=person == EVERYONES,
        has_password=access.unlock_id is not None,
    )


async def _render_editor(series: SeriesSummary, form: SeriesForm, person: Principal) -> str:
    return await render_template(
        "series/edit.html",
        series=series,
        form=form,
        videos=await service.fetch_videos_of(series.id, visible_to(person)),
        is_saved="saved" in request.args,
    )


async def _list_response(series: Series, editor: Principal, **values: Any) -> ResponseReturnValue:
    """Return the list of a series to scripts, or else redirect to its page."""
    if "HX-Request" not in request.headers:
        address = url_for("series_editing.editor", series_id=series.id)
        return redirect(f"{address}#series-videos", 303)
    videos = await service.fetch_videos_of(series.id, visible_to(editor))
    return await render_template(
        "series/_order.html", series=series, videos=videos, is_news=True, **values
    )
