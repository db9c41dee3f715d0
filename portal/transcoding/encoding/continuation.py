"""The runs that a pass is made in: which segments each makes, and after which frame. Pure.

One run of ffmpeg makes segments that follow each other. Mostly a pass is one run over the whole
film. It is several when one goes on after what an earlier attempt made, or when other workers make
later parts of the film at the same time. Either way a run makes what one over the whole film would
have made there: the same frames at the same times, cut at the same places. What it goes on after
is whole segments. Its own have other names than those of the runs before it, so that a worker whose
lease has run out, and which still writes, overwrites none of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, takewhile
from typing import Protocol

from portal.transcoding.packaging.cmaf import SegmentFacts, time_scale
from portal.transcoding.planning.ladder import Rung
from portal.transcoding.probing.cuts import SEGMENT_S

_ROUNDING_S = 0.002
# A source tells its end about so well.
_END_ROUNDING_S = 0.5


class NotContinuable(Exception):
    """What was made of a pass does not fit what would follow it: that is to be made again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeSegment:
    """A segment of an encoded rendition that is in storage."""

    uri: str
    size_bytes: int
    duration_s: float
    facts: SegmentFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeRendition:
    """What a run goes on after: a rendition's init segment, and segments that follow each other.

    `origin_ticks` is when the film's first frame is shown; None stands for the first segment's.
    """

    init: bytes
    segments: tuple[MadeSegment, ...]
    origin_ticks: int | None = None

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return sum(segment.facts.sample_count for segment in self.segments)

    @property
    def scale(self) -> int:
        """The ticks a second of the segments' times."""
        return time_scale(self.init)

    def time_s(self, ticks: int) -> Fraction:
        """When something is shown, from the start of the film."""
        origin = self.origin_ticks
        origin = self.segments[0].facts.from_ticks if origin is None else origin
        return Fraction(ticks - origin, self.scale)


# When the segments of a film begin; None where only its frames tell.
Starts = Sequence[float] | None
# Told of a rendition, the number of a segment, and the segment, once that is in storage.
OnMade = Callable[[str, int, MadeSegment], None]


@dataclass(slots=True)
class Run:
    """Segments `first` to before `end` of a pass's renditions, or all that follow.

    Segments of the whole film begin at `starts_s`. Of this run's there is already what is `made`,
    from the first on. The names of new ones begin with `prefix`.
    Who shares the pass may bring the `end` nearer while the run is made, and tells which share of
    the film others have made meanwhile (`elsewhere`).
    """

    starts_s: Starts = None
    first: int = 0
    end: int | None = None
    made: Mapping[str, MadeRendition] = field(default_factory=dict)
    prefix: str = ""
    elsewhere: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Whether this is the whole film, from its beginning, and nobody shares it."""
        return not self.made and self.end is None

    @property
    def last(self) -> int | None:
        """The number of the last segment; None when that is the film's."""
        is_open = self.end is None or self.starts_s is None or self.end >= len(self.starts_s)
        return None if is_open else (self.end or 0) - 1

    def span_s(self, duration_s: float) -> tuple[float, float]:
        """From when to when it goes in a film of this duration."""
        starts_s = self.starts_s or (0.0,)
        until_s = duration_s if self.last is None else starts_s[self.last + 1]
        return starts_s[self.first], until_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole:
    """What several runs have made: whole renditions, and what was wrong with the source."""

    renditions: Mapping[str, MadeRendition]
    faults: int = 0
    network_faults: int = 0


