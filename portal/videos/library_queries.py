"""Queries of the library, their orders and cursors. Pure.

The best matches come first, in tiers: videos with all words in the title; in title and tags; in
title, tags and description; and spoken, according to captions. In a tier the newest come first. A
tier is a tsquery that the index answers by itself. A computed rank would read and sort every
matching row, and could not be paged through while videos are added.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from math import isfinite
from typing import Self
from uuid import UUID

from portal.accounts.permissions import ANYONE, Principal, Right
from portal.database.models import Approval, VideoStatus, Visibility
from portal.database.search import WORD_FIELDS, query_words, words_query

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MAX_CURSOR_LENGTH = 1_000
CURSOR_PARTS = 3


class Sort(StrEnum):
    """Orders of the library, and of the columns of a table, in both directions."""

    RELEVANCE = "relevance"
    NEWEST = "newest"
    OLDEST = "oldest"
    TITLE = "title"
    TITLE_LAST = "title-last"
    LONGEST = "longest"
    SHORTEST = "shortest"
    LARGEST = "largest"
    SMALLEST = "smallest"
    # Failed videos come first.
    STATE = "state"
    STATE_LAST = "state-last"
    VISIBILITY = "visibility"
    VISIBILITY_LAST = "visibility-last"
    MOST_WATCHED = "-views"
    LEAST_WATCHED = "views"


@dataclass(frozen=True, slots=True)
class Order:
    """A unique order by an expression and the id. `backwards` reverses the tiers, too.

    Each order has an index of the expression and the id, which serves long libraries. `parse` reads
    a value of the expression, and raises `ValueError` or `OverflowError`.
    """

    key: str
    parse: Callable[[str], datetime | float | str]
    descending: bool = False
    backwards: bool = False

    def reverse(self) -> Self:
        """Return the order of the videos before a place, the nearest first."""
        return replace(self, descending=not self.descending, backwards=not self.backwards)

    def descend(self) -> Self:
        """Return the order with descending values."""
        return replace(self, descending=True)


def _moment(text: str) -> datetime:
    return EPOCH + int(text) * MICROSECOND


def _duration(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


OLDEST = Order("created_at", _moment)
TITLE = Order("sort_title", str)
# Videos without a known duration count as the shortest.
SHORTEST = Order("coalesce(duration_s, -1)", _duration)
SMALLEST = Order("size_bytes", int)
STATE = Order("status", str)
VISIBILITY = Order("visibility", str)
LEAST_WATCHED = Order("views", int)
ORDERS = {
    Sort.RELEVANCE: OLDEST.descend(),
    Sort.NEWEST: OLDEST.descend(),
    Sort.OLDEST: OLDEST,
    Sort.TITLE: TITLE,
    Sort.TITLE_LAST: TITLE.descend(),
    Sort.LONGEST: SHORTEST.descend(),
    Sort.SHORTEST: SHORTEST,
    Sort.LARGEST: SMALLEST.descend(),
    Sort.SMALLEST: SMALLEST,
    Sort.STATE: STATE,
    Sort.STATE_LAST: STATE.descend(),
    Sort.VISIBILITY: VISIBILITY,
    Sort.VISIBILITY_LAST: VISIBILITY.descend(),
    Sort.MOST_WATCHED: LEAST_WATCHED.descend(),
    Sort.LEAST_WATCHED: LEAST_WATCHED,
}
# Position of a video in a series. A series has far fewer videos than are sorted without an index.
POSITION = """(
  SELECT position FROM series_videos WHERE series_id = '{series_id}' AND video_id = videos.id
)"""
# Orders that tell how often videos were watched.
BY_VIEWS = frozenset({Sort.MOST_WATCHED, Sort.LEAST_WATCHED})


@dataclass(frozen=True, slots=True)
class Match:
    """Condition for videos: match a tsquery (an empty one matches all), or be in `is_said`.

    `is_said` has the videos with spoken matches. `only_said` excludes matches of the tsquery.
    """

    search: str
    is_said: tuple[UUID, ...] = ()
    only_said: bool = False


@dataclass(frozen=True, slots=True)
class Tier:
    """Matches of one rank; `whole` includes the matches of the tiers above."""

    number: int
    own: Match
    whole: Match


@dataclass(frozen=True)
class LibraryQuery:
    """Search, filters and order of a list of videos."""

    text: str = ""
    category_id: int | None = None
    status: VideoStatus | None = None
    tag: str = ""
    sort: Sort = Sort.NEWEST
    # The reader, whose audience rules limit the list. Owners find their unlisted videos.
    seen_by: Principal = ANYONE
    # Adds private videos whose page everyone may see, though not the film.
    includes_public_pages: bool = False
    # Leaves out failed videos that the reader can't edit.
    hides_failed: bool = False
    # Filter for the videos of one account.
    owner_id: UUID | None = None
    # Filter for videos of others in which the reader has this right by name or by a group.
    shared: Right | None = None
    visibility: Visibility | None = None
    # Filter for approved, waiting or refused videos.
    approval: Approval | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    # Filter for these videos, unless it is empty.
    ids: tuple[UUID, ...] = ()
    # Filter for the videos of a series that the reader may see, unlisted ones included.
    series_id: UUID | None = None
    # Orders the videos as in the series, instead of by `sort`.
    in_series_order: bool = False
    # Videos with spoken matches; empty before they were searched.
    is_said: tuple[UUID, ...] = ()
    # Columns of the videos that are read, with `id` among them.
    columns: tuple[str, ...] = ("id",)

    @cached_property
    def words(self) -> list[str]:
        """Words of the text that can be searched."""
        return query_words(self.text)

    @property
    def order(self) -> Order:
        """Return the order of the videos within a tier."""
        if self.in_series_order:
            return Order(POSITION.format(series_id=self.series_id), int)
        return ORDERS[self.sort]

    @property
    def is_filtered(self) -> bool:
        """Return whether a filter of the library's page is set."""
        return bool(self.text or self.category_id or self.status or self.tag or self.shared)

    @property
    def finds_nothing(self) -> bool:
        """Return whether nothing can match the text, as it is only punctuation."""
        return bool(self.text) and not self.words

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """Tiers from the best match on; a single one unless the order is by relevance."""
        if self.sort is Sort.RELEVANCE and self.words:
            return tuple(self._ranked())
        whole = Match(words_query(self.words), self.is_said)
        return (Tier(0, whole, whole),)

    def _ranked(self) -> Iterator[Tier]:
        above = ""
        for number in range(len(WORD_FIELDS)):
            words = words_query(self.words, fields=WORD_FIELDS[: number + 1])
            own = f"{words} & !({above})" if above else words
            yield Tier(number, Match(own), Match(words))
            above = words
        if self.is_said:
            whole = Match(above, self.is_said)
            yield Tier(len(WORD_FIELDS), replace(whole, only_said=True), whole)


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the library: after a video, in its order and tier."""

    tier: int
    value: datetime | float | str
    video_id: UUID

    def __str__(self) -> str:
        value = self.value
        text = (value - EPOCH) // MICROSECOND if isinstance(value, datetime) else value
        return f"{self.tier}-{self.video_id.hex}-{text}"

    @classmethod
    def parse(cls, text: str, query: LibraryQuery) -> Self | None:
        """Return the place that a text names; None if it names no place in the query."""
        parts = text[:MAX_CURSOR_LENGTH].replace("\0", "").split("-", CURSOR_PARTS - 1)
        if len(parts) != CURSOR_PARTS:
            return None
        try:
            place = cls(int(parts[0]), query.order.parse(parts[2]), UUID(hex=parts[1]))
        except (ValueError, OverflowError):
            return None
        # Spoken matches are not known yet, and may have their own tier.
        return place if place.tier in range(len(query.tiers) + 1) else None
