"""My videos: a table for who publishes, of what they may change.

Of an account those that it has published, for admins and owners also everyone's; on a portal
without accounts all there are. It is searched, filtered and paged as the library is.
"""

from dataclasses import replace

from quart import Blueprint, render_template, request

from portal.accounts.permissions import Action
from portal.web.access import Policy, policy, principal
from portal.web.context import web_context
from portal.web.pages.library import asked_page, asked_query, work_on
from portal.web.pages.library_views import EVERYONES, TABLE, TABLE_SORT_WORDS, library_view
from portal.web.pages.table_views import VISIBILITY_WORDS, columns, video_row
from portal.web.pages.told import MAX_SELECTED, told_view

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
    work = await work_on(page.videos)
    whose = EVERYONES if is_everyones and who.account_id else ""
    return await render_template(
        "library/table.html",
        name="My videos" if who.account_id else "Manage videos",
        library=library_view(
            query, page, category_names=names, place=place, endpoint=TABLE, whose=whose
        ),
        columns=columns(query, whose=whose),
        rows=[video_row(it, work.get(it.id), seen_by=who) for it in page.videos],
        categories=names,
        visibilities=VISIBILITY_WORDS.items() if who.account_id else [],
        may_delete=who.may(Action.DELETE, owner_id=who.account_id),
        told=told_view(args),
    )
