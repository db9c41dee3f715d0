"""Library: all videos as cards, and My videos, a table for publishers.

Both take search, filters, order and page from the address, and ignore invalid values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quart import Blueprint, render_template, request, url_for

from portal.accounts.people import names_of
from portal.accounts.permissions import Action, Audience, Principal, Right, audience_of
from portal.database.models import Approval, Video, VideoStatus
from portal.database.search import MAX_QUERY_LENGTH
from portal.features.library.bulk_actions import LIBRARY, MAX_SELECTED, TABLE, one_line, toast_of
from portal.features.watching.positions import BegunVideo, fetch_begun
from portal.http.auth import Policy, policy, principal
from portal.http.composition import web_context
from portal.http.formatting import views_in_words
from portal.http.languages import gettext, ngettext, translated
from portal.http.server.limits import Rate
from portal.http.videos import find_videos
from portal.locale.messages import Message, numeral
from portal.videos.library import COUNT_CAP, LibraryPage, read_work
from portal.videos.library_queries import BY_VIEWS, ORDERS, Cursor, LibraryQuery, Sort
from portal.videos.reading import fetch_in_order, fetch_videos, parse_video_id
from portal.videos.visibility import CHOICES
from portal.videos.words import find_said

blueprint = Blueprint("library", __name__)

PAGE_SIZE = 24
# Videos of "Continue watching".
MAX_BEGUN = 8
MAX_TAG_LENGTH = 500
# Translators: orders of a list of videos.
SORT_WORDS = {
    Sort.RELEVANCE: Message("Best match"),
    Sort.NEWEST: Message("Newest first"),
    Sort.OLDEST: Message("Oldest first"),
    Sort.TITLE: Message("Title A–Z"),  # noqa: RUF001 - a dash
    Sort.LONGEST: Message("Longest first"),
    Sort.MOST_WATCHED: Message("Most watched"),
}

# Values of `whose` in the address: the videos of all owners, and those shared with the person.
ALL_OWNERS = "all"
SHARED = "shared"
# Translators: orders of a table of videos.
TABLE_SORT_WORDS = SORT_WORDS | {
    Sort.TITLE_LAST: Message("Title Z–A"),  # noqa: RUF001 - a dash
    Sort.SHORTEST: Message("Shortest first"),
    Sort.LARGEST: Message("Largest first"),
    Sort.SMALLEST: Message("Smallest first"),
    Sort.STATE: Message("Failed first"),
    Sort.STATE_LAST: Message("Ready first"),
    Sort.VISIBILITY: Message("Private first"),
    Sort.VISIBILITY_LAST: Message("Unlisted first"),
    Sort.LEAST_WATCHED: Message("Least watched"),
}
# Columns by name: label, order when chosen, and the opposite order.
# Translators: heads of columns of a table of videos. "Published" is a date.
COLUMNS = {
    "title": (Message("Title"), Sort.TITLE, Sort.TITLE_LAST),
    "state": (Message("Status"), Sort.STATE, Sort.STATE_LAST),
    "visibility": (Message("Visibility"), Sort.VISIBILITY, Sort.VISIBILITY_LAST),
    "length": (Message("Length"), Sort.LONGEST, Sort.SHORTEST),
    "size": (Message("Size"), Sort.LARGEST, Sort.SMALLEST),
    "views": (Message("Views"), Sort.MOST_WATCHED, Sort.LEAST_WATCHED),
    "date": (Message("Published"), Sort.NEWEST, Sort.OLDEST),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Page of videos, as cards or in a table, with the addresses of related pages.

    `whose` is the filter by owner, of which the library has `SHARED` alone. If the query has a
    suggested text, `typed` is the text that had no results.
    """

    endpoint: str
    query: LibraryQuery
    page: LibraryPage
    videos: Sequence[Video]
    sorts: Mapping[Sort, str]
    whose: str = ""
    typed: str = ""
    after: Cursor | None = None
    before: Cursor | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether there are no videos."""
        return not self.videos and self.page.is_first

    @property
    def count_words(self) -> str:
        """Return the number of videos in words."""
        count = numeral(self.count)
        if self.is_capped:
            return gettext("%(count)s+ videos", count=count)
        if not self.count:
            return gettext("No videos")
        return ngettext("%(count)s video", "%(count)s videos", self.count, count=count)

    @property
    def count(self) -> int:
        """Return the number of videos, as far as they are counted."""
        return min(self.page.total, COUNT_CAP)

    @property
    def is_capped(self) -> bool:
        """Return whether there are more videos than are counted."""
        return self.page.total > COUNT_CAP

    @property
    def default_sort(self) -> Sort:
        """Return the order of addresses that name none."""
        return Sort.RELEVANCE if self.query.text else Sort.NEWEST

    def bulk_action_url(self, endpoint: str = "bulk_actions.apply") -> str:
        """Return the address of an endpoint for bulk actions, which redirects to this page."""
        return self.url(
            endpoint, at=self.endpoint, after=self.after or "", before=self.before or ""
        )

    @property
    def clear_url(self) -> str:
        """Return the address without search and filters."""
        whose = "" if self.query.shared else self.whose
        return replace(self, query=LibraryQuery(), whose=whose).url()

    def url(self, endpoint: str = "", **changes: Any) -> str:
        """Return the shortest address of this query with changed parameters."""
        query = self.query
        parameters = {
            "q": query.text,
            "category": query.category_id,
            "status": query.status,
            "tag": query.tag,
            "sort": "" if query.sort is self.default_sort else query.sort,
            "whose": self.whose,
        } | changes
        present: dict[str, Any] = {name: str(value) for name, value in parameters.items() if value}
        return url_for(endpoint or self.endpoint, **present)


@blueprint.app_template_global()
def views_words(video: Video) -> str:
    """Return the views of a video in words; empty if there are none, or they are not shown."""
    is_shown = web_context().config.has_views and video.views
    return translated(views_in_words(video.views)) if is_shown else ""


@blueprint.app_template_global()
async def waiting_count() -> int:
    """Return the number of waiting videos that the viewer sees, as far as they are counted."""
    return (await find_videos(_waiting_query(await principal()), limit=1)).total


@blueprint.get("/")
@policy(Policy.WATCH, rate=Rate.LISTING)
async def index() -> str:
    """Show the library. Scripts fetch the same page and use its results."""
    sorts = SORT_WORDS if web_context().config.has_views else _without_views(SORT_WORDS)
    viewer = await principal()
    is_shared = bool(viewer.ids) and request.args.get("whose") == SHARED
    shared = Right.WATCH if is_shared else None
    query = replace(
        await read_query(sorts), hides_failed=True, includes_public_pages=True, shared=shared
    )
    listing = await _read_listing(
        query, endpoint=LIBRARY, sorts=sorts, limit=PAGE_SIZE, whose=SHARED if is_shared else ""
    )
    return await render_template(
        "library/index.html",
        listing=listing,
        owners=[("", gettext("All videos")), (SHARED, gettext("Shared with me"))]
        if is_shared
        else [],
        categories=await web_context().categories.names(),
        toast=toast_of(request.args),
        begun=await _read_begun(listing),
        said=await find_said(
            listing.query.words,
            [video.id for video in listing.videos if viewer.may_see(audience_of(video))],
        ),
        **await _card_values(listing.videos),
    )


@blueprint.get("/approvals")
@policy(Policy.PUBLISH)
async def approvals() -> str:
    """Show the videos that wait for approval, the oldest first; to contributors their own ones."""
    listing = await _read_listing(
        _waiting_query(await principal()),
        endpoint="library.approvals",
        sorts=SORT_WORDS,
        limit=PAGE_SIZE,
    )
    return await render_template(
        "library/approvals.html", listing=listing, **await _card_values(listing.videos)
    )


@blueprint.get("/library/progress")
@policy(Policy.WATCH)
async def progress() -> str:
    """Render the cards of the videos in the parameters `id`, and the element that polls them.

    Videos whose page the viewer may not see are left out. So are ids after the first `PAGE_SIZE`.
    The element polls the videos that are still in progress.
    """
    videos = await _fetch_polled_videos((await principal()).may_see_page, limit=PAGE_SIZE)
    return await render_template(
        "library/_progress.html", is_news=True, **await _card_values(videos)
    )


@blueprint.get("/videos")
@policy(Policy.PUBLISH)
async def table() -> str:
    """Show My videos, a table of the videos that the person may change.

    These are the account's own videos, or those that are shared with it for editing. Admins and
    owners can show everyone's. On a portal without accounts they are all videos.
    """
    person = await principal()
    owners = _owners_for(person)
    whose = request.args.get("whose", "")
    whose = whose if whose in owners else ""
    is_counting = web_context().config.statistics
    sorts = TABLE_SORT_WORDS if is_counting else _without_views(TABLE_SORT_WORDS)
    query = replace(
        await read_query(sorts),
        owner_id=None if whose else person.account_id,
        shared=Right.EDIT if whose == SHARED else None,
    )
    listing = await _read_listing(
        query, endpoint=TABLE, sorts=sorts, limit=MAX_SELECTED, whose=whose
    )
    return await render_template(
        "library/table.html",
        name=gettext("My videos") if person.account_id else gettext("Manage videos"),
        listing=listing,
        is_new=listing.is_empty and not query.is_filtered and ALL_OWNERS not in owners,
        owners=list(owners.items()),
        columns=_column_heads(listing),
        categories=await web_context().categories.names(),
        visibilities=CHOICES if person.account_id else [],
        may_delete=person.may(Action.DELETE, on=Audience(owner_id=person.account_id)),
        toast=toast_of(request.args),
        **await _video_values(listing.videos),
    )


@blueprint.get("/videos/progress")
@policy(Policy.PUBLISH)
async def table_progress() -> str:
    """Render the rows of the videos in the parameters `id`, and the element that polls them.

    Videos that the viewer may not see are left out. So are ids after the first `MAX_SELECTED`. The
    element polls the videos that are still in progress.
    """
    videos = await _fetch_polled_videos((await principal()).may_see, limit=MAX_SELECTED)
    rows = await _video_values(videos)
    return await render_template("library/_progress.html", is_news=True, is_table=True, **rows)


def _waiting_query(person: Principal) -> LibraryQuery:
    return LibraryQuery(approval=Approval.WAITING, sort=Sort.OLDEST, seen_by=person)


def _owners_for(person: Principal) -> dict[str, str]:
    """Return the filters by owner of a person's table: values of `whose`, and words."""
    if person.account_id is None:
        return {}
    owners = {"": gettext("My videos"), SHARED: gettext("Shared with me")}
    return owners | ({ALL_OWNERS: gettext("All videos")} if person.sees_all else {})


