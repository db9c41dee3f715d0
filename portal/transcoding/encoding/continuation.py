"""Runs of a pass: the segments that each run makes, and where it begins. Pure.

A run is one process of ffmpeg, which makes consecutive segments. Usually a pass is one run over the
whole film. It has several runs when it resumes after the segments of an earlier attempt, or when
other workers make later parts of the film at the same time. A run makes the segments that one run
over the whole film would make there: the same frames at the same times, cut at the same places. It
begins after whole segments. Its segments have other names than those of earlier runs, so that a
worker that lost its lease, and still writes, overwrites none of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise, takewhile
from typing import Protocol

from portal.transcoding.packaging.cmaf import SegmentFacts, time_scale
from portal.transcoding.planning.ladder import Rung
from portal.transcoding.probing.cuts import SEGMENT_S

_ROUNDING_S = 0.002
# Precision of the end of a source that is known before it is read.
_END_ROUNDING_S = 0.5


class NotContinuable(Exception):
    """The existing segments of a pass don't fit those that would follow; the pass must restart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeSegment:
    """Segment of an encoded rendition in storage."""

    uri: str
    size_bytes: int
    duration_s: float
    facts: SegmentFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeRendition:
    """Init segment and consecutive segments of a rendition, after which a run begins.

    `origin_ticks` is when the film's first frame is shown; None means the first segment's.
    """

    init: bytes
    segments: tuple[MadeSegment, ...]
    origin_ticks: int | None = None

    @property
    def frames(self) -> int:
        """Return the number of frames."""
        return sum(segment.facts.sample_count for segment in self.segments)

    @property
    def scale(self) -> int:
        """Return the ticks per second of the segments' times."""
        return time_scale(self.init)

    def time_s(self, ticks: int) -> Fraction:
        """Return the seconds from the start of the film to a time in ticks."""
        origin = self.origin_ticks
        if origin is None:
            origin = self.segments[0].facts.from_ticks
        return Fraction(ticks - origin, self.scale)


# Times when the segments of a film begin; None where they depend on its frames.
Starts = Sequence[float] | None
# Called with a rendition, the number of a segment, and the segment, once it is in storage.
OnMade = Callable[[str, int, MadeSegment], None]


@dataclass(slots=True)
class Run:
    """Segments from `first` to before `end` of a pass's renditions, or all from `first` on.

    Segments of the whole film begin at `starts_s`. Of this run's segments, `made` already exist,
    from the first on. The names of new segments begin with `prefix`.
    While the run is made, the pass may move its `end` nearer, and sets the share of the film that
    other workers have made (`elsewhere`).
    """

    starts_s: Starts = None
    first: int = 0
    end: int | None = None
    made: Mapping[str, MadeRendition] = field(default_factory=dict)
    prefix: str = ""
    elsewhere: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Return whether the run is the whole film, and not shared."""
        return not self.made and self.end is None

    @property
    def last(self) -> int | None:
        """Return the number of the last segment; None if it is the film's last."""
        is_open = self.end is None or self.starts_s is None or self.end >= len(self.starts_s)
        return None if is_open else (self.end or 0) - 1

    def span_s(self, duration_s: float) -> tuple[float, float]:
        """Return when the run begins and ends in a film of this duration."""
        starts_s = self.starts_s or (0.0,)
        until_s = duration_s if self.last is None else starts_s[self.last + 1]
        return starts_s[self.first], until_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole:
    """Whole renditions that several runs have made, and the faults found in the source."""

    renditions: Mapping[str, MadeRendition]
    faults: int = 0
    network_faults: int = 0


