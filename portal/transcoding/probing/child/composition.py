"""Composition offsets: how long after its decoding each sample is shown.

FFmpeg's index has decoding times alone. They do not tell the rate: cutting leaves pictures out
that others were ordered around, and some writers give reordered pictures even decoding times. Of
the real files looked at, four with even decoding times are shown unevenly, and one the reverse.
"""

import struct
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from portal.transcoding.probing.child.boxes import read_bytes

_HEAD, _ROW = struct.Struct(">4xI"), struct.Struct(">Ii")


def composition_offsets(
    request: dict[str, Any], place: tuple[int, int], *, samples: int
) -> Iterator[int] | None:
    """The offset of each sample in ticks, from the `ctts` box (ISO/IEC 14496-12, 8.6.1.3) there.

    None unless it describes exactly so many. Offsets are signed, as all readers take them.
    """
    at, end = place
    if end - at > _HEAD.size + _ROW.size * samples:
        return None
    table = read_bytes(request, at, end)
    rows = table[_HEAD.size :]
    if len(table) != end - at or len(rows) % _ROW.size:
        return None
    if sum(count for count, _ in _ROW.iter_unpack(rows)) != samples:
        return None
    return (offset for count, offset in _ROW.iter_unpack(rows) for offset in repeat(offset, count))
