"""My videos: a table for who publishes, of what they may change.

Of an account those that it has published, for admins and owners also everyone's; on a portal
without accounts all there are. It is searched, filtered and paged as the library is.
"""

from dataclasses import replace

from quart import Blueprint, render_template, request

from portal.accounts.permissions import Action
from portal.database.models import Visibility
from portal.videos.library_queries import ORDERS, Sort
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.pages.bulk_actions import MAX_SELECTED, TABLE, toast_of
from portal.web.pages.library import (
    SORT_WORDS,
    Listing,
    asked_listing,
    asked_query,
    polled_videos,
    seen_videos,
)

blueprint = Blueprint("table", __name__)

# In the address: what everyone has published, for who may change all of it.
EVERYONES = "all"
TABLE_SORT_WORDS = SORT_WORDS | {
    Sort.TITLE_LAST: "Title Z–A",  # noqa: RUF001 - a dash
    Sort.SHORTEST: "Shortest first",
    Sort.LARGEST: "Largest first",
    Sort.SMALLEST: "Smallest first",
    Sort.STATE: "Failed first",
    Sort.STATE_LAST: "Ready first",
    Sort.VISIBILITY: "Private first",
    Sort.VISIBILITY_LAST: "Unlisted first",
}
# By the name of a column: its words, the order that choosing it gives, and the other way round.
COLUMNS = {
    "title": ("Title", Sort.TITLE, Sort.TITLE_LAST),
    "state": ("Status", Sort.STATE, Sort.STATE_LAST),
    "visibility": ("Visibility", Sort.VISIBILITY, Sort.VISIBILITY_LAST),
    "length": ("Length", Sort.LONGEST, Sort.SHORTEST),
    "size": ("Size", Sort.LARGEST, Sort.SMALLEST),
    "date": ("Published", Sort.NEWEST, Sort.OLDEST),
}


@blueprint.get("/videos")
@policy(Policy.PUBLISH)
async def index() -> str:
    """The table; scripts ask for it, too, and take the results out of it."""
    who, names = await principal(), await web_context().categories.names()
    sees_others = who.sees_all and who.account_id is not None
    whose = EVERYONES if sees_others and request.args.get("whose") == EVERYONES else ""
    query = replace(
        await asked_query(TABLE_SORT_WORDS), is_own=who.account_id is not None and not whose
    )
    listing = await asked_listing(
        query, endpoint=TABLE, sorts=TABLE_SORT_WORDS, limit=MAX_SELECTED, whose=whose
    )
    return await render_template(
        "library/table.html",
        name="My videos" if who.account_id else "Manage videos",
        listing=listing,
        owners=[("", "My videos"), (EVERYONES, "All videos")] if sees_others else [],
        columns=_columns(listing),
        categories=names,
        visibilities=[(it, it.capitalize()) for it in Visibility] if who.account_id else [],
        may_delete=who.may(Action.DELETE, owner_id=who.account_id),
        toast=toast_of(request.args),
        **await seen_videos(listing.page.videos),
    )


@blueprint.get("/videos/progress")
@policy(Policy.PUBLISH)
async def progress() -> str:
    """The rows of videos that were being processed, and the element that asks for them again."""
    rows = await seen_videos(await polled_videos(limit=MAX_SELECTED))
    return await render_template("library/_progress.html", is_news=True, is_table=True, **rows)


def _columns(listing: Listing) -> list[dict[str, str]]:
    """The heads of the columns: `url` sorts by it; `sorted` is its `aria-sort`, if it is."""
    present, columns = listing.query.sort, []
    direction = "descending" if ORDERS[present].descending else "ascending"
    for name, (words, first, other) in COLUMNS.items():
        wanted = replace(listing.query, sort=other if present is first else first)
        is_sorted = direction if present in (first, other) else ""
        url = replace(listing, query=wanted).url()
        columns.append({"name": name, "words": words, "url": url, "sorted": is_sorted})
    return columns
