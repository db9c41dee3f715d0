"""The sound of a copy: AAC-LC without gaps, cut at the frames nearest to the video's cuts."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from fractions import Fraction
from typing import Any

import av

from portal.transcoding.copying.rendition import Rendition, Sample, init_segment
from portal.transcoding.probing.cuts import SEGMENT_S

_FRAME_SAMPLES = 1024
# How far a frame may be from the end of the one before, besides one tick of the source: less than
# half a millisecond is no gap.
_MAX_GAP_SAMPLES = 16
# Encoders prime with one frame to three.
_MAX_PRIMING_SAMPLES = 4 * _FRAME_SAMPLES
# Players wait for sound that begins later; encoded sound begins with silence instead.
_MAX_LATE_S = 1.0
_MAX_TICK_SAMPLES = 256
_SAMPLE_RATES_HZ = (44_100, 48_000)


class AudioCopy:
    """Takes packets and cuts. `dropped` says why it can't be delivered, None as long as it can.

    Times are in samples. `packet_count` is what the index names, zero when that is unknown. What
    was written of a dropped track stays, without a playlist.
    """

    def __init__(self, stream: Any, rendition: Rendition, *, packet_count: int) -> None:
        self.index: int = stream.index
        self._stream = stream
        self._rendition = rendition
        self._missing = packet_count
        self._rate_hz: int = stream.sample_rate
        self._samples_per_tick: Fraction = stream.time_base * self._rate_hz
        is_deliverable = (
            (stream.codec_context.name, stream.codec_context.profile) == ("aac", "LC")
            and stream.channels in (1, 2)
            and self._rate_hz in _SAMPLE_RATES_HZ
            and self._samples_per_tick <= _MAX_TICK_SAMPLES
        )
        self.dropped = None if is_deliverable else "codec"
        self._tolerance = math.ceil(self._samples_per_tick) + _MAX_GAP_SAMPLES
        self._waiting: list[Sample] = []
        self._cuts: deque[int] = deque()
        self._last_cut = 0
        self._has_video_ended = False
        self._priming = 0
        self._begins_at: int | None = None
        self._ends_at = 0

    def take(self, packet: av.Packet[Any]) -> None:
        """Take the next packet."""
        self._missing -= 1
        if self.dropped:
            return
        at = round((packet.pts or 0) * self._samples_per_tick)
        # What an edit list cuts from the end comes as the last packets.
        if packet.is_discard and at >= 0:
            return
        self.dropped = self._fault(packet, at)
        if self.dropped:
            self._waiting.clear()
        else:
            self._add(packet, at)

    def cut_at(self, cut: int, ticks_per_s: int) -> None:
        """The video has a cut here."""
        self._cuts.append(round(cut * self._rate_hz / ticks_per_s))
        self._write_certain()

    def end_video(self) -> None:
        """The video has ended: there will be no further cuts of it."""
        self._has_video_ended = True
        self._write_certain()

    def finish(self) -> None:
        """Write what is left, and the playlist."""
        if not self.dropped and (self._missing > 0 or self._begins_at is None):
            self.dropped = "truncated" if self._missing > 0 else "empty"
        if not self.dropped:
            self._write(len(self._waiting), self._ends_at)
            self._rendition.finish()

    def _fault(self, packet: av.Packet[Any], at: int) -> str | None:
        if packet.is_corrupt:
            return "damaged"
        if packet.has_sidedata("new_extradata"):
            return "codec"
        if self._begins_at is not None:
            return "gaps" if abs(at - self._ends_at) > self._tolerance else None
        if at > _MAX_LATE_S * self._rate_hz:
            return "starts_late"
        return "edited" if at < -_MAX_PRIMING_SAMPLES else None

    def _add(self, packet: av.Packet[Any], at: int) -> None:
        data = bytes(packet)
        if self._begins_at is None:
            self._begins_at = self._ends_at = at
            self._priming = max(0, -at)
            first = min(0, packet.pts or 0)
            self._rendition.begin(init_segment(self._stream, data, pts=first, dts=first))
        # Each begins where the one before ended, also where the source's ticks are coarser.
        self._waiting.append(Sample(self._ends_at + self._priming, 0, True, data))
        self._ends_at += _FRAME_SAMPLES
        self._write_certain()

    def _write_certain(self) -> None:
        while self._waiting and self.dropped is None:
            if self._has_video_ended and not self._cuts:
                self._cuts.append(self._last_cut + SEGMENT_S * self._rate_hz)
            nearest = self._cuts[0] - _FRAME_SAMPLES // 2 if self._cuts else math.inf
            if self._waiting[-1].decode_at - self._priming < nearest:
                return
            self._last_cut = self._cuts.popleft()
            first = nearest + self._priming
            place = bisect_left(self._waiting, first, key=lambda sample: sample.decode_at)
            if place:
                self._write(place, self._waiting[place].decode_at - self._priming)

    def _write(self, place: int, end: int) -> None:
        """Write the segment of all frames before this place."""
        samples = self._waiting[:place]
        del self._waiting[:place]
        self._rendition.add(samples, until=end + self._priming, end_s=end / self._rate_hz)
