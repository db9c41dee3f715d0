"""Decide where the segments of a copied stream end, by the times of its IDR pictures. Pure.

The probe computes the bit rates of segments by the same rule as the copy. Only the standard library
is imported, for the child processes.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

# Longest distance of key frames; longer segments are bad for switching. EXT-X-TARGETDURATION rounds
# this to ten seconds. 250 frames of film, a common distance, take 10.43 s.
MAX_GOP_S = 10.5
# Least length of a segment, which ends at the first IDR picture after it.
SEGMENT_S = 4
# Least length of the last segment; some players fail at one of a few frames.
SHORTEST_END_S = 0.1
# A segment that would be longer than this ends at an earlier IDR picture, if it is then not shorter
# than `_SHORTEST_S`.
_LATE_S = 6
_SHORTEST_S = 2


@dataclass(slots=True)
class Segmenter:
    """Decision about the ends of segments, while IDR pictures are read. Times are in ticks.

    `start` is where the current segment begins.
    """

    start: int
    ticks_per_s: int
    _ends: list[int] = field(default_factory=list)

    def push(self, key: int) -> list[int]:
        """Add an IDR picture, or the end, and return the ends of segments that are now certain."""
        if key - self.start < _SHORTEST_S * self.ticks_per_s:
            return []
        self._ends.append(key)
        certain = []
        # All possible ends but the last are less than `SEGMENT_S` after the start.
        while self._ends and self._ends[-1] - self.start >= SEGMENT_S * self.ticks_per_s:
            is_late = self._ends[-1] - self.start > _LATE_S * self.ticks_per_s
            self.start = self._ends[-2 if is_late and len(self._ends) > 1 else -1]
            certain.append(self.start)
            shortest = self.start + _SHORTEST_S * self.ticks_per_s
            self._ends = [end for end in self._ends if end >= shortest]
        return certain


def peak_bitrate_bps(
    keys: Sequence[int], bytes_before: Sequence[int], *, ticks_per_s: int
) -> int | None:
    """Return the highest bit rate of a segment of a stream; None if the stream has no duration.

    `keys` are the times of its IDR pictures and of its end, rising, in ticks, and `bytes_before`
    the bytes that are stored before each. A last segment of a few frames doesn't count as a burst.
    """
    shortest = min(_SHORTEST_S * ticks_per_s, keys[-1] - keys[0])
    if shortest <= 0:
        return None
    segmenter = Segmenter(keys[0], ticks_per_s)
    bounds = [keys[0], *(end for key in keys[1:] for end in segmenter.push(key))]
    if bounds[-1] != keys[-1]:
        bounds.append(keys[-1])
    segments = pairwise((bound, bytes_before[bisect_left(keys, bound)]) for bound in bounds)
    return max(
        round(8 * (until - since) * ticks_per_s / max(end - start, shortest))
        for (start, since), (end, until) in segments
    )
