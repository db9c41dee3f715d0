"""Open a source with PyAV, and read its packets and the H.264 in them, as MP4 stores it.

Both child processes, of probing and of copying, use this module.
"""

from __future__ import annotations

import io
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
# Kinds without a meaning of their own, in which devices write what they like.
_UNSPECIFIED = (0, *range(24, 32))
# Type of an SEI message in which devices write what they like (ISO/IEC 14496-10, D.1.7).
_USER_DATA = 5
_TYPE_MASK = 0x1F


def open_source(
    address: str, options: Mapping[str, str], *, timeout_s: float | None = None
) -> InputContainer:
    """Open an mp4 or QuickTime file. Raises one of `UNREACHABLE`, FFmpegError or ValueError."""
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


def without_user_data(sample: bytes, length_size: int) -> bytes:
    """Return a sample without NAL units in which a device may name itself and its place.

    Captions inside of the stream stay. Raises as `nal_units`.
    """
    return b"".join(
        sample[begin - length_size : end]
        for kind, begin, end in nal_units(sample, length_size)
        if kind not in _UNSPECIFIED
        and not (kind == _SEI and _USER_DATA in _message_types(sample[begin + 1 : end]))
    )


def _message_types(payload: bytes) -> Iterator[int]:
    """Yield the types of the messages in an SEI unit (ISO/IEC 14496-10, 7.3.2.3.1)."""
    # Without the bytes that prevent start codes.
    messages = io.BytesIO(payload.replace(b"\0\0\3", b"\0\0"))
    while (kind := _read_number(messages)) is not None:
        yield kind
        messages.seek(_read_number(messages) or 0, io.SEEK_CUR)


def _read_number(messages: io.BytesIO) -> int | None:
    """Return a type or a size: the sum of its bytes, of which all but the last are 255."""
    number = 0
    while byte := messages.read(1):
        number += byte[0]
        if byte[0] != 255:
            return number
    return None
