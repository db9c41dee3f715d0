"""The library, every video as a card, and My videos, a table for who publishes.

Both are searched, filtered, sorted and paged by their address. What it asks for and cannot be had
is ignored: neither answers with an error because of a mistyped filter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quart import Blueprint, render_template, request, url_for

from portal.accounts.people import names_of
from portal.accounts.permissions import Action
from portal.database.models import Video, VideoStatus, Visibility
from portal.database.search import MAX_QUERY_LENGTH
from portal.text import shown
from portal.videos.library import COUNT_CAP, LibraryPage, read_work
from portal.videos.library_queries import ORDERS, Cursor, LibraryQuery, Sort
from portal.videos.reading import audience_of, fetch_videos, parse_video_id
from portal.videos.words import find_said
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.pages.bulk_actions import LIBRARY, MAX_SELECTED, TABLE, one_line, toast_of
from portal.web.server.limits import Rate
from portal.web.videos import find_videos

blueprint = Blueprint("library", __name__)

PAGE_SIZE = 24
MAX_TAG_LENGTH = 500
SORT_WORDS = {
    Sort.RELEVANCE: "Best match",
    Sort.NEWEST: "Newest first",
    Sort.OLDEST: "Oldest first",
    Sort.TITLE: "Title A–Z",  # noqa: RUF001 - a dash
    Sort.LONGEST: "Longest first",
}

# In the address: what everyone has published, for who may change all of it.
ALL_OWNERS = "all"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of videos as an address asks for it, as cards or in a table, and other addresses.

    `whose` is what the address of a table says of that. The query has the text that was searched
    for instead of the one that was `typed`.
    """

    endpoint: str
    query: LibraryQuery
    page: LibraryPage
    sorts: Mapping[Sort, str]
    whose: str = ""
    typed: str = ""
    after: Cursor | None = None
    before: Cursor | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not self.page.videos and self.page.is_first

    @property
    def count_words(self) -> str:
        """How much was found."""
        total = self.page.total
        if total > COUNT_CAP:
            return f"{COUNT_CAP:,}+ videos"
        return "1 video" if total == 1 else f"{total:,} videos" if total else "No videos"

    @property
    def filter_words(self) -> str:
        """For which text."""
        words = f"for “{shown(self.query.text)}”" if self.query.text else ""
        return f"{words}. No results for “{shown(self.typed)}”." if self.typed else words

    @property
    def default_sort(self) -> Sort:
        """The order that an address need not name."""
        return Sort.RELEVANCE if self.query.text else Sort.NEWEST

    @property
    def bulk_action_url(self) -> str:
        """Where what is done to videos on this page is sent; it leads back to the page."""
        return self.url(
            "bulk_actions.apply", at=self.endpoint, after=self.after or "", before=self.before or ""
        )

    @property
    def clear_url(self) -> str:
        """The whole of it, in the usual order."""
        return replace(self, query=LibraryQuery()).url()

    def url(self, endpoint: str = "", **changes: Any) -> str:
        """The shortest address of this query with these changes."""
        query = self.query
        named = {
            "q": query.text,
            "category": query.category_id,
            "status": query.status,
            "tag": query.tag,
            "sort": "" if query.sort is self.default_sort else query.sort,
            "whose": self.whose,
        } | changes
        present: dict[str, Any] = {name: str(value) for name, value in named.items() if value}
        return url_for(endpoint or self.endpoint, **present)


@blueprint.get("/")
@policy(Policy.WATCH, rate=Rate.LISTING)
async def index() -> str:
    """The library; scripts ask for it, too, and take the results out of it."""
    query = await _asked_query(SORT_WORDS)
    listing = await _asked_listing(query, endpoint=LIBRARY, sorts=SORT_WORDS, limit=PAGE_SIZE)
    return await render_template(
        "library/index.html",
        listing=listing,
        categories=await web_context().categories.names(),
        toast=toast_of(request.args),
        said=await find_said(listing.query.words, [it.id for it in listing.page.videos]),
        **await _cards(listing.page.videos),
    )


@blueprint.get("/library/progress")
@policy(Policy.WATCH)
async def progress() -> str:
    """The cards of videos that were being processed, and the element that asks for them again."""
    videos = await _polled_videos(limit=PAGE_SIZE)
    return await render_template("library/_progress.html", is_news=True, **await _cards(videos))


