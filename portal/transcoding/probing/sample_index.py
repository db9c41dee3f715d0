"""Facts from the index of a track: frames, bytes, key frames, times of frames, and the length.

Headers often have a wrong length, and so have tables for the last sample. The index is read entry
by entry; of the file itself, only some key frames are read (`source.sample_places`). Limits: closed
GOPs are recognised for H.264 with its parameters at the beginning.

Recorders and editing programs round times, and capture adds jitter, though one rate is meant.
Averages can't distinguish this from a variable rate, so the times of all frames are compared with
a grid.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, repeat
from typing import Any

import av
from av.container import InputContainer

from portal.transcoding.probing.edits import TimeLine
from portal.transcoding.probing.segment_bounds import peak_bitrate_bps
from portal.transcoding.probing.source import IDR, SLICES, nal_units, read_configuration

# Eighteen hours at 60 frames per second, which take 4 s to read.
_MAX_ENTRIES = 4_000_000
_MAX_FRAMES_PER_S = 1000
# Largest distance of a frame from its place on the grid. The second limit keeps sound and picture
# together: it is half of what is noticed (ITU-R BT.1359: 45 ms early).
_TOLERANCE_FRAMES = Fraction(1, 3)
_TOLERANCE_S = Fraction(1, 50)
_NTSC = Fraction(1000, 1001)
# Limit on the terms of a rate; it suffices for a day of frames.
_MAX_DENOMINATOR = 1_000_000
# Longer than any part of a track before the film's start.
_LONGEST_LEAD_S = 1e6
# A few frames that are shown this long after the end of their track are misplaced.
_MISPLACED_AFTER_S = 10
_MAX_MISPLACED_SHARE = 0.1
# Other frames may then extend beyond the end by this.
_MAX_OVERHANG_S = 1


@dataclass(slots=True)
class _Summary:
    size_bytes: int = 0
    ends_at: int = 0
    presented: int = 0
    is_rising: bool = True
    last_at: int | None = None
    # Time by which FFmpeg moves decode times, so that no frame is shown before it is decoded.
    decoded_earlier: int = 0
    keys_at: array[int] = field(default_factory=lambda: array("q"))
    bytes_before_keys: array[int] = field(default_factory=lambda: array("q"))
    shown_at: array[int] = field(default_factory=lambda: array("q"))

    @property
    def stored_bytes(self) -> int:
        """Return the size of the track in the file.

        The sum of sizes is larger than the file's part if samples share their bytes.
        """
        return min(self.size_bytes, self.ends_at)


def is_too_dense(stream: av.VideoStream) -> bool:
    """Return whether edit lists multiply frames, to more than a camera makes.

    The samples of a file without such lists are limited by its size.
    """
    entry_count = len(stream.index_entries)
    duration_s = float((stream.duration or 0) * (stream.time_base or 0))
    return entry_count > max(stream.frames, _MAX_FRAMES_PER_S * max(1.0, duration_s))


def facts(
    container: InputContainer,
    stream: av.VideoStream,
    keys: Sequence[av.Packet[Any] | None],
    offsets: Iterable[int] | None,
    time_line: TimeLine,
    *,
    is_duration_known: bool = True,
) -> dict[str, Any]:
    """Return the facts that follow from the index, none without one; `keys` are some key frames.

    `offsets` are the times from decoding to showing each sample, in ticks; None if unknown. Unless
    `is_duration_known`, the duration is that of the samples.
    """
    entries = stream.index_entries
    time_base = stream.time_base
    if not (0 < len(entries) <= _MAX_ENTRIES and time_base):
        return {}
    claimed = stream.duration if is_duration_known else None
    first_packet = None if offsets is None else next(iter(keys), None)
    summary = _summarise(stream, offsets, container.size, first_packet)
    hidden = _hidden_spans(stream, time_line)
    visible_at = _visible_times(summary, hidden, time_base, time_line.start_s)
    if not visible_at:
        return {}
    presentation = _presentation(
        visible_at, time_base, time_line.start_s, claimed=None if time_line.is_open else claimed
    )
    are_times_known = offsets is not None or bool(hidden)
    is_plain = _is_plain(summary, stream) and len(visible_at) == len(presentation.shown_at)
    return {
        "duration_s": presentation.end_s,
        "last_frame_s": presentation.last_s,
        "longest_frame_s": presentation.longest_s if are_times_known else None,
        "misplaced_frames": len(visible_at) - len(presentation.shown_at),
        "frame_count": summary.presented,
        "max_key_distance_s": _max_key_distance_s(summary, presentation, stream, time_line.start_s),
        "closed_gops": is_plain and _has_closed_gops(stream, keys),
        **_bit_rates(summary, stream, claimed, is_plain=is_plain),
        **_frame_rate(None if offsets is None else presentation.shown_at, stream),
    }


def _hidden_spans(stream: av.VideoStream, time_line: TimeLine) -> list[tuple[float, float]]:
    """Return the spans of the film in which no frame is visible, in seconds from its start."""
    spans = time_line.hidden_spans(stream)
    return [(-_LONGEST_LEAD_S, 0.0), *spans] if time_line.is_open else spans


def _visible_times(
    summary: _Summary,
    hidden: Iterable[tuple[float, float]],
    time_base: Fraction,
    start_s: float,
) -> array[int]:
    """Return when FFmpeg shows the frames that are in no hidden span of the film, in ticks.

    The film starts at `start_s`.
    """
    bounds = [round((start_s + bound_s) / time_base) for span in hidden for bound_s in span]
    # A time is in a span if it follows an odd number of bounds.
    visible_at = (at for at in summary.shown_at if bisect_right(bounds, at) % 2 == 0)
    return array("q", (at + summary.decoded_earlier for at in visible_at))


def _is_plain(summary: _Summary, stream: av.VideoStream) -> bool:
    """Return whether samples follow each other, begin at a key frame, and are complete.

    No sample is discarded, is after the end of the file or shares its bytes with another one.
    """
    entries = stream.index_entries
    return (
        summary.is_rising
        and summary.presented == len(entries) == len(summary.shown_at)
        and summary.size_bytes == summary.stored_bytes
        and entries[0].is_keyframe
    )


def _max_key_distance_s(
    summary: _Summary, presentation: _Presentation, stream: av.VideoStream, start_s: float
) -> float:
    """Return the longest time from a key frame, or the film's start, to the next, or the end."""
    time_base = stream.time_base or Fraction(1)
    # Key frames are shown as much later than they are decoded as the first frame of the track.
    first_at = min(summary.shown_at) + summary.decoded_earlier
    delay = first_at - stream.index_entries[0].timestamp
    later_s = (float((at + delay) * time_base) - start_s for at in summary.keys_at[1:])
    visible_s = (key_s for key_s in later_s if 0 < key_s < presentation.end_s)
    bounds_s = [0.0, *visible_s, presentation.end_s]
    return max(after_s - before_s for before_s, after_s in pairwise(bounds_s))


