"""Open a source with PyAV, and read its packets and the H.264 in them, as MP4 stores it.

Both child processes, of probing and of copying, use this module.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import av
from av.container import InputContainer
from av.stream import Discard

# PyAV's classes for system errors (no route, timed out, no such file) are OSErrors too.
UNREACHABLE = (av.HTTPError, av.HTTPClientError, OSError)
# Names of FFmpeg's protocols, whose complaints mean that reading failed.
_PROTOCOLS = frozenset({"http", "https", "tcp", "tls"})
_MAX_LOST_LINES = 5
# Types of NAL units.
IDR = 5
SLICES = range(1, 6)
PARAMETER_SETS = (7, 8)
_SEI = 6
# NAL units of later types, and of type 0, are for private use.
_LAST_TYPE = 23
# Messages of supplemental enhancement information that decoders use (ISO/IEC 14496-10, D.1): the
# filling of their buffer, times of pictures, and recovery points.
_DECODING_MESSAGES = frozenset({0, 1, 6})
_REGISTERED = 4
# Begin of the registered messages of ATSC, such as captions (CEA-708).
_ATSC = b"\xb5\x00\x31"
_TYPE_MASK = 0x1F
# Places of a track at which key frames are decoded, to find changes within the track: frames may
# change their size, and a progressive film may become interlaced.
_MAX_PLACES = 12
# An adaptive encoder may code key frames as pictures and what follows as fields.
_PACKETS_AT_PLACE = 3
# After this time packets are read but not decoded. Slow codecs take seconds for a large picture.
_MAX_DECODING_CPU_S = 2.0


def open_source(
    address: str, options: Mapping[str, str], *, timeout_s: float | None = None
) -> InputContainer:
    """Open an MP4 or QuickTime file. `timeout_s` limits the opening, and each read after it.

    Raises one of `UNREACHABLE`, or FFmpegError or ValueError if the file can't be opened. Catch
    `UNREACHABLE` first, because some of them are FFmpegErrors.
    """
    container: InputContainer = av.open(
        address,
        # By default FFmpeg also recognises playlists, which name other files.
        format="mov",
        options=dict(options),
        timeout=timeout_s,
        metadata_errors="replace",
    )
    return container


def film_start_s(container: InputContainer) -> float:
    """Return where the file's time line begins; FFmpeg shows that as zero."""
    return (container.start_time or 0) / av.time_base


def read_complaints(complaints: Sequence[tuple[Any, str, str]]) -> str:
    """Return FFmpeg's complaints about reading the source; empty if it was read completely.

    FFmpeg takes an interrupted read for the end of the file.
    """
    lines = [text for _, name, text in complaints if name in _PROTOCOLS]
    return "".join(lines[-_MAX_LOST_LINES:])


def packets(container: InputContainer, streams: Iterable[Any]) -> Iterator[av.Packet[Any]]:
    """Return the packets of these streams; packets of other streams are not read."""
    indexes = {stream.index for stream in streams}
    for stream in container.streams:
        stream.discard = Discard.default if stream.index in indexes else Discard.all
    return container.demux(*indexes)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Content of an avcC box: level, bytes of the length of a NAL unit, parameter sets."""

    level: int
    length_size: int
    parameter_sets: frozenset[bytes]


def read_configuration(avcc: bytes | None) -> Configuration | None:
    """Read an avcC box (ISO/IEC 14496-15, 5.3.3.1); return None if it is invalid."""
    if not avcc or len(avcc) < 6 or avcc[0] != 1:
        return None
    parameter_sets: set[bytes] = set()
    at = 5
    for mask in (0x1F, 0xFF):  # sequence parameter sets, then picture parameter sets
        count = int.from_bytes(avcc[at : at + 1]) & mask
        at += 1
        for _ in range(count):
            size = int.from_bytes(avcc[at : at + 2])
            parameter_sets.add(avcc[at + 2 : at + 2 + size])
            at += 2 + size
    if at > len(avcc):
        return None
    return Configuration(avcc[3], (avcc[4] & 3) + 1, frozenset(parameter_sets))


def nal_units(sample: bytes, length_size: int) -> Iterator[tuple[int, int, int]]:
    """Yield type, begin and end of each NAL unit. Raises ValueError if a length is invalid."""
    at = 0
    while at < len(sample):
        begin = at + length_size
        end = begin + int.from_bytes(sample[at:begin])
        if not begin < end <= len(sample):
            raise ValueError("a NAL unit has an invalid length")
        yield sample[begin] & _TYPE_MASK, begin, end
        at = end


def without_private_units(sample: bytes, length_size: int) -> bytes:
    """Return a sample without what a camera writes about itself, such as its model and position.

    Units for private use are dropped, and those with a message that neither decoders nor captions
    need. Raises ValueError if a length is invalid.
    """
    units = list(nal_units(sample, length_size))
    public = [
        sample[begin - length_size : end]
        for kind, begin, end in units
        if 0 < kind <= _LAST_TYPE and (kind != _SEI or _is_for_decoders(sample[begin + 1 : end]))
    ]
    return sample if len(public) == len(units) else b"".join(public)


def _is_for_decoders(messages: bytes) -> bool:
    """Return whether decoders or captions need all messages of a unit (ISO/IEC 14496-10, 7.3.2.3).

    The result is False if the unit is damaged.
    """
    data = messages.replace(b"\0\0\3", b"\0\0")
    at = 0
    # The last byte ends the unit.
    while len(data) - at > 1:
        kind, at = _sum_of_bytes(data, at)
        size, at = _sum_of_bytes(data, at)
        is_caption = kind == _REGISTERED and data.startswith(_ATSC, at)
        if not (is_caption or kind in _DECODING_MESSAGES):
            return False
        at += size
    return True


def _sum_of_bytes(data: bytes, at: int) -> tuple[int, int]:
    """Return a number, which is a sum of bytes of which only the last is below 255, and its end."""
    number = 0
    while data[at : at + 1] == b"\xff":
        number += 0xFF
        at += 1
    return number + int.from_bytes(data[at : at + 1]), at + 1


def sample_places(
    container: InputContainer, stream: av.VideoStream
) -> Iterator[tuple[av.Packet[Any] | None, list[av.VideoFrame]]]:
    """Decode key frames and the frames after them, evenly spread over a track by its index.

    Yields the packet of a key frame, or None if it can't be read, and the frames. A track without
    an index yields nothing.
    """
    entries = stream.index_entries
    count = min(_MAX_PLACES, len(entries))
    until_s = time.process_time() + _MAX_DECODING_CPU_S
    known_times: set[int | None] = set()
    for number in range(1, count + 1):
        group: list[av.Packet[Any]] = []
        with contextlib.suppress(av.FFmpegError):
            # The seek ends at the key frame before.
            at = entries[number * len(entries) // count - 1].timestamp
            container.seek(at, stream=stream)
            group += itertools.islice(packets(container, [stream]), _PACKETS_AT_PLACE)
        key = group[0] if group else None
        if key and key.dts in known_times:
            continue
        known_times.add(key.dts if key else None)
        frames: list[av.VideoFrame] = []
        # At None the decoder outputs the frames that it held back to order them.
        for packet in (*group, None) if time.process_time() < until_s else ():
            with contextlib.suppress(av.FFmpegError):
                frames += stream.decode(packet)
        yield key, frames
