"""What the library's templates see: the form with its choices, cards, and where to go on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quart import url_for

from portal.database.models import Video
from portal.database.states import VideoStatus
from portal.text import shown
from portal.videos.library import COUNT_CAP, LibraryPage, Work
from portal.videos.library_queries import LibraryQuery, Sort
from portal.web.pages.access_views import badge_words
from portal.web.pages.formatting import Moment, clock, moment, whole_seconds
from portal.web.pages.status_views import STATUS_WORDS, poster_url, storyboard_url

# In an address: only what who asks has published.
OWN = "on"
STAGE_WORDS = {"probing": "Examining", "transcoding": "Converting", "finishing": "Checking"}
SORT_WORDS = {
    Sort.RELEVANCE: "Best match",
    Sort.NEWEST: "Newest first",
    Sort.OLDEST: "Oldest first",
    Sort.TITLE: "Title A–Z",  # noqa: RUF001 - a dash
    Sort.LONGEST: "Longest first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoCard:
    """A video in the library. `percent` is None while nothing is measured, or when it is final."""

    id: str
    url: str
    title: str
    status: str
    status_words: str
    stage_words: str
    percent: int | None
    poster_url: str | None
    storyboard_url: str | None
    duration: str | None
    duration_iso: str | None
    created: Moment
    badge: str
    failure: str


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a select."""

    value: str
    words: str
    is_chosen: bool
    is_hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryView:
    """The form as it was sent, how much was found, and the addresses of other pages of it."""

    text: str
    tag: str
    categories: list[Choice]
    statuses: list[Choice]
    sorts: list[Choice]
    is_own: bool
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
    """`url` polls the cards that are still being processed; None when all are final."""

    url: str | None
    news: str


def library_view(
    query: LibraryQuery, page: LibraryPage, *, category_names: Mapping[int, str]
) -> LibraryView:
    """Everything around the cards."""
    return LibraryView(
        text=query.text,
        tag=query.tag,
        categories=_choices(category_names.items(), query.category_id, every="All categories"),
        statuses=_choices(STATUS_WORDS.items(), query.status, every="Any status"),
        sorts=_sorts(query),
        is_own=query.is_own,
        is_filtered=query.is_filtered,
        is_empty=not page.videos and page.is_first,
        count_words=_count_words(page.total),
        filter_words=f"for “{shown(query.text)}”" if query.text else "",
        without_tag_url=_url(query, tag=""),
        clear_url=_url(LibraryQuery(is_own=query.is_own)),
        first_url=None if page.is_first else _url(query),
        previous_url=_url(query, before=str(page.previous)) if page.previous else None,
        next_url=_url(query, after=str(page.next)) if page.next else None,
    )


def progress_view(cards: Sequence[VideoCard], *, is_news: bool) -> ProgressView:
    """Which of these to poll again; with `is_news` also the announcement of those that are final,
    since they were not when they were last polled.
    """
    unfinished = [card.id for card in cards if card.status == VideoStatus.PROCESSING]
    final = [card for card in cards if card.status != VideoStatus.PROCESSING]
    return ProgressView(
        url=url_for("library.progress", id=unfinished) if unfinished else None,
        news=" ".join(_news(card) for card in final) if is_news else "",
    )


def video_card(video: Video, work: Work | None) -> VideoCard:
    """A video as the library shows it."""
    return VideoCard(
        id=str(video.id),
        url=url_for("pages.video", video_id=video.id),
        title=shown(video.title),
        status=video.status.value,
        status_words=STATUS_WORDS[video.status],
        stage_words=_stage_words(video, work),
        percent=int(work.percent) if work and work.stage else None,
        poster_url=poster_url(video),
        storyboard_url=storyboard_url(video),
        duration=clock(video.duration_s) if video.duration_s is not None else None,
        duration_iso=f"PT{whole_seconds(video.duration_s)}S"
        if video.duration_s is not None
        else None,
        created=moment(video.created_at),
        badge=badge_words(video),
        failure=video.failure_message or "",
    )


def _stage_words(video: Video, work: Work | None) -> str:
    if video.status is not VideoStatus.PROCESSING:
        return ""
    if work is None or work.stage is None:
        return "Waiting for its turn"
    words = STAGE_WORDS.get(work.stage, "Processing")
    return f"{words} · {int(work.percent)} %" if work.percent >= 1 else words


def _news(card: VideoCard) -> str:
    if card.status == VideoStatus.READY:
        return f"“{card.title}” is ready."
    return f"“{card.title}” could not be processed."


def _choices(named: Iterable[tuple[object, str]], chosen: object, *, every: str) -> list[Choice]:
    choices = [Choice(str(value), words, value == chosen) for value, words in named]
    return [Choice("", every, chosen is None), *choices]


def _sorts(query: LibraryQuery) -> list[Choice]:
    """The orders; the first is the one that goes without saying, and has no value.

    That is the newest first, unless there is something to match.
    """
    usual = Sort.RELEVANCE if query.text else Sort.NEWEST
    others = [
        Choice(it.value, SORT_WORDS[it], it is query.sort, is_hidden=it is usual)
        for it in SORT_WORDS
        if it is not Sort.RELEVANCE
    ]
    return [Choice("", SORT_WORDS[usual], usual is query.sort), *others]


def _count_words(total: int) -> str:
    if total > COUNT_CAP:
        return f"{COUNT_CAP:,}+ videos"
    return "1 video" if total == 1 else f"{total:,} videos" if total else "No videos"


def _url(query: LibraryQuery, **changes: str) -> str:
    """The shortest address of a query: what goes without saying is left out."""
    default_sort = Sort.RELEVANCE if query.text else Sort.NEWEST
    parameters = {
        "q": query.text,
        "category": str(query.category_id or ""),
        "status": query.status or "",
        "tag": query.tag,
        "own": OWN if query.is_own else "",
        "sort": "" if query.sort is default_sort else query.sort.value,
        **changes,
    }
    named: dict[str, Any] = {name: text for name, text in parameters.items() if text}
    return url_for("library.index", **named)