def _bit_rates(
    summary: _Summary, stream: av.VideoStream, claimed: int | None, *, is_plain: bool
) -> dict[str, Any]:
    """Return the average bit rate and the highest one of a segment that is cut at key frames."""
    entries = stream.index_entries
    time_base = stream.time_base or Fraction(1)
    first = entries[0].timestamp
    end = round(_track_end(first, entries[-1].timestamp, len(entries), claimed))
    duration_s = float((end - first) * time_base)
    average_bps = round(summary.stored_bytes * 8 / duration_s) if duration_s > 0 else None
    peak_bps = None
    if is_plain:
        peak_bps = peak_bitrate_bps(
            [*summary.keys_at, end],
            [*summary.bytes_before_keys, summary.size_bytes],
            ticks_per_s=round(1 / time_base),
        )
    return {"bitrate_bps": average_bps, "peak_bitrate_bps": peak_bps}


def _frame_rate(shown_at: array[int] | None, stream: av.VideoStream) -> dict[str, Any]:
    """Return the grid of the times at which frames are shown, if these are known."""
    # FFmpeg's two rates agree if all decode times fit the rate.
    claimed_fps = stream.base_rate if stream.base_rate == stream.average_rate else None
    grid = shown_at and frame_grid(shown_at, stream.time_base or Fraction(1), claimed_fps)
    return {
        "constant_rate": bool(grid),
        "grid_fps": str(grid.fps) if grid else None,
        "grid_lead": grid.lead if grid else None,
    }