class Runs(Protocol):
    """The runs of one pass, to be made one after another by who calls."""

    async def begin(self, starts_s: Starts) -> None:
        """The pass begins, whose segments begin at these times."""

    async def next(self) -> Run | None:
        """The next to make; None when all of the film is made, by whomever."""

    async def done(self, run: Run, *, faults: int, network_faults: int) -> None:
        """A run is made, and its segments are in storage, with so many faults in the source."""

    async def whole(self) -> Whole | None:
        """All that is made of the pass; None when it was one run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation:
    """Where a run begins that does not begin the film.

    All renditions have the same number of `made` segments from `first` on. Without any, the run
    begins `begins_s` after the film's start, where the frame before it is shown at `before_s`.
    """

    made: Mapping[str, MadeRendition]
    prefix: str
    first: int = 0
    begins_s: Fraction = Fraction(0)
    before_s: Fraction = Fraction(0)

    @property
    def number(self) -> int:
        """The number of the first segment to make."""
        return self.first + len(self._any.segments)

    @property
    def after_s(self) -> Fraction:
        """When the last frame before the first one to make is shown."""
        made = self._any
        return made.time_s(made.segments[-1].facts.last_ticks) if made.segments else self.before_s

    @property
    def from_s(self) -> Fraction:
        """When the first segment to make begins."""
        made = self._any
        return made.time_s(made.segments[-1].facts.until_ticks) if made.segments else self.begins_s

    @property
    def frames(self) -> int:
        """How many frames of each rendition there are."""
        return self._any.frames

    @property
    def _any(self) -> MadeRendition:
        return next(iter(self.made.values()))


def continue_after(
    run: Run, rungs: Sequence[Rung], *, end_s: float | None, before_s: Fraction
) -> Continuation | None:
    """Where a run of these rungs begins; None at the film's beginning.

    `end_s` is where the film ends, None when that is not known; `before_s` as in `Continuation`.
    Raises NotContinuable when something else was made, or nothing that is of use.
    """
    if not run.made:
        return None
    if run.made.keys() != {rung.name for rung in rungs}:
        raise NotContinuable("other renditions were begun")
    counts = [_whole_segments(run, rung, end_s) for rung in rungs]
    number = min(counts)
    if not number and not run.first:
        raise NotContinuable("no segment is whole")
    kept = {
        name: MadeRendition(
            init=it.init, segments=it.segments[:number], origin_ticks=it.origin_ticks
        )
        for name, it in run.made.items()
    }
    begins_s = Fraction((run.starts_s or (0.0,))[run.first])
    found = Continuation(
        made=kept, prefix=run.prefix, first=run.first, begins_s=begins_s, before_s=before_s
    )
    ends = {(it.scale, it.segments[-1].facts.last_ticks) for it in kept.values() if it.segments}
    # The first frame may be shown before its time, which tells nothing of what follows.
    if len(ends) > 1 or found.after_s <= 0:
        raise NotContinuable("the renditions end at different times, or at once")
    return found


def _whole_segments(run: Run, rung: Rung, end_s: float | None) -> int:
    """How many segments end where one ends in the whole film.

    An encoder that is told to end closes the segment it is at. The film's own last segment counts
    as such a one: something is left to make.
    """
    rendition = run.made[rung.name]
    segments = rendition.segments
    if run.starts_s is None:
        shortest = (SEGMENT_S - _ROUNDING_S) * rendition.scale
        last_s = math.inf if end_s is None else end_s - _END_ROUNDING_S
        facts = (segment.facts for segment in segments)
        whole = takewhile(
            lambda it: (
                it.until_ticks - it.from_ticks >= shortest
                and rendition.time_s(it.until_ticks) < last_s
            ),
            facts,
        )
        return len(list(whole))
    ends_s = (float(rendition.time_s(segment.facts.until_ticks)) for segment in segments)
    tolerance_s = float(1 / rung.fps) + _ROUNDING_S
    pairs = zip(ends_s, run.starts_s[run.first + 1 :], strict=False)
    return len(list(takewhile(lambda pair: pair[0] >= pair[1] - tolerance_s, pairs)))


def check_join(continuation: Continuation, name: str, init: bytes, facts: SegmentFacts) -> None:
    """Raise NotContinuable unless a rendition's first new segment follows what was made of it."""
    rendition = continuation.made[name]
    if init != rendition.init:
        raise NotContinuable(f"{name} is encoded in another way")
    if rendition.segments and (gap_s := _gap_s(rendition, rendition.segments[-1].facts, facts)):
        raise NotContinuable(f"{name} goes on {gap_s:.3f} s after its end")


def broken_joins(renditions: Mapping[str, MadeRendition]) -> Iterator[int]:
    """The numbers of segments that do not follow the one before, of renditions that are whole."""
    for rendition in renditions.values():
        facts = [segment.facts for segment in rendition.segments]
        for number, (one, other) in enumerate(pairwise(facts), start=1):
            if _gap_s(rendition, one, other):
                yield number


def _gap_s(rendition: MadeRendition, one: SegmentFacts, other: SegmentFacts) -> float:
    """How long after one segment's end another begins; 0 when that can't be noticed."""
    gap_s = (other.from_ticks - one.until_ticks) / rendition.scale
    return gap_s if abs(gap_s) > _ROUNDING_S else 0.0
