"""What the library's templates see: the form with its choices, cards, and where to go on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from quart import url_for

from portal.accounts.permissions import ANYONE, Action, Principal
from portal.database.models import Video
from portal.database.states import VideoStatus
from portal.text import shown
from portal.videos.library import COUNT_CAP, LibraryPage, Work
from portal.videos.library_queries import Cursor, LibraryQuery, Sort
from portal.web.pages.access_views import badge_words
from portal.web.pages.formatting import Moment, clock, moment, whole_seconds
from portal.web.pages.status_views import STATUS_WORDS, poster_url, storyboard_url

LIBRARY, TABLE = "library.index", "table.index"
# In the address of a table: what everyone has published, for who may change all of it.
EVERYONES = "all"
STAGE_WORDS = {"probing": "Examining", "transcoding": "Converting", "finishing": "Checking"}
SORT_WORDS = {
    Sort.RELEVANCE: "Best match",
    Sort.NEWEST: "Newest first",
    Sort.OLDEST: "Oldest first",
    Sort.TITLE: "Title A–Z",  # noqa: RUF001 - a dash
    Sort.LONGEST: "Longest first",
}
# What a table offers beside them.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoCard:
    """A video in the library. `percent` is None while nothing is measured, or when it is final."""

    id: str
    url: str
    title: str
    status: str
    status_words: str
    percent: int | None
    poster_url: str | None
    storyboard_url: str | None
    duration: str | None
    duration_iso: str | None
    # The name of its account, if it has one.
    by: str
    created: Moment
    badge: str
    failure: str
    # For who may change it; else empty.
    edit_url: str


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a select."""

    value: str
    words: str
    is_chosen: bool
    is_hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursors:
    """After or before which video a page of the library is."""

    after: Cursor | None = None
    before: Cursor | None = None


NO_CURSORS = Cursors()


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryView:
    """The form as it was sent, how much was found, and the addresses of other pages of it.

    What is done to videos on the page is sent to `bulk_action_url`, which leads back to it.
    """

    url: str
    bulk_action_url: str
    text: str
    tag: str
    categories: list[Choice]
    statuses: list[Choice]
    sorts: list[Choice]
    whose: list[Choice]
    is_filtered: bool
    is_empty: bool
    count_words: str
    filter_words: str
    without_tag_url: str
    clear_url: str
    first_url: str | None
    previous_url: str | None
    next_url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressView:
    """`url` polls the videos that are still being processed; None when all are final."""

    url: str | None
    news: str


def library_view(
    query: LibraryQuery,
    page: LibraryPage,
    *,
    category_names: Mapping[int, str],
    place: Cursors = NO_CURSORS,
    endpoint: str = LIBRARY,
    whose: str = "",
) -> LibraryView:
    """Everything around the videos, as cards or, at another endpoint, in a table."""
    url = partial(listing_url, endpoint=endpoint, whose=whose)
    return LibraryView(
        url=url_for(endpoint),
        bulk_action_url=listing_url(
            query,
            endpoint="bulk_actions.apply",
            at=endpoint,
            whose=whose,
            after=str(place.after or ""),
            before=str(place.before or ""),
        ),
        text=query.text,
        tag=query.tag,
        categories=_choices(category_names.items(), query.category_id, every="All categories"),
        statuses=_choices(STATUS_WORDS.items(), query.status, every="Any status"),
        sorts=_sorts(query, TABLE_SORT_WORDS if endpoint == TABLE else SORT_WORDS),
        whose=_whose(query, whose) if endpoint == TABLE else [],
        is_filtered=query.is_filtered,
        is_empty=not page.videos and page.is_first,
        count_words=_count_words(page.total),
        filter_words=f"for “{shown(query.text)}”" if query.text else "",
        without_tag_url=url(query, tag=""),
        clear_url=url(LibraryQuery()),
        first_url=None if page.is_first else url(query),
        previous_url=url(query, before=str(page.previous)) if page.previous else None,
        next_url=url(query, after=str(page.next)) if page.next else None,
    )