def _without_views(sorts: Mapping[Sort, str]) -> Mapping[Sort, str]:
    return {sort: words for sort, words in sorts.items() if sort not in BY_VIEWS}


async def read_query(sorts: Mapping[Sort, str]) -> LibraryQuery:
    """Return the query of the address, in one of these orders."""
    parameters = request.args
    categories = await web_context().categories.names()
    text = one_line(parameters.get("q", ""))[:MAX_QUERY_LENGTH]
    sort = next((order for order in sorts if order == parameters.get("sort")), None)
    if sort is None or (sort is Sort.RELEVANCE and not text):
        sort = Sort.RELEVANCE if text else Sort.NEWEST
    return LibraryQuery(
        text=text,
        category_id=next(
            (key for key in categories if str(key) == parameters.get("category")), None
        ),
        status=next((value for value in VideoStatus if value == parameters.get("status")), None),
        tag=one_line(parameters.get("tag", ""))[:MAX_TAG_LENGTH],
        sort=sort,
        seen_by=await principal(),
    )


async def _read_listing(
    query: LibraryQuery, *, endpoint: str, sorts: Mapping[Sort, str], limit: int, whose: str = ""
) -> Listing:
    """Return the page of a query's videos that the address names."""
    after = Cursor.parse(request.args.get("after", ""), query)
    before = Cursor.parse(request.args.get("before", ""), query)
    page = await find_videos(query, limit=limit, after=after, before=before)
    return Listing(
        endpoint=endpoint,
        query=replace(query, text=page.text) if page.text else query,
        page=page,
        videos=await fetch_in_order(page.video_ids),
        sorts=sorts,
        whose=whose,
        typed=query.text if page.text else "",
        after=after,
        before=before,
    )


