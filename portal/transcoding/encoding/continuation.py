"""Go on with renditions that an earlier run began: from which segment, and after which frame. Pure.

What is kept of a run that ended early are its whole segments. The run that goes on makes what
follows them, as the first would have: the same frames at the same times, cut at the same places.
Its segments have other names than the first run's, so that a worker whose lease has run out, and
which still writes, overwrites none of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile

from portal.transcoding.packaging.cmaf import SegmentFacts, time_scale
from portal.transcoding.planning.ladder import Rung
from portal.transcoding.probing.cuts import SEGMENT_S

_ROUNDING_S = 0.002
# A source tells its end about so well.
_END_ROUNDING_S = 0.5
# How full x264 takes a new decoder's buffer to be, and what it needs for a first frame.
_NEW_BUFFER_SHARE, _LEAST_BUFFER_SHARE = 0.9, 0.2


class NotContinuable(Exception):
    """What an earlier run made does not fit what would follow it: all is to be made again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeSegment:
    """A segment of an encoded rendition that is in storage."""

    uri: str
    size_bytes: int
    duration_s: float
    facts: SegmentFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeRendition:
    """What there is of a rendition: its init segment, and its segments from the first on."""

    init: bytes
    segments: tuple[MadeSegment, ...]

    @property
    def scale(self) -> int:
        """The ticks a second of the segments' times."""
        return time_scale(self.init)

    def time_s(self, ticks: int) -> Fraction:
        """When something is shown, from the start of the film."""
        return Fraction(ticks - self.segments[0].facts.from_ticks, self.scale)


# Told of a rendition, the number of a segment, and the segment, once that is in storage.
OnMade = Callable[[str, int, MadeSegment], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation:
    """A run that goes on after the `made` segments; all renditions have the same number of them.

    The names of its own segments begin with `prefix`.
    """

    made: Mapping[str, MadeRendition]
    prefix: str

    @property
    def number(self) -> int:
        """The number of the first segment to make."""
        return len(self._any.segments)

    @property
    def after_s(self) -> Fraction:
        """When the last frame there is is shown."""
        return self._any.time_s(self._any.segments[-1].facts.last_ticks)

    @property
    def from_s(self) -> Fraction:
        """When the first segment to make begins."""
        return self._any.time_s(self._any.segments[-1].facts.until_ticks)

    @property
    def frames(self) -> int:
        """How many frames of each rendition there are."""
        return sum(segment.facts.sample_count for segment in self._any.segments)

    @property
    def _any(self) -> MadeRendition:
        return next(iter(self.made.values()))

    def buffer_bits(self, rung: Rung) -> int:
        """How full the decoder's buffer is after what was made, so that the cap holds across."""
        rendition, full = self.made[rung.name], round(rung.buffer_bits * _NEW_BUFFER_SHARE)
        bits, least = full, round(rung.buffer_bits * _LEAST_BUFFER_SHARE)
        for segment in rendition.segments:
            length = segment.facts.until_ticks - segment.facts.from_ticks
            arrived = rung.max_bitrate_bps * length // rendition.scale
            bits = max(least, min(full, bits + arrived - segment.size_bytes * 8))
        return bits


def continue_after(
    made: Mapping[str, MadeRendition],
    rungs: Sequence[Rung],
    *,
    starts_s: Sequence[float] | None,
    end_s: float | None,
    prefix: str,
) -> Continuation:
    """What a run that makes these rungs goes on after; `starts_s` as in `command.Encode`.

    `end_s` is where the film ends, None when that is not known. Raises NotContinuable when
    something else was made, or nothing that is of use.
    """
    if made.keys() != {rung.name for rung in rungs}:
        raise NotContinuable("other renditions were begun")
    counts = [_whole_segments(made[rung.name], rung, starts_s, end_s) for rung in rungs]
    number = min(counts)
    if not number:
        raise NotContinuable("no segment is whole")
    kept = {
        name: MadeRendition(init=it.init, segments=it.segments[:number])
        for name, it in made.items()
    }
    found = Continuation(made=kept, prefix=prefix)
    ends = {(it.scale, it.segments[-1].facts.last_ticks) for it in kept.values()}
    # The first frame may be shown before its time, which tells nothing of what follows.
    if len(ends) > 1 or found.after_s <= 0:
        raise NotContinuable("the renditions end at different times, or at once")
    return found


def _whole_segments(
    rendition: MadeRendition, rung: Rung, starts_s: Sequence[float] | None, end_s: float | None
) -> int:
    """How many segments end where one ends in the whole film.

    An encoder that is told to end closes the segment it is at. The film's own last segment counts
    as such a one: something is left to make.
    """
    segments = rendition.segments
    if starts_s is None:
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
    pairs = zip(ends_s, starts_s[1:], strict=False)
    return len(list(takewhile(lambda pair: abs(pair[0] - pair[1]) <= tolerance_s, pairs)))


def check_join(continuation: Continuation, name: str, init: bytes, facts: SegmentFacts) -> None:
    """Raise NotContinuable unless a rendition's first new segment follows what was made of it."""
    rendition = continuation.made[name]
    if init != rendition.init:
        raise NotContinuable(f"{name} is encoded in another way")
    gap_s = (facts.from_ticks - rendition.segments[-1].facts.until_ticks) / rendition.scale
    if abs(gap_s) > _ROUNDING_S:
        raise NotContinuable(f"{name} goes on {gap_s:.3f} s after its end")