def progress_view(
    cards: Sequence[VideoCard], *, is_news: bool, endpoint: str = "library.progress"
) -> ProgressView:
    """Which of these to poll again; with `is_news` also the announcement of those that are final,
    since they were not when they were last polled.
    """
    unfinished = [card.id for card in cards if card.status == VideoStatus.PROCESSING]
    final = [card for card in cards if card.status != VideoStatus.PROCESSING]
    return ProgressView(
        url=url_for(endpoint, id=unfinished) if unfinished else None,
        news=" ".join(_news(card) for card in final) if is_news else "",
    )


def video_card(
    video: Video, work: Work | None, *, seen_by: Principal = ANYONE, by: str = ""
) -> VideoCard:
    """A video as the library shows it, for whom it may offer to change it; `by` is a name."""
    may_edit = seen_by.may(Action.EDIT, owner_id=video.owner_id)
    return VideoCard(
        id=str(video.id),
        url=url_for("pages.video", video_id=video.id),
        title=shown(video.title),
        status=video.status.value,
        status_words=_status_words(video, work),
        percent=int(work.percent) if work and work.stage else None,
        poster_url=poster_url(video),
        storyboard_url=storyboard_url(video),
        duration=clock(video.duration_s) if video.duration_s is not None else None,
        duration_iso=f"PT{whole_seconds(video.duration_s)}S"
        if video.duration_s is not None
        else None,
        by=shown(by),
        created=moment(video.created_at),
        badge=badge_words(video),
        failure=video.failure_message or "",
        edit_url=url_for("workshop.workshop", video_id=video.id) if may_edit else "",
    )


def _status_words(video: Video, work: Work | None) -> str:
    if video.status is not VideoStatus.PROCESSING:
        return STATUS_WORDS[video.status]
    if work is None or work.stage is None:
        return "Waiting for its turn"
    words = STAGE_WORDS.get(work.stage, "Processing")
    return f"{words} · {int(work.percent)}%" if work.percent >= 1 else words


def _news(card: VideoCard) -> str:
    if card.status == VideoStatus.READY:
        return f"“{card.title}” is ready."
    return f"“{card.title}” could not be processed."


def _choices(named: Iterable[tuple[object, str]], chosen: object, *, every: str) -> list[Choice]:
    choices = [Choice(str(value), words, value == chosen) for value, words in named]
    return [Choice("", every, chosen is None), *choices]


def _whose(query: LibraryQuery, whose: str) -> list[Choice]:
    """Whose videos a table has, for who may change those of others."""
    if query.seen_by.account_id is None or not query.seen_by.sees_all:
        return []
    return [
        Choice("", "My videos", not whose),
        Choice(EVERYONES, "All videos", whose == EVERYONES),
    ]


def _sorts(query: LibraryQuery, named: Mapping[Sort, str]) -> list[Choice]:
    """The orders; the first is the one that goes without saying, and has no value.

    That is the newest first, unless there is something to match.
    """
    usual = Sort.RELEVANCE if query.text else Sort.NEWEST
    others = [
        Choice(it.value, words, it is query.sort, is_hidden=it is usual)
        for it, words in named.items()
        if it is not Sort.RELEVANCE
    ]
    return [Choice("", named[usual], usual is query.sort), *others]


def _count_words(total: int) -> str:
    if total > COUNT_CAP:
        return f"{COUNT_CAP:,}+ videos"
    return "1 video" if total == 1 else f"{total:,} videos" if total else "No videos"


def listing_url(query: LibraryQuery, *, endpoint: str, **changes: str) -> str:
    """The shortest address of a query, as a library or a table."""
    named: dict[str, Any] = {**_parameters(query), **changes}
    return url_for(endpoint, **{name: text for name, text in named.items() if text})


def _parameters(query: LibraryQuery) -> dict[str, str]:
    default_sort = Sort.RELEVANCE if query.text else Sort.NEWEST
    return {
        "q": query.text,
        "category": str(query.category_id or ""),
        "status": query.status or "",
        "tag": query.tag,
        "sort": "" if query.sort is default_sort else query.sort.value,
    }
