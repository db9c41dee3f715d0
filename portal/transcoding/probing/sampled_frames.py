"""Key frames from all over a track, decoded to see what changes on the way.

The first frame alone doesn't tell: pictures change their size, and progressive films go on
interlaced. Limits: a few places, at which a few frames are decoded while processor time lasts.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import av
from av.container import InputContainer

from portal.transcoding.probing.source import packets

_MAX_PLACES = 12
# An adaptive encoder may code key frames as pictures and what follows as fields.
_PACKETS_AT_PLACE = 3
# Packets are still read after that. Slow codecs take seconds for each large picture.
_MAX_DECODING_CPU_S = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What a track has at a key frame: its packet, None without one, and how frames decode."""

    packet: av.Packet[Any] | None
    sizes: frozenset[tuple[int, int]] = frozenset()
    is_interlaced: bool = False


def sample_places(container: InputContainer, stream: av.VideoStream) -> list[Place]:
    """Look at key frames all over a track, evenly spread by its index; none without an index."""
    entries = stream.index_entries
    count = min(_MAX_PLACES, len(entries))
    until_s = time.process_time() + _MAX_DECODING_CPU_S
    places: list[Place] = []
    seen_at: set[int | None] = set()
    for number in range(1, count + 1):
        place = Place(packet=None)
        with contextlib.suppress(av.FFmpegError):
            # This goes to the key frame before.
            at = entries[number * len(entries) // count - 1].timestamp
            container.seek(at, stream=stream)
            found = list(itertools.islice(packets(container, [stream]), _PACKETS_AT_PLACE))
            place = Place(packet=next(iter(found), None))
            if place.packet and place.packet.dts in seen_at:
                continue
            seen_at.add(place.packet.dts if place.packet else None)
            if time.process_time() < until_s:
                place = _decode(stream, found)
        places.append(place)
    return places


def _decode(stream: av.VideoStream, found: Sequence[av.Packet[Any]]) -> Place:
    """Decode packets that begin with a key frame. Damaged ones give no frames."""
    frames: list[av.VideoFrame] = []
    # Without a packet the decoder gives what it held back to put frames in order.
    for packet in (*found, None):
        with contextlib.suppress(av.FFmpegError):
            frames += stream.decode(packet)
    return Place(
        packet=found[0] if found else None,
        sizes=frozenset((frame.width, frame.height) for frame in frames),
        is_interlaced=any(frame.interlaced_frame for frame in frames),
    )
