"""Find silent sound tracks, which cameras write for inputs without a microphone.

A track is sampled at several places of the film, so that little of a long one is read. Limits: only
layouts that PyAV can decode, see `__main__`; no fragmented files, whose index is incomplete.
"""

from __future__ import annotations

import contextlib
import time
from array import array
from itertools import islice
from typing import Any

import av
from av.container import InputContainer

from portal.transcoding.probing.source import packets

_PLACES = 20
# A decoder needs one packet to begin with.
_PACKETS = 4
# Highest level of silence: 60 dB below full scale in 16-bit samples.
_SILENT_PEAK = 32
# Limit on the time for all tracks, which must be less than that of the probe.
LIMIT_S = 5.0


def is_silent(container: InputContainer, stream: Any, *, until: float) -> bool:
    """Return whether no decoded sample is loud.

    The result is False if the time `until`, by the monotonic clock, is reached.
    """
    entries = stream.index_entries
    for place in range(_PLACES):
        if time.monotonic() > until:
            return False
        with contextlib.suppress(av.FFmpegError):
            container.seek(entries[len(entries) * place // _PLACES].timestamp, stream=stream)
            for packet in islice(packets(container, [stream]), _PACKETS):
                if any(_peak(frame) > _SILENT_PEAK for frame in stream.decode(packet)):
                    return False
    return True


def _peak(frame: av.AudioFrame) -> int:
    parts = av.AudioResampler(format="s16").resample(frame)
    samples = array("h", b"".join(bytes(part.planes[0]) for part in parts))
    return max(map(abs, samples), default=0)