async def _read_begun(listing: Listing) -> list[BegunVideo]:
    """Return the videos of "Continue watching", which only the library's first page has."""
    viewer = await principal()
    is_shown = viewer.is_signed_in and listing.page.is_first and not listing.query.is_filtered
    return await fetch_begun(viewer, limit=MAX_BEGUN) if is_shown else []


async def _fetch_polled_videos(sees: Callable[[Audience], bool], *, limit: int) -> list[Video]:
    """Return the polled videos with an audience that `sees` accepts."""
    ids = [parse_video_id(text) for text in request.args.getlist("id")[:limit]]
    videos = await fetch_videos([video_id for video_id in ids if video_id])
    return [video for video in videos.values() if sees(audience_of(video))]


async def _video_values(videos: Sequence[Video]) -> dict[str, Any]:
    """Return template values of videos: which may be edited, and the progress of processing."""
    viewer = await principal()
    processing = [video.id for video in videos if video.status is VideoStatus.PROCESSING]
    return {
        "has_views_column": web_context().config.statistics,
        "videos": videos,
        "work": await read_work(processing),
        "editable": {
            video.id for video in videos if viewer.may(Action.EDIT, on=audience_of(video))
        },
    }


async def _card_values(videos: Sequence[Video]) -> dict[str, Any]:
    """Return template values of videos as cards, with the names of their owners."""
    names = await names_of(video.owner_id for video in videos)
    return {**await _video_values(videos), "names": names}


def _column_heads(listing: Listing) -> list[dict[str, str]]:
    """Return the heads of the columns: `url` sorts by the column, `sorted` is its `aria-sort`."""
    present = listing.query.sort
    columns = []
    direction = "descending" if ORDERS[present].descending else "ascending"
    for name, (words, first, opposite) in COLUMNS.items():
        if first not in listing.sorts:
            continue
        query = replace(listing.query, sort=opposite if present is first else first)
        aria_sort = direction if present in (first, opposite) else ""
        url = replace(listing, query=query).url()
        columns.append({"name": name, "words": words, "url": url, "sorted": aria_sort})
    return columns