def fragment_facts(
    container: InputContainer,
    stream: av.VideoStream,
    keys: Sequence[av.Packet[Any] | None],
    offsets: Iterable[int] | None,
    time_line: TimeLine,
    *,
    end_s: float,
) -> dict[str, Any]:
    """Return when a fragmented track ends, and when its last frame begins, in seconds of the film.

    The facts of `facts` are added if FFmpeg's index entries reach the end of the track (`end_s`).
    They don't in a file with a `sidx` or `mfra` box, of which FFmpeg reads only the beginning.
    """
    frame_s = float(1 / stream.average_rate) if stream.average_rate else 0.0
    ends = {"duration_s": end_s, "last_frame_s": end_s - frame_s}
    start_s = time_line.start_s
    listed_end_s = track_end_s(container, stream, start_s=start_s, is_duration_known=False)
    if listed_end_s is None or end_s - listed_end_s >= frame_s:
        return ends
    listed = facts(container, stream, keys, offsets, time_line, is_duration_known=False)
    # An edit may end before its last frame would.
    return ends | listed | {"duration_s": min(end_s, listed.get("duration_s", end_s))}


def _summarise(
    stream: av.VideoStream,
    offsets: Iterable[int] | None,
    file_bytes: int,
    first: av.Packet[Any] | None,
) -> _Summary:
    """Read the index. `first` is the first packet, by which FFmpeg's times are exactly known."""
    summary = _Summary()
    earlier = None
    sample_offsets = repeat(0) if offsets is None else offsets
    for entry, offset in zip(stream.index_entries, sample_offsets, strict=False):
        at = entry.timestamp
        if summary.last_at is not None and at <= summary.last_at:
            summary.is_rising = False
        summary.last_at = at
        ends_at = entry.pos + entry.size
        summary.ends_at = max(summary.ends_at, ends_at)
        summary.decoded_earlier = max(summary.decoded_earlier, -offset)
        if not entry.is_discard:
            summary.presented += 1
            # A truncated file ends earlier than its index.
            if not 0 < file_bytes < ends_at:
                summary.shown_at.append(at + offset)
        if entry.is_keyframe:
            summary.keys_at.append(at)
            summary.bytes_before_keys.append(summary.size_bytes)
        summary.size_bytes += entry.size
        if first and first.pts is not None and first.dts == at:
            earlier = first.pts - at - offset
    if earlier is not None:
        # FFmpeg leaves out the end of the table, where a cut may reorder frames further.
        summary.decoded_earlier = earlier
    return summary


@dataclass(frozen=True, slots=True)
class _Presentation:
    """Sorted times `shown_at` of a track's frames, in ticks, without misplaced ones.

    `last_s` and `end_s` are when the last frame begins and ends, in seconds from the film's start.
    `longest_s` is the longest duration of any other frame.
    """

    shown_at: array[int]
    last_s: float
    end_s: float
    longest_s: float


def _presentation(
    visible_at: array[int], time_base: Fraction, start_s: float, *, claimed: int | None
) -> _Presentation:
    """Sort the times of frames, and find the end of the last frame.

    `claimed` is the duration of the track, None if that also covers frames that aren't shown.
    """
    ordered = sorted(visible_at)
    if claimed:
        kept_count = bisect_right(ordered, claimed + _MISPLACED_AFTER_S / time_base)
        misplaced = len(ordered) - kept_count
        is_rare = misplaced <= max(1, _MAX_MISPLACED_SHARE * len(ordered))
        if (
            kept_count
            and is_rare
            and ordered[kept_count - 1] <= claimed + _MAX_OVERHANG_S / time_base
        ):
            del ordered[kept_count:]
    longest = max((after - at for at, after in pairwise(ordered)), default=0)
    first_lasts_s = float(ordered[1] * time_base) - start_s if len(ordered) > 1 else 0.0
    return _Presentation(
        shown_at=array("q", ordered),
        last_s=float(ordered[-1] * time_base) - start_s,
        end_s=float(_track_end(ordered[0], ordered[-1], len(ordered), claimed) * time_base)
        - start_s,
        longest_s=max(float(longest * time_base), first_lasts_s),
    )


