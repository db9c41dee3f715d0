"""The library: every video as a card, searched, filtered and sorted, a page at a time.

What the address asks for and cannot be had is ignored: a library never answers with an error
because of a mistyped filter.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from quart import Blueprint, render_template, request

from portal.accounts.permissions import Action, Principal
from portal.database.models import Video
from portal.database.search import MAX_QUERY_LENGTH
from portal.database.states import VideoStatus
from portal.errors import Overloaded
from portal.videos.library import list_videos, read_work
from portal.videos.library_queries import Cursor, LibraryQuery, Sort
from portal.videos.publishing import parse_video_id
from portal.videos.rows import audience_of
from portal.web.access import Policy, policy, principal
from portal.web.context import web_context
from portal.web.pages.library_views import (
    OWN,
    VideoCard,
    library_view,
    progress_view,
    video_card,
)
from portal.web.server.response_cache import allow_sharing

blueprint = Blueprint("library", __name__)

PAGE_SIZE = 24
# A search takes milliseconds; one that has waited this long for others is answered 503.
TURN_TIMEOUT_S = 5.0
MAX_TAG_LENGTH = 500


@blueprint.get("/")
@policy(Policy.WATCH)
async def index() -> str:
    """The library; scripts ask for it, too, and take the results out of it."""
    allow_sharing(request.scope)
    web = web_context()
    names = await web.categories.names()
    query = _query(request.args, names, seen_by=await principal())
    after = Cursor.parse(request.args.get("after", ""), query)
    before = Cursor.parse(request.args.get("before", ""), query)
    async with _turn(query, web.searches):
        page = await list_videos(query, limit=PAGE_SIZE, after=after, before=before)
    cards = await _cards(page.videos)
    return await render_template(
        "library/index.html",
        library=library_view(query, page, category_names=names),
        cards=cards,
        progress=progress_view(cards, is_news=False),
    )


@blueprint.get("/library/progress")
@policy(Policy.WATCH)
async def progress() -> str:
    """The cards of videos that were being processed, and the element that asks for them again."""
    allow_sharing(request.scope)
    asked = [parse_video_id(text) for text in request.args.getlist("id")[:PAGE_SIZE]]
    found = await Video.filter(id__in=[video_id for video_id in asked if video_id])
    who = await principal()
    cards = await _cards([video for video in found if who.may_see(audience_of(video))])
    poll = progress_view(cards, is_news=True)
    return await render_template("library/_progress.html", cards=cards, progress=poll)


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


async def _cards(videos: list[Video]) -> list[VideoCard]:
    processing = [video.id for video in videos if video.status is VideoStatus.PROCESSING]
    work = await read_work(processing)
    return [video_card(video, work.get(video.id)) for video in videos]


def _query(
    args: Mapping[str, str], category_names: Mapping[int, str], *, seen_by: Principal
) -> LibraryQuery:
    text = " ".join(args.get("q", "").replace("\0", " ").split())[:MAX_QUERY_LENGTH]
    category_id = next((it for it in category_names if str(it) == args.get("category")), None)
    sort = next((it for it in Sort if it.value == args.get("sort")), None)
    if sort is None or (sort is Sort.RELEVANCE and not text):
        sort = Sort.RELEVANCE if text else Sort.NEWEST
    return LibraryQuery(
        text=text,
        category_id=category_id,
        status=next((it for it in VideoStatus if it.value == args.get("status")), None),
        tag=" ".join(args.get("tag", "").replace("\0", " ").split())[:MAX_TAG_LENGTH],
        sort=sort,
        seen_by=seen_by,
        is_own=args.get("own") == OWN and _has_own(seen_by),
    )


def _has_own(who: Principal) -> bool:
    """Whether there can be videos that they have published."""
    return who.account_id is not None and who.may(Action.PUBLISH)
