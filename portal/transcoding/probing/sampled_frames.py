"""Key frames from all over a track, decoded to see what changes on the way.

The first frame alone doesn't tell: pictures change their size, and progressive films go on
interlaced. Limits: a few places, at which a few frames are decoded while processor time lasts.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from typing import Any

import av
from av.container import InputContainer

from portal.transcoding.probing.source import packets

_MAX_PLACES = 12
# An adaptive encoder may code key frames as pictures and what follows as fields.
_PACKETS_AT_PLACE = 3
# Packets are still read after that. Slow codecs take seconds for each large picture.
_MAX_DECODING_CPU_S = 2.0


def sample_places(
    container: InputContainer, stream: av.VideoStream
) -> Iterator[tuple[av.Packet[Any] | None, list[av.VideoFrame]]]:
    """Decode key frames all over a track, evenly spread by its index; none without an index.

    Yields a key frame's packet, None for one that can't be read, and frames from there on.
    """
    entries = stream.index_entries
    count = min(_MAX_PLACES, len(entries))
    until_s = time.process_time() + _MAX_DECODING_CPU_S
    seen_at: set[int | None] = set()
    for number in range(1, count + 1):
        group: list[av.Packet[Any]] = []
        with contextlib.suppress(av.FFmpegError):
            # This goes to the key frame before.
            at = entries[number * len(entries) // count - 1].timestamp
            container.seek(at, stream=stream)
            group += itertools.islice(packets(container, [stream]), _PACKETS_AT_PLACE)
        key = group[0] if group else None
        if key and key.dts in seen_at:
            continue
        seen_at.add(key.dts if key else None)
        frames: list[av.VideoFrame] = []
        # Without a packet the decoder gives what it held back to put frames in order.
        for packet in (*group, None) if time.process_time() < until_s else ():
            with contextlib.suppress(av.FFmpegError):
                frames += stream.decode(packet)
        yield key, frames
