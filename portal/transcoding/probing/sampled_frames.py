"""Decode key frames from several places of a track, to find changes within it.

Frames may change their size, and a progressive film may become interlaced. Limits: a few frames at
a few places, within a limit on processor time.
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
# After this time packets are read but not decoded. Slow codecs take seconds for a large picture.
_MAX_DECODING_CPU_S = 2.0


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
