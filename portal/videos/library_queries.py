"""What can be asked of the library: queries, orders and cursors. Pure.

What best matches comes first, by tiers: videos with all words in the title, then those with all in
title and tags, then those with all in these and the description, and then those in which all are
said, as captions tell; the newest first in each. A tier is a tsquery that the index
answers by itself; a computed rank would have every matching row read and sorted, and could not be
paged through while videos are added.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from math import isfinite
from typing import Self
from uuid import UUID

from portal.accounts.permissions import ANYONE, Principal
from portal.database.models import VideoStatus, Visibility
from portal.database.search import WORD_FIELDS, query_words, words_query

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MAX_CURSOR_LENGTH = 1_000
CURSOR_PARTS = 3


class Sort(StrEnum):
    """The orders of the library, and those of a table's columns, from either end."""

    RELEVANCE = "relevance"
    NEWEST = "newest"
    OLDEST = "oldest"
    TITLE = "title"
    TITLE_LAST = "title-last"
    LONGEST = "longest"
    SHORTEST = "shortest"
    LARGEST = "largest"
    SMALLEST = "smallest"
    # What failed is first.
    STATE = "state"
    STATE_LAST = "state-last"
    VISIBILITY = "visibility"
    VISIBILITY_LAST = "visibility-last"


@dataclass(frozen=True, slots=True)
class Order:
    """A unique order: by an expression, then by id; `backwards` also tiers.

    Long libraries are walked along the index of the expression and the id, which each order has.
    `parse` reads a value of it, and raises `ValueError` or `OverflowError`.
    """

    key: str
    parse: Callable[[str], datetime | float | str]
    descending: bool = False
    backwards: bool = False

    def reverse(self) -> Self:
        """What comes before a place, the nearest first."""
        return replace(self, descending=not self.descending, backwards=not self.backwards)

    def descend(self) -> Self:
        """The same from its other end."""
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
}


@dataclass(frozen=True, slots=True)
class Match:
    """A condition for videos: to match a tsquery, which is empty for any document.

    Or to be one in which something `is_said`; `only_said` leaves those out that match the tsquery.
    """

    search: str
    is_said: tuple[UUID, ...] = ()
    only_said: bool = False


@dataclass(frozen=True, slots=True)
class Tier:
    """What matches so well; `whole` includes what the tiers above match."""

    number: int
    own: Match
    whole: Match


@dataclass(frozen=True)
class LibraryQuery:
    """What of the library is asked for."""

    text: str = ""
    category_id: int | None = None
    status: VideoStatus | None = None
    tag: str = ""
    sort: Sort = Sort.NEWEST
    # Limited to what they may see; unlisted videos are listed for their owner.
    seen_by: Principal = ANYONE
    # The account whose videos alone are wanted.
    owner_id: UUID | None = None
    visibility: Visibility | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    # If any, no others.
    ids: tuple[UUID, ...] = ()
    # In which the words are said, as far as they were looked for.
    is_said: tuple[UUID, ...] = ()

    @cached_property
    def words(self) -> list[str]:
        """What of the text can be searched."""
        return query_words(self.text)

    @property
    def is_filtered(self) -> bool:
        """Whether not the whole library is asked for."""
        return bool(self.text or self.category_id or self.status or self.tag)

    @property
    def finds_nothing(self) -> bool:
        """Whether a text was given that nothing can match, such as punctuation only."""
        return bool(self.text) and not self.words

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """From what matches best; a single one unless the best match is wanted first."""
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
    """A place in the library: right after a video, in the order and tier it was found in."""

    tier: int
    value: datetime | float | str
    video_id: UUID

    def __str__(self) -> str:
        value = self.value
        written = (value - EPOCH) // MICROSECOND if isinstance(value, datetime) else value
        return f"{self.tier}-{self.video_id.hex}-{written}"

    @classmethod
    def parse(cls, text: str, query: LibraryQuery) -> Self | None:
        """The place that this text names; None if it names none in what is asked for."""
        parts = text[:MAX_CURSOR_LENGTH].replace("\0", "").split("-", CURSOR_PARTS - 1)
        if len(parts) != CURSOR_PARTS:
            return None
        try:
            place = cls(int(parts[0]), ORDERS[query.sort].parse(parts[2]), UUID(hex=parts[1]))
        except (ValueError, OverflowError):
            return None
        # What is said is not known yet, and may be in a tier of its own.
        return place if place.tier in range(len(query.tiers) + 1) else None
