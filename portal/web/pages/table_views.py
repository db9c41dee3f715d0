"""What the template of the table sees: its columns, which sort, and its rows."""

from dataclasses import dataclass, replace

from portal.accounts.permissions import Principal
from portal.database.models import Video
from portal.database.states import Visibility
from portal.videos.library import Work
from portal.videos.library_queries import ORDERS, LibraryQuery, Sort
from portal.web.pages.formatting import Size, size
from portal.web.pages.library_views import TABLE, VideoCard, listing_url, video_card

# By the name of a column: its words, the order that choosing it gives, and the other way round.
COLUMNS = {
    "title": ("Title", Sort.TITLE, Sort.TITLE_LAST),
    "state": ("Status", Sort.STATE, Sort.STATE_LAST),
    "visibility": ("Visibility", Sort.VISIBILITY, Sort.VISIBILITY_LAST),
    "length": ("Length", Sort.LONGEST, Sort.SHORTEST),
    "size": ("Size", Sort.LARGEST, Sort.SMALLEST),
    "date": ("Published", Sort.NEWEST, Sort.OLDEST),
}
VISIBILITY_WORDS = {
    Visibility.PUBLIC: "Public",
    Visibility.UNLISTED: "Unlisted",
    Visibility.PRIVATE: "Private",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column's head: `url` sorts by it; `sorted` is the value of `aria-sort`, if it is."""

    name: str
    words: str
    url: str
    sorted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoRow:
    """A video in the table: what its card shows, and what only who may change it needs."""

    card: VideoCard
    visibility: str
    size: Size


def columns(query: LibraryQuery, *, whose: str) -> list[Column]:
    """The columns that sort, for this query."""
    return [
        Column(
            name=name,
            words=words,
            url=listing_url(
                replace(query, sort=other if query.sort is first else first),
                endpoint=TABLE,
                whose=whose,
            ),
            sorted=_direction(query.sort) if query.sort in (first, other) else "",
        )
        for name, (words, first, other) in COLUMNS.items()
    ]


def video_row(video: Video, work: Work | None, *, seen_by: Principal) -> VideoRow:
    """A video as the table shows it."""
    return VideoRow(
        card=video_card(video, work, seen_by=seen_by),
        visibility=VISIBILITY_WORDS[video.visibility],
        size=size(video.size_bytes),
    )


def _direction(sort: Sort) -> str:
    return "descending" if ORDERS[sort].descending else "ascending"
