"""Read H.264 as MP4 stores it (ISO/IEC 14496-15): its configuration, and samples of NAL units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

IDR = 5
SLICES = range(1, 6)
PARAMETER_SETS = (7, 8)
_TYPE_MASK = 0x1F


@dataclass(frozen=True, slots=True)
class Configuration:
    """What an avcC box says: level, the bytes of a NAL unit's length, and the parameter sets."""

    level: int
    length_size: int
    parameter_sets: frozenset[bytes]


def read_configuration(avcc: bytes | None) -> Configuration | None:
    """Read an avcC box (5.3.3.1); None when it is none."""
    if not avcc or len(avcc) < 6 or avcc[0] != 1:
        return None
    found: set[bytes] = set()
    at = 5
    for mask in (0x1F, 0xFF):  # sequence parameter sets, then those of pictures
        count, at = avcc[at : at + 1], at + 1
        for _ in range(int.from_bytes(count) & mask):
            size = int.from_bytes(avcc[at : at + 2])
            found.add(avcc[at + 2 : at + 2 + size])
            at += 2 + size
    if at > len(avcc):
        return None
    return Configuration(avcc[3], (avcc[4] & 3) + 1, frozenset(found))


def nal_units(sample: bytes, length_size: int) -> Iterator[tuple[int, int, int]]:
    """Type, begin and end of each NAL unit. Raises ValueError when they don't fill the sample."""
    at, size = 0, len(sample)
    while at < size:
        begin = at + length_size
        end = begin + int.from_bytes(sample[at:begin])
        if not begin < end <= size:
            raise ValueError("a NAL unit of an impossible length")
        yield sample[begin] & _TYPE_MASK, begin, end
        at = end
