"""Open a source with PyAV, and read its packets and the H.264 in them, as MP4 stores it.

What the child processes of probing and of copying share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import av
from av.container import InputContainer
from av.stream import Discard

# PyAV's classes for system errors (no route, timed out, no such file) are OSErrors too.
UNREACHABLE = (av.HTTPError, av.HTTPClientError, OSError)
# These complain of a source that doesn't arrive.
_PROTOCOLS = frozenset({"http", "https", "tcp", "tls"})
_MAX_LOST_LINES = 5
# Types of NAL units.
IDR = 5
SLICES = range(1, 6)
PARAMETER_SETS = (7, 8)
_TYPE_MASK = 0x1F


def open_source(
    address: str, options: Mapping[str, str], *, timeout_s: float | None = None
) -> InputContainer:
    """Open an mp4 or QuickTime file. Raises one of `UNREACHABLE`, FFmpegError or ValueError."""
    container: InputContainer = av.open(
        address,
        # One forced demuxer: by default FFmpeg also recognises playlists, which name other files.
        format="mov",
        options=dict(options),
        timeout=timeout_s,
        metadata_errors="replace",
    )
    return container


def film_start_s(container: InputContainer) -> float:
    """Return where the file's time line begins; FFmpeg shows that as zero."""
    return (container.start_time or 0) / av.time_base


def told_lost(complaints: Sequence[tuple[Any, str, str]]) -> str:
    """What FFmpeg logged of a source that broke off, which it takes for the end of the file.

    Empty when it came whole.
    """
    lost = [text for _, name, text in complaints if name in _PROTOCOLS]
    return "".join(lost[-_MAX_LOST_LINES:])


def packets(container: InputContainer, streams: Iterable[Any]) -> Iterator[av.Packet[Any]]:
    """The packets of these streams; those of others are not even fetched."""
    wanted = {stream.index for stream in streams}
    for stream in container.streams:
        stream.discard = Discard.default if stream.index in wanted else Discard.all
    return container.demux(*wanted)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What an avcC box says: level, the bytes of a NAL unit's length, and the parameter sets."""

    level: int
    length_size: int
    parameter_sets: frozenset[bytes]


def read_configuration(avcc: bytes | None) -> Configuration | None:
    """Read an avcC box (ISO/IEC 14496-15, 5.3.3.1); None when it is none."""
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