class Runs(Protocol):
    """Runs of one pass, which the caller makes one after another."""

    async def begin(self, starts_s: Starts) -> None:
        """Begin the pass, whose segments begin at these times."""

    async def next(self) -> Run | None:
        """Return the next run to make; None when the whole film is made."""

    async def done(self, run: Run, *, faults: int, network_faults: int) -> None:
        """Record that a run's segments are in storage, and the number of faults in the source."""

    async def whole(self) -> Whole | None:
        """Return all renditions of the pass; None if the pass was one run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation:
    """Beginning of a run within the film.

    All renditions have the same number of `made` segments from `first` on. Without such segments,
    the run begins `begins_s` after the film's start, and the frame before it is shown at
    `before_s`.
    """

    made: Mapping[str, MadeRendition]
    prefix: str
    first: int = 0
    begins_s: Fraction = Fraction(0)
    before_s: Fraction = Fraction(0)

    @property
    def number(self) -> int:
        """Return the number of the first segment to make."""
        return self.first + len(self._any_rendition.segments)

    @property
    def after_s(self) -> Fraction:
        """Return when the last frame before the run is shown."""
        rendition = self._any_rendition
        if not rendition.segments:
            return self.before_s
        return rendition.time_s(rendition.segments[-1].facts.last_ticks)

    @property
    def from_s(self) -> Fraction:
        """Return when the first segment to make begins."""
        rendition = self._any_rendition
        if not rendition.segments:
            return self.begins_s
        return rendition.time_s(rendition.segments[-1].facts.until_ticks)

    @property
    def frames(self) -> int:
        """Return the number of existing frames of each rendition."""
        return self._any_rendition.frames

    @property
    def _any_rendition(self) -> MadeRendition:
        return next(iter(self.made.values()))


def continue_after(
    run: Run, rungs: Sequence[Rung], *, end_s: float | None, before_s: Fraction
) -> Continuation | None:
    """Return where a run of these rungs begins; None at the film's beginning.

    `end_s` is where the film ends, None if that is unknown; `before_s` is as in `Continuation`.
    Raises NotContinuable if other renditions were made, or no whole segment.
    """
    if not run.made:
        return None
    if run.made.keys() != {rung.name for rung in rungs}:
        raise NotContinuable("other renditions were begun")
    number = min(_whole_segment_count(run, rung, end_s) for rung in rungs)
    if not number and not run.first:
        raise NotContinuable("no segment is whole")
    renditions = {
        name: replace(rendition, segments=rendition.segments[:number])
        for name, rendition in run.made.items()
    }
    begins_s = Fraction((run.starts_s or (0.0,))[run.first])
    continuation = Continuation(
        made=renditions, prefix=run.prefix, first=run.first, begins_s=begins_s, before_s=before_s
    )
    ends = {
        (rendition.scale, rendition.segments[-1].facts.last_ticks)
        for rendition in renditions.values()
        if rendition.segments
    }
    # The film's first frame may be shown before its time, so later times don't follow from it.
    if len(ends) > 1 or continuation.after_s <= 0:
        raise NotContinuable("the renditions end at different times, or with the first frame")
    return continuation


def _whole_segment_count(run: Run, rung: Rung, end_s: float | None) -> int:
    """Return how many segments end where segments of the whole film end.

    An encoder that is stopped ends its segment early. The film's last segment is not counted
    either, so that a run has something to make.
    """
    rendition = run.made[rung.name]
    segments = rendition.segments
    if run.starts_s is None:
        shortest = (SEGMENT_S - _ROUNDING_S) * rendition.scale
        last_s = math.inf if end_s is None else end_s - _END_ROUNDING_S
        whole = takewhile(
            lambda facts: (
                facts.until_ticks - facts.from_ticks >= shortest
                and rendition.time_s(facts.until_ticks) < last_s
            ),
            (segment.facts for segment in segments),
        )
        return len(list(whole))
    ends_s = (float(rendition.time_s(segment.facts.until_ticks)) for segment in segments)
    tolerance_s = float(1 / rung.fps) + _ROUNDING_S
    pairs = zip(ends_s, run.starts_s[run.first + 1 :], strict=False)
    return len(list(takewhile(lambda pair: pair[0] >= pair[1] - tolerance_s, pairs)))


def check_join(continuation: Continuation, name: str, init: bytes, facts: SegmentFacts) -> None:
    """Raise NotContinuable unless a rendition's first new segment follows its last existing one."""
    rendition = continuation.made[name]
    if init != rendition.init:
        raise NotContinuable(f"{name} has another init segment")
    if rendition.segments and (gap_s := _gap_s(rendition, rendition.segments[-1].facts, facts)):
        raise NotContinuable(f"{name} continues {gap_s:.3f} s after its end")


def broken_joins(renditions: Mapping[str, MadeRendition]) -> Iterator[int]:
    """Yield the numbers of segments of whole renditions that don't follow the one before."""
    for rendition in renditions.values():
        facts = [segment.facts for segment in rendition.segments]
        for number, (before, after) in enumerate(pairwise(facts), start=1):
            if _gap_s(rendition, before, after):
                yield number


def _gap_s(rendition: MadeRendition, before: SegmentFacts, after: SegmentFacts) -> float:
    """Return the time between two segments; 0 if it is too short to be noticed."""
    gap_s = (after.from_ticks - before.until_ticks) / rendition.scale
    return gap_s if abs(gap_s) > _ROUNDING_S else 0.0
