"""The workshop of a video: one page for who may edit it, whose parts save by themselves.

Forms are sent to addresses of their own (`editing`, `access`, `posters`, `playback_link_forms`);
without scripts these answer with this page again.
"""

from typing import Any

from quart import Blueprint, render_template, request

from portal.database.models import Video
from portal.text import whole_number
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages.access_views import AccessForm, recorded_access_form
from portal.web.pages.editing_views import EditForm, recorded_form
from portal.web.pages.playback_link_views import LinksView, links_view
from portal.web.pages.poster_views import PosterView, recorded_poster
from portal.web.pages.status_views import remaining_view, status_view
from portal.web.pages.video_views import facts_view, summary_view
from portal.web.server.context import expect_player
from portal.web.videos import read_progress, read_video

blueprint = Blueprint("workshop", __name__)

# What else of the page tells of changes fetches itself again.
CHANGED = {"HX-Trigger": '{"video-changed": {"target": "body"}}'}


@blueprint.get("/videos/<video_id>/edit")
@policy(Policy.EDIT)
async def workshop(video_id: str) -> str:
    """Everything that can be changed of a video, and all that is known of it."""
    return await workshop_page(await read_video(video_id))


@blueprint.get("/videos/<video_id>/facts")
@policy(Policy.EDIT)
@fragment()
async def facts(video_id: str) -> str:
    """The fragment with what is known of a video; a page fetches it once that has changed."""
    found = await read_video(video_id)
    view = facts_view(found, await read_progress(found.id), config=web_context().config)
    return await render_template("videos/_facts.html", facts=view)


async def workshop_page(
    found: Video,
    *,
    form: EditForm | None = None,
    access: AccessForm | None = None,
    links: LinksView | None = None,
    poster: PosterView | None = None,
) -> str:
    """The page, with those of its forms that have something to say; the others as recorded."""
    expect_player(request.scope)
    web = web_context()
    progress = await read_progress(found.id)
    sent = request.args
    saved, kept = sent.get("saved", ""), sent.getlist("kept")
    return await render_template(
        "videos/workshop.html",
        video_id=str(found.id),
        summary=summary_view(found, await web.categories.names()),
        status=status_view(found, progress, config=web.config),
        remaining=remaining_view(found, progress),
        poster=poster or await recorded_poster(found, watched=watched_poster()),
        facts=facts_view(found, progress, config=web.config),
        form=form or await recorded_form(found, kept=kept, is_saved=saved == "details"),
        access=access or await recorded_access_form(found, kept=kept, is_saved=saved == "access"),
        links=links or await links_view(found, opened=sent.get("link", "")),
        may_edit=True,
    )


def watched_poster() -> int:
    """The number of the request for a poster whose end this page announces; 0 for none."""
    return whole_number(request.args.get("watched", ""), max_digits=9) or 0


async def saved_fragment(found: Video, part: str, **form: Any) -> tuple[str, dict[str, str]]:
    """The template of a form that was saved, and with it the head of the page."""
    summary = summary_view(found, await web_context().categories.names())
    text = await render_template("videos/_saved.html", part=part, summary=summary, **form)
    return text, CHANGED
