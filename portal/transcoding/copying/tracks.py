"""Tracks of a copy.

Each packet of the video is checked, and decides where segments end. Sound is AAC-LC without gaps
that begins and ends with the video. Its segments end at the frames nearest to the ends of segments
of the video.

Edit lists may hide the beginning and the end of a film. Hidden frames aren't copied. Visible frames
of the video that may depend on them are left out: those before the first IDR picture, and those
after the last one if hidden frames are decoded among them. Sound keeps one frame before the film's
start, because the decoder needs it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import av

from portal.transcoding.copying.rendition import Rendition, init_segment
from portal.transcoding.errors import CopyUndeliverable
from portal.transcoding.packaging.cmaf import time_scale
from portal.transcoding.packaging.fragments import Sample, lasting_as_shown
from portal.transcoding.probing import source
from portal.transcoding.probing.segment_bounds import (
    MAX_GOP_S,
    SEGMENT_S,
    SHORTEST_END_S,
    Segmenter,
)

# Bytes of the length of a NAL unit, as all encoders write them.
_NAL_LENGTH_BYTES = 4
# Longest time for which a frame may be shown before it is decoded, in the times that are written.
# Players built on ffmpeg show the picture later than the sound by that time.
_MAX_EARLY_S = 0.2
# Times of edits are rounded, so a frame belongs to a span that begins this much later.
_ROUNDING_S = 0.0005
# A hole in a damaged file. A slice never has three zeros in a row (ISO/IEC 14496-10, 7.4.1), but
# cameras add a few at its end.
_HOLE = bytes(64)

_FRAME_SAMPLES = 1024
# Longest time between a frame and the end of the one before, besides one tick of the source. Less
# than half a millisecond is no gap.
_MAX_GAP_SAMPLES = 16
# Encoders prime with one frame to three.
_MAX_PRIMING_SAMPLES = 4 * _FRAME_SAMPLES
# Frames that begin this long before the film's start aren't needed, but for an encoder's priming.
_PRE_ROLL_SAMPLES = 2 * _FRAME_SAMPLES
_MAX_TICK_SAMPLES = 256
# Players wait for sound that begins later than the picture or ends much earlier. It is encoded,
# with silence.
_MAX_LATE_START_S = 0.1
_MAX_EARLY_END_S = 1
_SAMPLE_RATES_HZ = (44_100, 48_000)


class VideoCopy:
    """Copy of the video, from packets in decode order. Raises CopyUndeliverable at an invalid one.

    Times are in ticks of the source, from the film's start. `span_s` has the film's start on the
    source's time line, and the latest end of the last frame. `has_lead` means that FFmpeg reads
    frames before the film's start, which are hidden. Frames from `hidden_from_s` on are hidden,
    too; it is None if the track is shown to its end.

    `packet_count` is the number of packets that were added, `copied_count` that of written frames.
    `pieces` have the begin and the end of visible parts that are left out, whose segments are
    missing.
    """

    def __init__(
        self,
        stream: Any,
        rendition: Rendition,
        *,
        span_s: tuple[float, float],
        has_lead: bool,
        hidden_from_s: float | None,
    ) -> None:
        configuration = source.read_configuration(stream.codec_context.extradata)
        if stream.codec_context.name != "h264" or configuration is None:
            raise CopyUndeliverable(
                "codec", detail="the stream is not H.264 with parameter sets at the beginning"
            )
        if configuration.length_size != _NAL_LENGTH_BYTES or stream.time_base.numerator != 1:
            raise CopyUndeliverable("codec", detail="unusual lengths of NAL units, or time base")
        self._stream = stream
        self._rendition = rendition
        self._parameter_sets = configuration.parameter_sets
        self.ticks_per_s: int = stream.time_base.denominator
        self._rounding = round(_ROUNDING_S * self.ticks_per_s)
        self._shortest_end = round(SHORTEST_END_S * self.ticks_per_s)
        self._segmenter = Segmenter(0, self.ticks_per_s)
        # The film may end shortly after these ends of segments.
        self._uncertain_ends: list[int] = []
        self._start = round(span_s[0] * self.ticks_per_s)
        self._end = round(span_s[1] * self.ticks_per_s) - self._start
        self._has_lead = has_lead
        self._hidden_from: float = math.inf
        if hidden_from_s is not None:
            self._hidden_from = round(hidden_from_s * self.ticks_per_s) - self._rounding
        # A visible frame was read before the first one that is copied.
        self._leads_visibly = False
        # The current segment begins at this time.
        self._written_until = 0
        # A hidden frame of the end was read, and after it another one that may depend on it.
        self._is_past_end = False
        self._has_mixed_end = False
        # Ticks of the copy per tick of the source.
        self._scale = 1
        # Frames in the order of decoding, with the times at which they are shown.
        self._waiting: list[Sample] = []
        # Numbers of IDR pictures by the times at which they are shown.
        self._keys: dict[int, int] = {}
        self._key_at = self._last_at = self._last_until = -1
        self._frame_count = 0
        self.packet_count = 0
        self.copied_count = 0
        self.pieces: list[tuple[float, float]] = []

    def take(self, packet: av.Packet[Any]) -> list[int]:
        """Add the next packet, and return the ends of segments that are now certain."""
        data = bytes(packet)
        is_key = self._is_key(packet, data)
        data = source.without_private_units(data, _NAL_LENGTH_BYTES)
        if packet.pts is None:
            raise self._refusal("times", "it has no time")
        shown_at = packet.pts - self._start
        self.packet_count += 1
        if not (self.packet_count > 1 or is_key):
            raise self._refusal("first_frame", "the first is no IDR picture")
        if self._is_hidden_end(shown_at, is_key=is_key):
            return []
        if not self._frame_count:
            if self._is_in_lead(shown_at, is_key=is_key):
                return []
            if not self._leads_visibly:
                # A late first frame is shown from zero, for longer.
                shown_at = 0
            self._begin(data, shown_at)
        self._check_times(shown_at, is_key=is_key)
        self._waiting.append(Sample(shown_at * self._scale, 0, is_key, data))
        self._last_at = max(self._last_at, shown_at)
        self._last_until = max(self._last_until, shown_at + (packet.duration or 0))
        self._frame_count += 1
        if is_key:
            self._key_at = shown_at
            self._keys[shown_at] = self._frame_count - 1
            self._uncertain_ends += self._segmenter.push(shown_at)
        return self._write_certain(shown_at)

    def finish(self) -> int:
        """Write the last segments, and return when the picture ends."""
        if not self._frame_count:
            raise self._refusal("first_frame", "there is no frame")
        # An edit list, or the header, may end the last frame earlier than the sample table.
        end: int = max(self._last_at + 1, min(self._last_until, self._end))
        self._check_gop(end)
        self._uncertain_ends += self._segmenter.push(end)
        self._write_certain(end)
        if self._has_mixed_end:
            self._leave_out_end(end)
        else:
            self._add(self._waiting, end)
        if not self.copied_count:
            raise self._refusal(
                "trimmed", "no segment is without frames that depend on hidden ones"
            )
        self._rendition.finish()
        return end

    def _is_in_lead(self, shown_at: int, *, is_key: bool) -> bool:
        """Return whether a frame is before the first one that is copied, because of an edit list.

        The first segment would be too short if that followed a few visible frames.
        """
        is_visible = shown_at >= -self._rounding
        if not self._has_lead or (is_key and is_visible and self._is_far_enough(shown_at)):
            return False
        self._last_at = max(self._last_at, shown_at)
        self._leads_visibly |= is_visible
        return True

    def _is_far_enough(self, shown_at: int) -> bool:
        return not self._leads_visibly or shown_at >= self._shortest_end

    def _is_hidden_end(self, shown_at: int, *, is_key: bool) -> bool:
        """Return whether a frame is hidden by the end of an edit."""
        if shown_at >= self._hidden_from:
            self._is_past_end = True
            # The last visible frame lasts until the end of the edit.
            self._last_until = max(self._last_until, shown_at)
            return True
        if self._is_past_end:
            if is_key:
                raise self._refusal("times", "shown before the end, which was decoded before it")
            self._has_mixed_end = True
        return False

    def _leave_out_end(self, end: int) -> None:
        """Write what is complete before the last IDR picture, and leave out the rest."""
        keys = (at for at in self._keys if at <= end - self._shortest_end)
        begin = max(keys, default=self._written_until)
        if begin > self._written_until:
            self._write(begin)
        self._leave_out(self._written_until, end)

    def _leave_out(self, begin: int, end: int) -> None:
        self.pieces.append((begin / self.ticks_per_s, end / self.ticks_per_s))
        self._rendition.list_segment(end / self.ticks_per_s)

    def _is_key(self, packet: av.Packet[Any], data: bytes) -> bool:
        """Check a packet, and return whether all its slices are of an IDR picture.

        `data` has the bytes of the packet. Raises `CopyUndeliverable` for a packet that is damaged,
        is cut out by an edit list, or has other parameter sets than the stream.
        """
        if packet.is_corrupt:
            raise self._refusal("damaged", "it is incomplete")
        if packet.is_discard:
            raise self._refusal("edited", "an edit list cuts it out")
        if packet.has_sidedata("new_extradata"):
            raise self._refusal("parameter_sets", "it has another sample entry")
        has_idr = False
        has_other = False
        try:
            for kind, begin, end in source.nal_units(data, _NAL_LENGTH_BYTES):
                if kind in source.SLICES:
                    has_idr |= kind == source.IDR
                    has_other |= kind != source.IDR
                    if data.find(_HOLE, begin, end) >= 0:
                        raise self._refusal("damaged", "it has a hole")
                elif kind in source.PARAMETER_SETS and data[begin:end] not in self._parameter_sets:
                    raise self._refusal("parameter_sets", "it has other parameter sets")
        except ValueError as exc:
            raise self._refusal("damaged", str(exc)) from exc
        return has_idr and not has_other

    def _begin(self, data: bytes, shown_at: int) -> None:
        """Write the init segment, and begin the first copied segment at a frame."""
        init = init_segment(self._stream, data, at=0)
        self._scale, remainder = divmod(time_scale(init), self.ticks_per_s)
        if remainder:
            raise self._refusal("times", "the time scale is too fine")
        self._rendition.write_init(init)
        self._segmenter = Segmenter(shown_at, self.ticks_per_s)
        self._written_until = shown_at
        if shown_at:
            self._leave_out(0, shown_at)

    def _check_times(self, shown_at: int, *, is_key: bool) -> None:
        # A frame that is decoded after an IDR picture must be shown after it.
        if shown_at <= (self._last_at if is_key else self._key_at):
            raise self._refusal("times", "shown out of its group of pictures")
        self._check_gop(shown_at)

    def _check_gop(self, shown_at: int) -> None:
        if shown_at - self._key_at > MAX_GOP_S * self.ticks_per_s:
            raise self._refusal("long_gop", "too long after the latest IDR picture")

    def _write_certain(self, reached: int) -> list[int]:
        """Write the segments that end long enough before this time, and return their ends."""
        latest = reached - SHORTEST_END_S * self.ticks_per_s
        certain_ends = [end for end in self._uncertain_ends if end <= latest]
        self._uncertain_ends = [end for end in self._uncertain_ends if end > latest]
        for end in certain_ends:
            self._write(end)
        return certain_ends

    def _write(self, end: int) -> None:
        """Write the segment that ends before the IDR picture which is shown at `end`."""
        place = len(self._waiting) - (self._frame_count - self._keys[end])
        self._add(self._waiting[:place], end)
        del self._waiting[:place]
        self._keys = {at: number for at, number in self._keys.items() if at > end}

    def _add(self, frames: Sequence[Sample], end: int) -> None:
        """Write a segment of these frames, which are shown until `end`."""
        if len({frame.decode_at for frame in frames}) < len(frames):
            raise self._refusal("times", "two before have the same time")
        until = end * self._scale
        samples = lasting_as_shown(frames, until)
        earliest = -_MAX_EARLY_S * self.ticks_per_s * self._scale
        if min(sample.offset for sample in samples) < earliest:
            raise self._refusal("times", "one before is shown long before it is decoded")
        self._rendition.add(samples, until=until, end_s=end / self.ticks_per_s)
        self.copied_count += len(frames)
        self._written_until = end

    def _refusal(self, reason: str, detail: str) -> CopyUndeliverable:
        return CopyUndeliverable(reason, detail=f"frame {self.packet_count}: {detail}")


class AudioCopy:
    """Copy of a sound track, from its packets and the ends of the video's segments.

    `dropped` is the reason why the track can't be copied, None while it can. Times are in samples
    from the film's start, which is at `start_s`. `packet_count` is that of the index, zero if it is
    unknown. The track is hidden from `hidden_from_s` on, None if it is shown to its end. Segments
    of a dropped track remain, without a playlist.
    """

    def __init__(
        self,
        stream: Any,
        rendition: Rendition,
        *,
        start_s: float,
        packet_count: int,
        hidden_from_s: float | None,
    ) -> None:
        self.index: int = stream.index
        self._stream = stream
        self._rendition = rendition
        self._missing = packet_count
        self._rate_hz: int = stream.sample_rate
        self._start = round(start_s * self._rate_hz)
        self._hidden_from = math.inf if hidden_from_s is None else hidden_from_s * self._rate_hz
        # More than an encoder's priming is hidden at the beginning.
        self._has_lead = False
        self._samples_per_tick: Fraction = stream.time_base * self._rate_hz
        is_deliverable = (
            (stream.codec_context.name, stream.codec_context.profile) == ("aac", "LC")
            and _channel_configuration(stream.codec_context.extradata) in (1, 2)
            and self._rate_hz in _SAMPLE_RATES_HZ
            and self._samples_per_tick <= _MAX_TICK_SAMPLES
        )
        self.dropped = None if is_deliverable else "codec"
        self._shortest_end = SHORTEST_END_S * self._rate_hz
        self._tolerance = math.ceil(self._samples_per_tick) + _MAX_GAP_SAMPLES
        self._waiting: list[Sample] = []
        self._ends: deque[int] = deque()
        self._last_end = 0
        self._video_end: int | None = None
        self._priming = 0
        self._ends_at: int | None = None  # before the first packet

    def take(self, packet: av.Packet[Any]) -> None:
        """Add the next packet."""
        self._missing -= 1
        if self.dropped:
            return
        at = round((packet.pts or 0) * self._samples_per_tick) - self._start
        self._has_lead |= at < -_MAX_PRIMING_SAMPLES
        if at >= self._hidden_from or (self._has_lead and at <= -_PRE_ROLL_SAMPLES):
            return
        # An edit list may discard packets at the end.
        if packet.is_discard and at >= 0:
            return
        self.dropped = self._fault(packet, at)
        if self.dropped:
            self._waiting.clear()
        else:
            self._add(packet, at)

    def end_segment_at(self, end: int, ticks_per_s: int) -> None:
        """Add the end of a segment of the video."""
        self._ends.append(round(end * self._rate_hz / ticks_per_s))
        self._write_certain()

    def end_video(self, end: int, ticks_per_s: int) -> None:
        """Set the end of the video, after which it has no segments.

        `end` is in ticks since the film's start. A second has `ticks_per_s` of them. Segments whose
        end is now certain are written.
        """
        self._video_end = round(end * self._rate_hz / ticks_per_s)
        self._write_certain()

    def finish(self) -> None:
        """Write the last segments and the playlist."""
        if self.dropped:
            return
        if self._missing > 0:
            self.dropped = "truncated"
        elif self._ends_at is None:
            self.dropped = "empty"
        elif (self._video_end or 0) - self._ends_at > _MAX_EARLY_END_S * self._rate_hz:
            self.dropped = "gaps"
        else:
            self._write(len(self._waiting), self._ends_at)
            self._rendition.finish()

    def _fault(self, packet: av.Packet[Any], at: int) -> str | None:
        if packet.is_corrupt:
            return "damaged"
        if packet.has_sidedata("new_extradata"):
            return "codec"
        if self._ends_at is not None:
            return "gaps" if abs(at - self._ends_at) > self._tolerance else None
        return "gaps" if at > _MAX_LATE_START_S * self._rate_hz else None

    def _add(self, packet: av.Packet[Any], at: int) -> None:
        data = bytes(packet)
        if self._ends_at is None:
            self._priming = max(0, -at)
            first = round(min(0, at) / self._samples_per_tick)
            self._rendition.write_init(init_segment(self._stream, data, at=first))
            self._ends_at = at
        # A frame begins at the end of the one before, even if the source's ticks are coarser.
        self._waiting.append(Sample(self._ends_at + self._priming, 0, True, data))
        self._ends_at += _FRAME_SAMPLES
        self._write_certain()

    def _write_certain(self) -> None:
        while self._waiting and self.dropped is None:
            if self._video_end is not None and not self._ends:
                self._ends.append(self._last_end + SEGMENT_S * self._rate_hz)
            nearest = self._ends[0] - _FRAME_SAMPLES // 2 if self._ends else math.inf
            if self._waiting[-1].decode_at - self._priming < nearest + self._shortest_end:
                return
            self._last_end = self._ends.popleft()
            first = nearest + self._priming
            place = bisect_left(self._waiting, first, key=lambda sample: sample.decode_at)
            if place:
                self._write(place, self._waiting[place].decode_at - self._priming)

    def _write(self, place: int, end: int) -> None:
        """Write the segment with all frames before this place."""
        samples = self._waiting[:place]
        del self._waiting[:place]
        self._rendition.add(samples, until=end + self._priming, end_s=end / self._rate_hz)


def _channel_configuration(audio_config: bytes | None) -> int:
    """Return the channel configuration of AAC-LC: 1 is mono, 2 stereo (ISO/IEC 14496-3, 1.6.2.1).

    It follows five bits of the object type and four of the sampling frequency. PyAV's count of
    channels can't be used, because it corrupts the heap if their order is unusual.
    """
    return audio_config[1] >> 3 & 0xF if audio_config and len(audio_config) > 1 else 0
