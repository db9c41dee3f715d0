"""My videos: a table for who publishes, of what they may change.

Of an account those that it has published, for admins and owners also everyone's; on a portal
without accounts all there are. It is searched, filtered and paged as the library is.
"""

from dataclasses import replace

from quart import Blueprint, render_template, request

from portal.accounts.permissions import Action, Principal
from portal.database.models import Video
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.pages.library import asked_page, asked_query, polled_videos, work_on
from portal.web.pages.library_views import (
    EVERYONES,
    TABLE,
    TABLE_SORT_WORDS,
    ProgressView,
    library_view,
    progress_view,
)
from portal.web.pages.table_views import VISIBILITY_WORDS, VideoRow, columns, video_row
from portal.web.pages.toasts import MAX_SELECTED, toast_of

blueprint = Blueprint("table", __name__)


@blueprint.get("/videos")
@policy(Policy.PUBLISH)
async def index() -> str:
    """The table; scripts ask for it, too, and take the results out of it."""
    who, names, args = await principal(), await web_context().categories.names(), request.args
    is_everyones = who.sees_all and args.get("whose") == EVERYONES
    query = replace(
        asked_query(args, names, seen_by=who, sorts=TABLE_SORT_WORDS),
        is_own=who.account_id is not None and not is_everyones,
    )
    page, place = await asked_page(query, args, limit=MAX_SELECTED)
    rows = await _rows(page.videos, seen_by=who)
    whose = EVERYONES if is_everyones and who.account_id else ""
    return await render_template(
        "library/table.html",
        name="My videos" if who.account_id else "Manage videos",
        library=library_view(
            query, page, category_names=names, place=place, endpoint=TABLE, whose=whose
        ),
        columns=columns(query, whose=whose),
        rows=rows,
        progress=_progress_view(rows, is_news=False),
        categories=names,
        visibilities=VISIBILITY_WORDS.items() if who.account_id else [],
        may_delete=who.may(Action.DELETE, owner_id=who.account_id),
        toast=toast_of(args),
    )


@blueprint.get("/videos/progress")
@policy(Policy.PUBLISH)
async def progress() -> str:
    """The rows of videos that were being processed, and the element that asks for them again."""
    who = await principal()
    videos = await polled_videos(request.args, seen_by=who, limit=MAX_SELECTED)
    rows = await _rows(videos, seen_by=who)
    poll = _progress_view(rows, is_news=True)
    return await render_template("library/_progress.html", rows=rows, progress=poll)


async def _rows(videos: list[Video], *, seen_by: Principal) -> list[VideoRow]:
    work = await work_on(videos)
    return [video_row(it, work.get(it.id), seen_by=seen_by) for it in videos]


def _progress_view(rows: list[VideoRow], *, is_news: bool) -> ProgressView:
    return progress_view([it.card for it in rows], is_news=is_news, endpoint="table.progress")
