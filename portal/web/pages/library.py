"""The library: every video as a card, searched, filtered and sorted, a page at a time.

What the address asks for and cannot be had is ignored: a library never answers with an error
because of a mistyped filter.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from quart import Blueprint, render_template, request
from werkzeug.datastructures import MultiDict

from portal.accounts.people import names_of
from portal.accounts.permissions import Principal
from portal.database.models import Video
from portal.database.search import MAX_QUERY_LENGTH
from portal.database.states import VideoStatus
from portal.errors import Overloaded
from portal.videos.library import LibraryPage, Work, list_videos, read_work
from portal.videos.library_queries import Cursor, LibraryQuery, Sort
from portal.videos.reading import audience_of, fetch_videos, parse_video_id
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.pages.library_views import (
    SORT_WORDS,
    Cursors,
    VideoCard,
    library_view,
    progress_view,
    video_card,
)
from portal.web.pages.toasts import toast_of

blueprint = Blueprint("library", __name__)

PAGE_SIZE = 24
# A search takes milliseconds; one that has waited this long for others is answered 503.
TURN_TIMEOUT_S = 5.0
MAX_TAG_LENGTH = 500


@blueprint.get("/")
@policy(Policy.WATCH)
async def index() -> str:
    """The library; scripts ask for it, too, and take the results out of it."""
    who, names = await principal(), await web_context().categories.names()
    query = asked_query(request.args, names, seen_by=who, sorts=SORT_WORDS)
    page, place = await asked_page(query, request.args, limit=PAGE_SIZE)
    cards = await _cards(page.videos, seen_by=who)
    return await render_template(
        "library/index.html",
        library=library_view(query, page, category_names=names, place=place),
        cards=cards,
        progress=progress_view(cards, is_news=False),
        toast=toast_of(request.args),
    )


@blueprint.get("/library/progress")
@policy(Policy.WATCH)
async def progress() -> str:
    """The cards of videos that were being processed, and the element that asks for them again."""
    who = await principal()
    videos = await polled_videos(request.args, seen_by=who, limit=PAGE_SIZE)
    cards = await _cards(videos, seen_by=who)
    poll = progress_view(cards, is_news=True)
    return await render_template("library/_progress.html", cards=cards, progress=poll)


def asked_query(
    args: Mapping[str, str],
    category_names: Mapping[int, str],
    *,
    seen_by: Principal,
    sorts: Collection[Sort],
) -> LibraryQuery:
    """What the address of a library asks for, in one of these orders."""
    text = one_line(args.get("q", ""))[:MAX_QUERY_LENGTH]
    category_id = next((it for it in category_names if str(it) == args.get("category")), None)
    sort = next((it for it in sorts if it.value == args.get("sort")), None)
    if sort is None or (sort is Sort.RELEVANCE and not text):
        sort = Sort.RELEVANCE if text else Sort.NEWEST
    return LibraryQuery(
        text=text,
        category_id=category_id,
        status=next((it for it in VideoStatus if it.value == args.get("status")), None),
        tag=one_line(args.get("tag", ""))[:MAX_TAG_LENGTH],
        sort=sort,
        seen_by=seen_by,
    )


async def asked_page(
    query: LibraryQuery, args: Mapping[str, str], *, limit: int
) -> tuple[LibraryPage, Cursors]:
    """The page of a query's answer that the address asks for, and where that is."""
    place = Cursors(
        after=Cursor.parse(args.get("after", ""), query),
        before=Cursor.parse(args.get("before", ""), query),
    )
    async with _turn(query, web_context().searches):
        page = await list_videos(query, limit=limit, after=place.after, before=place.before)
    return page, place


async def polled_videos(
    args: MultiDict[str, str], *, seen_by: Principal, limit: int
) -> list[Video]:
    """The videos that a page asks for again, as far as they are there for who asks."""
    asked = [parse_video_id(text) for text in args.getlist("id")[:limit]]
    found = await fetch_videos([video_id for video_id in asked if video_id])
    return [it for it in found.values() if seen_by.may_see(audience_of(it))]


async def work_on(videos: Sequence[Video]) -> dict[UUID, Work]:
    """How far those of these videos are that are being processed."""
    return await read_work([it.id for it in videos if it.status is VideoStatus.PROCESSING])


def one_line(text: str) -> str:
    """What was typed as one line, without what the database can't store."""
    return " ".join(text.replace("\0", " ").split())


@asynccontextmanager
async def _turn(query: LibraryQuery, searches: asyncio.Semaphore) -> AsyncIterator[None]:
    """Wait until one more search may ask the database; what searches for no words goes on."""
    if not query.words:
        yield
        return
    try:
        async with asyncio.timeout(TURN_TIMEOUT_S):
            await searches.acquire()
    except TimeoutError:
        raise Overloaded from None
    try:
        yield
    finally:
        searches.release()


async def _cards(videos: list[Video], *, seen_by: Principal) -> list[VideoCard]:
    work, names = await work_on(videos), await names_of(it.owner_id for it in videos)
    return [
        video_card(it, work.get(it.id), seen_by=seen_by, by=names.get(it.owner_id, ""))
        for it in videos
    ]
