"""Whether the frames of a video stand on a grid, and on which. Pure.

Recorders and editors round times, and capture jitters; what was meant is one rate all the same.
Two averages can't tell that from frames that come and go, so every frame's time is looked at.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

# A frame this far from its place still belongs there, but sound must not part from its picture: the
# second is half of what is noticed (ITU-R BT.1359: 45 ms early).
_TOLERANCE_FRAMES = Fraction(1, 3)
_TOLERANCE_S = Fraction(1, 50)
# No codec holds more frames back than 16 (H.264 and HEVC, the size of the decoded picture buffer).
_MAX_REORDERED = 32
_BLOCK = 4096
_NTSC = Fraction(1000, 1001)
# Fine enough for a day of frames, and short enough to be written down.
_MAX_DENOMINATOR = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Times 1/`fps` apart. The first frame comes `lead` of that later than its own, or earlier."""

    fps: Fraction
    lead: float


def frame_grid(
    times: "array[int]", time_base: Fraction, claimed_fps: Fraction | None
) -> Grid | None:
    """The grid that has one frame at each of its places; None when there is none.

    `times` are when frames are shown, in `time_base`, in the order in which they are decoded.
    The rate is the claimed one if that fits, else a nominal one, else what the ends tell.
    """
    if len(times) < 2 or max(times) == min(times):
        return Grid(fps=claimed_fps, lead=0.0) if claimed_fps and len(times) == 1 else None
    shown = _in_order(times)
    measured_fps = (len(shown) - 1) / ((shown[-1] - shown[0]) * time_base)
    measured_fps = measured_fps.limit_denominator(_MAX_DENOMINATOR)
    for fps in _candidates(measured_fps, claimed_fps):
        limit = 2 * min(_TOLERANCE_FRAMES / fps, _TOLERANCE_S) / time_base
        period = float(1 / (fps * time_base))
        middle = _middle(shown, period, float(limit))
        if middle is not None:
            return Grid(fps=fps, lead=-middle / period)
    return None


def _in_order(times: "array[int]") -> "array[int]":
    """Sorted, if none is further from its place than decoders allow; else hardly so.

    Block by block: a list of all would take many times the memory.
    """
    shown, held = array("q"), array("q")
    for start in range(0, len(times), _BLOCK):
        block = sorted(held + times[start : start + _BLOCK])
        shown.extend(block[:-_MAX_REORDERED])
        held = array("q", block[-_MAX_REORDERED:])
    return shown + held


def _candidates(measured_fps: Fraction, claimed_fps: Fraction | None) -> Iterator[Fraction]:
    if claimed_fps:
        yield claimed_fps
    nominal = {Fraction(round(measured_fps)), round(measured_fps / _NTSC) * _NTSC}
    yield from sorted(nominal - {0}, key=lambda fps: abs(fps - measured_fps))
    if measured_fps > 0:
        yield measured_fps


def _middle(shown: "array[int]", period: float, limit: float) -> float | None:
    """The middle of all distances from a grid that begins at the first frame, in ticks.

    None when they are further apart than the limit.
    """
    first, least, most = shown[0], 0.0, 0.0
    for number, time in enumerate(shown):
        distance = time - first - number * period
        if distance < least:
            least = distance
        elif distance > most:
            most = distance
        else:
            continue
        if most - least > limit:
            return None
    return (least + most) / 2
