"""Where a stream that is copied is cut into segments, by the times of its IDR pictures. Pure.

Both the probe, which computes from the index what a segment may weigh, and the copy itself ask
here, so that they agree. Standard library only, for the sake of the child processes.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

# Key frames further apart make segments too long to switch at. These are ten seconds as
# EXT-X-TARGETDURATION counts them: 250 frames of film, a common limit, are 10.43.
MAX_GOP_S = 10.5
# A segment ends at the first IDR picture this long after its start, or later.
SEGMENT_S = 4
# Players stumble over a last segment of a few frames. The rest of a film after a cut lasts longer.
SHORTEST_END_S = 0.1
# When that one comes later than this, and another did before that leaves the segment not too
# short, it ends there.
_LATE_S = 6
_SHORTEST_S = 2


@dataclass(slots=True)
class Cutter:
    """Decides where segments end while IDR pictures come in. Times are in ticks.

    `start` is where the present segment begins.
    """

    start: int
    ticks_per_s: int
    _ends: list[int] = field(default_factory=list)

    def push(self, key: int) -> list[int]:
        """The segments' ends that are certain now that an IDR picture, or the end, is at `key`."""
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
            self._ends = [each for each in self._ends if each >= shortest]
        return certain


def peak_bitrate_bps(
    keys: Sequence[int], bytes_before: Sequence[int], *, ticks_per_s: int
) -> int | None:
    """The highest rate of any segment of a stream; None for one without a duration.

    `keys` are the times of its IDR pictures and of its end, rising, in ticks, and `bytes_before`
    what is stored before each. A last segment of a few frames is no burst.
    """
    shortest = min(_SHORTEST_S * ticks_per_s, keys[-1] - keys[0])
    if shortest <= 0:
        return None
    cutter = Cutter(keys[0], ticks_per_s)
    cuts = [keys[0], *(cut for key in keys[1:] for cut in cutter.push(key))]
    if cuts[-1] != keys[-1]:
        cuts.append(keys[-1])
    segments = pairwise((cut, bytes_before[bisect_left(keys, cut)]) for cut in cuts)
    return max(
        round(8 * (until - since) * ticks_per_s / max(end - start, shortest))
        for (start, since), (end, until) in segments
    )