@blueprint.get("/videos")
@policy(Policy.PUBLISH)
async def table() -> str:
    """My videos: a table for who publishes, of what they may change.

    Of an account those that it has published, for admins and owners also everyone's; on a portal
    without accounts all there are.
    """
    who, names = await principal(), await web_context().categories.names()
    sees_others = who.sees_all and who.account_id is not None
    whose = ALL_OWNERS if sees_others and request.args.get("whose") == ALL_OWNERS else ""
    query = replace(
        await _asked_query(TABLE_SORT_WORDS), owner_id=None if whose else who.account_id
    )
    listing = await _asked_listing(
        query, endpoint=TABLE, sorts=TABLE_SORT_WORDS, limit=MAX_SELECTED, whose=whose
    )
    return await render_template(
        "library/table.html",
        name="My videos" if who.account_id else "Manage videos",
        listing=listing,
        owners=[("", "My videos"), (ALL_OWNERS, "All videos")] if sees_others else [],
        columns=_columns(listing),
        categories=names,
        visibilities=[(it, it.capitalize()) for it in Visibility] if who.account_id else [],
        may_delete=who.may(Action.DELETE, owner_id=who.account_id),
        toast=toast_of(request.args),
        **await _seen_videos(listing.page.videos),
    )


@blueprint.get("/videos/progress")
@policy(Policy.PUBLISH)
async def table_progress() -> str:
    """The rows of videos that were being processed, and the element that asks for them again."""
    rows = await _seen_videos(await _polled_videos(limit=MAX_SELECTED))
    return await render_template("library/_progress.html", is_news=True, is_table=True, **rows)


async def _asked_query(sorts: Mapping[Sort, str]) -> LibraryQuery:
    """What the address asks for, in one of these orders."""
    args, names = request.args, await web_context().categories.names()
    text = one_line(args.get("q", ""))[:MAX_QUERY_LENGTH]
    sort = next((it for it in sorts if it.value == args.get("sort")), None)
    if sort is None or (sort is Sort.RELEVANCE and not text):
        sort = Sort.RELEVANCE if text else Sort.NEWEST
    return LibraryQuery(
        text=text,
        category_id=next((it for it in names if str(it) == args.get("category")), None),
        status=next((it for it in VideoStatus if it.value == args.get("status")), None),
        tag=one_line(args.get("tag", ""))[:MAX_TAG_LENGTH],
        sort=sort,
        seen_by=await principal(),
    )


async def _asked_listing(
    query: LibraryQuery, *, endpoint: str, sorts: Mapping[Sort, str], limit: int, whose: str = ""
) -> Listing:
    """The page of a query's answer that the address asks for."""
    after = Cursor.parse(request.args.get("after", ""), query)
    before = Cursor.parse(request.args.get("before", ""), query)
    page = await find_videos(query, limit=limit, after=after, before=before)
    return Listing(
        endpoint=endpoint,
        query=replace(query, text=page.text) if page.text else query,
        page=page,
        sorts=sorts,
        whose=whose,
        typed=query.text if page.text else "",
        after=after,
        before=before,
    )


async def _polled_videos(*, limit: int) -> list[Video]:
    """The videos that a page asks for again, as far as they are there for who asks."""
    who = await principal()
    asked = [parse_video_id(text) for text in request.args.getlist("id")[:limit]]
    found = await fetch_videos([video_id for video_id in asked if video_id])
    return [it for it in found.values() if who.may_see(audience_of(it))]


async def _seen_videos(videos: Sequence[Video]) -> dict[str, Any]:
    """What templates see of videos: which may be edited, and how far processing is."""
    who = await principal()
    processing = [it.id for it in videos if it.status is VideoStatus.PROCESSING]
    return {
        "videos": videos,
        "work": await read_work(processing),
        "editable": {it.id for it in videos if who.may(Action.EDIT, owner_id=it.owner_id)},
    }


async def _cards(videos: Sequence[Video]) -> dict[str, Any]:
    return {**await _seen_videos(videos), "names": await names_of(it.owner_id for it in videos)}


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
