"""Workshop of a video: the page on which editors change it, panel by panel.

Features declare the panels. With scripts the panels fetch separate fragments. Without, their forms
are sent to routes of the features, which redirect to the page or return it with the form's faults.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.models import Video
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy
from portal.http.composition import web_context
from portal.http.server.context import expect_player
from portal.http.videos import read_progress, read_video

blueprint = Blueprint("workshop", __name__)


@blueprint.get("/videos/<video_id>/edit")
@policy(Policy.EDIT)
async def workshop(video_id: str) -> str:
    """Show the page."""
    return await render_workshop(await read_video(video_id))


@blueprint.get("/videos/<video_id>/facts")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def facts(video_id: str) -> str:
    """Render the fragment with facts about a video, which the page fetches after changes."""
    video = await read_video(video_id)
    return await render_template(
        "workshop/_facts.html", video=video, transcoding=await read_progress(video.id)
    )


async def render_workshop(video: Video, changed: Mapping[str, object] | None = None) -> str:
    """Render the page. `changed` replaces template values of panels, such as a form with faults."""
    expect_player(request.scope)
    values: dict[str, object] = {}
    for read_panel in web_context().panels:
        values.update(await read_panel(video))
    return await render_template(
        "workshop/page.html",
        video=video,
        video_id=video.id,
        transcoding=await read_progress(video.id),
        may_edit=True,
        **(values | dict(changed or {})),
    )


def announces_save(panel: str) -> bool:
    """Return whether the page announces that a panel was saved, as a redirect to it says."""
    return request.args.get("saved") == panel


def redirect_to_panel(video_id: UUID, panel: str, **arguments: Any) -> ResponseReturnValue:
    """Redirect to a panel of the page, by its HTML id. `arguments` are those of the query."""
    address = url_for("workshop.workshop", video_id=video_id, **arguments, _anchor=panel)
    return redirect(address, 303)
