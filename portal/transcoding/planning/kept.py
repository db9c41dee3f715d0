"""Kept intervals of a film that is cut, and the times of the cut film. Pure.

A cut removes parts of a film. Times of the whole film count from its first frame; times of the cut
film count from the beginning of the first kept interval, without the removed parts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from math import inf, isfinite
from typing import NamedTuple, Self

from portal.locale.messages import Message, numeral
from portal.transcoding.captions.sentences import text_within
from portal.transcoding.packaging.webvtt import Cue

MAX_INTERVALS = 100
# A shorter interval would hardly be seen, and players can't play a segment without a frame.
SHORTEST_S = 0.5
# A bound is moved this far at most, to where a frame begins: half of 100 ms. A frame that is shown
# longer may be cut in the middle.
MOST_MOVED_S = 0.05
# Times that differ by less are the same.
ROUNDING_S = 0.001
# A cue or chapter of which less is left beside a cut is removed: such a rest can't be read, and is
# left because bounds are those of frames.
LEAST_REST_S = 0.3
LEAST_REST_OF_CUE = 0.1


class Interval(NamedTuple):
    """Part of a film, in seconds: from `start_s` to before `end_s`."""

    start_s: float
    end_s: float


class InvalidIntervals(ValueError):
    """The intervals can't be kept; `number` is that of the first wrong one, from 0, or None."""

    def __init__(self, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.number = number


@dataclass(frozen=True, slots=True)
class Kept:
    """Kept intervals of a film, in order and apart from each other."""

    intervals: tuple[Interval, ...]

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> Self:
        """Return the intervals that a row of the database has, as pairs of seconds."""
        return cls(tuple(Interval(start_s, end_s) for start_s, end_s in rows))

    @property
    def duration_s(self) -> float:
        """Return the length of the cut film."""
        return sum(end_s - start_s for start_s, end_s in self.intervals)

    @property
    def joins_s(self) -> tuple[float, ...]:
        """Return when each interval begins in the cut film; the first one begins at 0."""
        lengths_s = (end_s - start_s for start_s, end_s in self.intervals)
        return tuple(accumulate(lengths_s, initial=0.0))[: len(self.intervals)]

    def cut_time_s(self, at_s: float) -> float | None:
        """Return the time in the cut film of a time of the whole film; None if it was removed."""
        for (start_s, end_s), join_s in zip(self.intervals, self.joins_s, strict=True):
            if start_s <= at_s < end_s:
                return join_s + at_s - start_s
        return None

    def next_cut_time_s(self, at_s: float) -> float:
        """Return the time in the cut film of the first kept moment that isn't before a time.

        The result is the end of the cut film if nothing is kept after that time.
        """
        for (start_s, end_s), join_s in zip(self.intervals, self.joins_s, strict=True):
            if at_s < end_s:
                return join_s + max(0.0, at_s - start_s)
        return self.duration_s

    def whole_time_s(self, at_s: float) -> float:
        """Return the time in the whole film of a time of the cut film.

        The result is the end of the last interval for times after the cut film.
        """
        return self._moved_s(at_s, bisect_right(self.joins_s, at_s + ROUNDING_S) - 1)

    def whole_end_s(self, at_s: float) -> float:
        """Return the end in the whole film of what ends at a time of the cut film.

        At a join, the result is the end of the interval before.
        """
        return self._moved_s(at_s, bisect_left(self.joins_s, at_s - ROUNDING_S) - 1)

    def _moved_s(self, at_s: float, number: int) -> float:
        start_s, end_s = self.intervals[max(number, 0)]
        return min(start_s + max(0.0, at_s - self.joins_s[max(number, 0)]), end_s)

    def overlapping(self, start_s: float, end_s: float) -> Iterator[Interval]:
        """Yield the kept parts of a span of the whole film, in times of the whole film."""
        for interval in self.intervals:
            part = Interval(max(interval.start_s, start_s), min(interval.end_s, end_s))
            if part.start_s < part.end_s:
                yield part

    def cut_cues(self, cues: Iterable[Cue]) -> list[Cue]:
        """Return the cues of the cut film, from those of the whole film.

        A cue over a removed part becomes one cue over the join, without the words that are spoken
        in the removed part.
        """
        cut = []
        for cue in cues:
            parts = list(self.overlapping(cue.start_s, cue.end_s))
            length_s = sum(part.end_s - part.start_s for part in parts)
            whole_s = cue.end_s - cue.start_s
            text = cue.text
            if length_s < whole_s - ROUNDING_S:
                is_rest = length_s >= max(LEAST_REST_S, whole_s * LEAST_REST_OF_CUE)
                text = text_within(cue, parts) if is_rest else ""
            if parts and text:
                start_s = self.next_cut_time_s(parts[0].start_s)
                cut.append(replace(cue, start_s=start_s, end_s=start_s + length_s, text=text))
        return cut

    def whole_cues(self, cues: Iterable[Cue], former: Iterable[Cue]) -> list[Cue]:
        """Return the cues of the whole film, from those of the cut film.

        `former` are the cues that the whole film had. Their words in removed parts stay, and so do
        those that are unchanged in the cut film. A changed cue over a join becomes one for each
        side of the removed part.
        """
        whole = []
        unchanged: dict[tuple[int, int, str, str], list[Cue]] = {}
        for cue in former:
            if cut := self.cut_cues([cue]):
                unchanged.setdefault(_identity(cut[0]), []).append(cue)
            else:
                whole.append(cue)
        for cue in cues:
            if same := unchanged.get(_identity(cue)):
                whole.append(same.pop(0))
            else:
                sides = list(self._sides_of(cue))
                is_divided = len(sides) > 1
                whole += [
                    replace(cue, start_s=part.start_s, end_s=part.end_s, text=text)
                    for spoken, part in sides
                    if (text := text_within(cue, [spoken]) if is_divided else cue.text)
                ]
        bounds_s = [0.0, *chain.from_iterable(self.intervals), inf]
        removed = Kept(tuple(map(Interval, bounds_s[::2], bounds_s[1::2])))
        for cue in chain.from_iterable(unchanged.values()):
            whole += [
                replace(cue, start_s=part.start_s, end_s=part.end_s, text=text)
                for part in removed.overlapping(cue.start_s, cue.end_s)
                if (text := text_within(cue, [part]))
            ]
        return sorted(whole, key=lambda cue: cue.start_s)

    def around_cuts(self, cue: Cue) -> Cue:
        """Return a cue of the cut film at times of the whole film, over removed parts in it."""
        start_s = self.whole_time_s(cue.start_s)
        return replace(cue, start_s=start_s, end_s=self.whole_end_s(cue.end_s))

    def _sides_of(self, cue: Cue) -> Iterator[tuple[Interval, Interval]]:
        """Yield the kept parts of a cue of the cut film, in times of the cut and the whole film."""
        whole = self.around_cuts(cue)
        for part in self.overlapping(whole.start_s, whole.end_s):
            from_s = self.next_cut_time_s(part.start_s)
            yield Interval(from_s, from_s + part.end_s - part.start_s), part


def _identity(cue: Cue) -> tuple[int, int, str, str]:
    """Return what makes two cues the same, with times as WebVTT rounds them."""
    return round(cue.start_s * 1000), round(cue.end_s * 1000), cue.text, cue.settings


def check_intervals(intervals: Sequence[Interval], *, film_s: float) -> Kept | None:
    """Return the kept intervals that a person asks for; None if they keep the whole film.

    Intervals that touch become one; `film_s` is the length of the film, where a later end is moved.
    Raises `InvalidIntervals`.
    """
    if not intervals:
        raise InvalidIntervals(Message("Keep at least one interval."))
    if len(intervals) > MAX_INTERVALS:
        message = Message("Keep at most %(limit)s intervals.", limit=MAX_INTERVALS)
        raise InvalidIntervals(message, MAX_INTERVALS)
    for number, interval in enumerate(intervals):
        if fault := _fault_of(interval, film_s):
            raise InvalidIntervals(fault, number)
    for number, (before, after) in enumerate(pairwise(intervals), 1):
        if after.start_s < before.end_s - ROUNDING_S:
            fault = Message(
                "The interval overlaps the one before it. Begin it after that one ends."
            )
            raise InvalidIntervals(fault, number)
    keep = Kept(tuple(_joined(intervals, film_s)))
    is_whole = len(keep.intervals) == 1 and keep.duration_s > film_s - 2 * ROUNDING_S
    return None if is_whole else keep


def _fault_of(interval: Interval, film_s: float) -> str:
    """Return why an interval can't be kept, and the remedy; empty if it can."""
    start_s, end_s = interval
    if not (isfinite(start_s) and isfinite(end_s)):
        return Message("Give the times as numbers of seconds.")
    if start_s < 0 or start_s >= film_s:
        return Message(
            "The interval begins outside the film. Begin it between 0 and %(end)s s.",
            end=numeral(film_s, 3),
        )
    if min(end_s, film_s) - start_s < SHORTEST_S - ROUNDING_S:
        return Message(
            "The interval is shorter than %(least)s s. Make it longer, or leave it out.",
            least=numeral(SHORTEST_S),
        )
    return ""


def _joined(intervals: Sequence[Interval], film_s: float) -> Iterator[Interval]:
    """Yield the intervals, with those that touch joined, and ends after the film moved to it."""
    start_s, end_s = intervals[0]
    for interval in intervals[1:]:
        if interval.start_s > end_s + ROUNDING_S:
            yield Interval(start_s, end_s)
            start_s = interval.start_s
        end_s = interval.end_s
    yield Interval(start_s, min(end_s, film_s))