def _track_end(first: int, last: int, count: int, claimed: int | None) -> float:
    """Return when the last sample of a track ends, in ticks.

    The claimed duration is FFmpeg's, which is the shortest of those in the header, the sample table
    and the edit list. If it ends before the last sample, or there is none, that sample lasts as
    long as the others on average.
    """
    claimed_end = first + (claimed or 0)
    return claimed_end if claimed_end > last else last + (last - first) / max(1, count - 1)


def track_end_s(
    container: InputContainer, stream: Any, *, start_s: float, is_duration_known: bool
) -> float | None:
    """Return when a track ends, from the film's start; None if it has no samples.

    Samples after the end of a truncated file don't count. Unless `is_duration_known`, FFmpeg's
    duration may be too long, and counts only if it ends with the last sample.
    """
    entries = stream.index_entries
    count = len(entries)
    while count and 0 < container.size < entries[count - 1].pos + entries[count - 1].size:
        count -= 1
    if not count:
        return None
    first = entries[0].timestamp
    end: float = entries[count - 1].timestamp
    if count == len(entries):
        last = entries[-1].timestamp
        end = _track_end(first, last, count, stream.duration)
        if not is_duration_known:
            end = min(end, _track_end(first, last, count, None))
    if not stream.frames and stream.type == "video":
        # The first sample of a fragment may be shown later than it is decoded. The start of sound
        # is that of the first sample which is heard.
        end += (stream.start_time or 0) - first
    return float(end * stream.time_base) - start_s


def _has_closed_gops(stream: av.VideoStream, keys: Iterable[av.Packet[Any] | None]) -> bool:
    """Return whether a stream can be cut at these key frames; False if uncertain."""
    configuration = read_configuration(stream.codec_context.extradata)
    if stream.codec_context.name != "h264" or configuration is None:
        return False
    for packet in keys:
        if packet is None or not packet.is_keyframe:
            return False
        try:
            kinds = {kind for kind, *_ in nal_units(bytes(packet), configuration.length_size)}
        except ValueError:
            return False
        if kinds.intersection(SLICES) != {IDR}:
            return False
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Times at a distance of 1/`fps`. The first frame's is later than its own by a share `lead`."""

    fps: Fraction
    lead: float


def frame_grid(times: array[int], time_base: Fraction, claimed_fps: Fraction | None) -> Grid | None:
    """Return the grid that has one frame at each place; None if there is none.

    `times` are when frames are shown, in `time_base`. The rate is the claimed one if it fits, else
    a nominal one, else that of the first and last frame.
    """
    if len(times) < 2 or max(times) == min(times):
        return Grid(fps=claimed_fps, lead=0.0) if claimed_fps and len(times) == 1 else None
    ordered = sorted(times)
    measured_fps = (len(ordered) - 1) / ((ordered[-1] - ordered[0]) * time_base)
    measured_fps = measured_fps.limit_denominator(_MAX_DENOMINATOR)
    for fps in _candidates(measured_fps, claimed_fps):
        limit = 2 * min(_TOLERANCE_FRAMES / fps, _TOLERANCE_S) / time_base
        period = float(1 / (fps * time_base))
        middle = _middle(ordered, period, float(limit))
        if middle is not None:
            return Grid(fps=fps, lead=-middle / period)
    return None


def _candidates(measured_fps: Fraction, claimed_fps: Fraction | None) -> Iterator[Fraction]:
    if claimed_fps:
        yield claimed_fps
    nominal = {Fraction(round(measured_fps)), round(measured_fps / _NTSC) * _NTSC}
    yield from sorted(nominal - {0}, key=lambda fps: abs(fps - measured_fps))
    if measured_fps > 0:
        yield measured_fps


def _middle(times: Sequence[int], period: float, limit: float) -> float | None:
    """Return the middle of all distances from a grid that begins at the first frame, in ticks.

    The result is None if the distances differ by more than the limit.
    """
    first = times[0]
    least = 0.0
    most = 0.0
    for number, time in enumerate(times):
        distance = time - first - number * period
        if distance < least:
            least = distance
        elif distance > most:
            most = distance
        else:
            continue
        if most - least > limit:
            return None
    return (least + most) / 2
