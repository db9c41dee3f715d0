"""Make the sound of a cut film from the stored sound of the whole film.

Segments inside a kept interval are reused. Those at its ends are written anew: a few frames are
encoded, so that sound begins and ends at the cut with a fade, and the others are the stored ones.
All frames stay on the frame grid of the stored sound, with their media times, so an interval begins
and ends at the frame nearest to it. The sound on both sides of a join is encoded as one signal,
because each frame is decoded together with the one before it.

Limits: AAC-LC as this package writes or copies it. A few segments of each interval are in memory.
"""

import asyncio
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path

from portal.transcoding.encoding import command, ffmpeg
from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.aac import FRAME_SAMPLES, window_end
from portal.transcoding.packaging.cmaf import (
    SegmentError,
    first_media_time,
    inspect_segment,
    read_samples,
    time_scale,
)
from portal.transcoding.packaging.fragments import Sample, write_segment
from portal.transcoding.planning.kept import ROUNDING_S, Interval, Kept

_FADE_S = 0.005
# Frames that decode wrongly where decoding begins.
_PRE_ROLL = 2
# Frames at an end of an interval that are encoded, of which at most `_MAX_USED_FRAMES` are used.
# The others are heard by the encoder alone.
_ENCODED_FRAMES = 15
_MAX_USED_FRAMES = 12
# Frames that a fade changes: at the beginning it reaches into the second frame, at the end into the
# last but one, which is decoded together with the frame before it.
_FADED_IN = 2
_FADED_OUT = 3
# Shortest own segment beside another one, about 0.4 s.
_MIN_NEW_FRAMES = 18
# Frames that the encoder writes before the first one.
_PRIMING = 1
# The encoder fails at a float that is not a number, so samples are integers.
_SAMPLE_FORMAT = "s32le"
_SAMPLE_BYTES = 4
# Names in the working folder.
_STORED = "stored.mp4"
_DECODED = "decoded.raw"
_FADED = "faded.raw"
_ENCODED_SOUND = "encoded.mp4"


@dataclass(frozen=True, kw_only=True, slots=True)
class SoundPiece:
    """Segment that is only in the cut film, with the init segment and media times of the whole.

    The last one of an interval may be up to a frame longer or shorter than `duration_s`.
    """

    data: bytes
    duration_s: float


async def cut_sound(
    files: RenditionFiles, keep: Kept, *, bitrate_bps: int, folder: Path, timeout_s: float
) -> list[list[int | SoundPiece]]:
    """Return the segments of each kept interval of a stored sound rendition.

    Reused segments are given by their index in the playlist. `folder` must be empty. An interval is
    up to a frame longer or shorter than its segments, whose removed parts are silent.
    Raises TranscodeFailed, or whatever the rendition's reader raised.
    """
    segments = files.playlist.segments
    init = await files.read_init()
    try:
        grid = _grid(files.playlist, init, await files.read(segments[0].uri))
        spans = _spans(keep, grid)
        runs = [run for span in spans for run in _runs(span, grid)]
        own_ranges = [
            range(segment.first, segment.until)
            for span in spans
            for segment in _segment_ranges(span, grid)
            if segment.number is None
        ]
        decoded_ranges = [_decoded_range(run, grid) for run in runs]
        stored = await _read_frames(files, grid, [*decoded_ranges, *own_ranges])
        used: dict[_Span, dict[int, bytes]] = {}
        if runs:
            frames = [stored[number] for numbers in decoded_ranges for number in numbers]
            decoded, channels = await _decode(init, frames, folder, timeout_s)
            signal = await asyncio.to_thread(_faded, runs, grid, decoded, channels)
            sound = ("-ar", str(grid.rate_hz), "-ac", str(channels))
            encoded = await _encode(signal, sound, bitrate_bps, folder, timeout_s)
            used = _used_frames(runs, encoded, stored, grid)
        return [
            _entries(span, interval, grid, stored | used.get(span, {}))
            for span, interval in zip(spans, keep.intervals, strict=True)
        ]
    except (SegmentError, struct.error, ValueError) as exc:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=str(exc)) from exc


def _entries(
    span: "_Span", interval: Interval, grid: "_Grid", frames: Mapping[int, bytes]
) -> list[int | SoundPiece]:
    """Return the segments of an interval. `frames` has those of own segments.

    The last segment ends with the interval in the playlist, not with its frames, so that the
    differences don't add up.
    """
    entries: list[int | SoundPiece] = []
    for segment in _segment_ranges(span, grid):
        if segment.number is not None:
            entries.append(segment.number)
            continue
        samples = [
            Sample(grid.ticks(number), 0, True, frames[number])
            for number in range(segment.first, segment.until)
        ]
        data = write_segment(segment.first, samples, grid.ticks(segment.until))
        duration_s = len(samples) * FRAME_SAMPLES / grid.rate_hz
        if segment.until == span.until:
            span_s = (span.until - span.first) * FRAME_SAMPLES / grid.rate_hz
            duration_s += interval.end_s - interval.start_s - span_s
        entries.append(SoundPiece(data=data, duration_s=duration_s))
    return entries


@dataclass(frozen=True, kw_only=True, slots=True)
class _Grid:
    """Frames of the stored sound, numbered from 0.

    `first_ticks` is the media time of the first one. `bounds` are the numbers of the first frame of
    each segment, and the number of frames. The film begins at the media time `film_ticks`.
    """

    rate_hz: int
    first_ticks: int
    film_ticks: int
    bounds: tuple[int, ...]

    @property
    def count(self) -> int:
        """Return the number of frames."""
        return self.bounds[-1]

    def ticks(self, number: int) -> int:
        """Return the media time of a frame."""
        return self.first_ticks + number * FRAME_SAMPLES

    def media_ticks(self, film_s: float) -> int:
        """Return the media time of a time of the film."""
        return self.film_ticks + round(film_s * self.rate_hz)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Span:
    """Frames `first` to before `until` of a kept interval, which are heard within media times.

    `keeps_start` and `keeps_end` mean that the interval begins or ends with the stored sound.
    """

    first: int
    until: int
    from_ticks: int
    until_ticks: int
    keeps_start: bool
    keeps_end: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    """Frames of a span that are encoded: at its beginning, at its end, or all."""

    span: _Span
    first: int
    until: int

    @property
    def has_start(self) -> bool:
        """Return whether a cut begins the run."""
        return self.first == self.span.first and not self.span.keeps_start

    @property
    def has_end(self) -> bool:
        """Return whether a cut ends the run."""
        return self.until == self.span.until and not self.span.keeps_end


def _grid(playlist: hls.MediaPlaylist, init: bytes, first_segment: bytes) -> _Grid:
    rate_hz = time_scale(init)
    last_s = playlist.segments[-1].duration_s
    starts = [round(start_s * rate_hz / FRAME_SAMPLES) for start_s in playlist.starts_s]
    # The last frame may have a shorter duration than the others. Playlists round durations.
    last_count = max(1, ceil(round(last_s * rate_hz) / FRAME_SAMPLES))
    return _Grid(
        rate_hz=rate_hz,
        first_ticks=inspect_segment(first_segment).from_ticks,
        film_ticks=first_media_time(init),
        bounds=(*starts, starts[-1] + last_count),
    )


def _spans(keep: Kept, grid: _Grid) -> list[_Span]:
    """Return the frames of each interval."""
    firsts = [
        _first_frame(interval, grid, is_first=number == 0)
        for number, interval in enumerate(keep.intervals)
    ]
    # Players drop sound where it overlaps the next interval's first frame.
    overlaps = [
        max(0, grid.media_ticks(interval.start_s) - grid.ticks(first))
        for interval, first in zip(keep.intervals, firsts, strict=True)
    ]
    return [
        _span(interval, first, grid, overlap=overlap)
        for interval, first, overlap in zip(
            keep.intervals, firsts, [*overlaps[1:], None], strict=True
        )
    ]


def _first_frame(interval: Interval, grid: _Grid, *, is_first: bool) -> int:
    """Return the frame nearest to the start of an interval.

    Decoding begins with the first interval, and the first frame is not heard as a whole. So that
    interval begins with the frame before the one that contains its start.
    """
    place = (grid.media_ticks(interval.start_s) - grid.first_ticks) / FRAME_SAMPLES
    return max(0, int(place) - 1 if is_first else round(place))


def _span(interval: Interval, first: int, grid: _Grid, *, overlap: int | None) -> _Span:
    """Return the frames of an interval that begins with the frame `first`.

    `overlap` has the ticks in which the next interval's first frame is shown, too; None if the
    interval is the last one.
    """
    until_ticks = grid.media_ticks(interval.end_s)
    is_to_end = until_ticks >= grid.ticks(grid.count) - ROUNDING_S * grid.rate_hz
    # Sound may end before the picture, and then the film ends as the stored one.
    keeps_end = overlap is None and is_to_end and first + _MIN_NEW_FRAMES <= grid.count
    until = grid.count
    if not keeps_end:
        until = round((until_ticks - grid.first_ticks) / FRAME_SAMPLES)
    return _Span(
        first=first,
        until=until,
        from_ticks=max(grid.media_ticks(interval.start_s), grid.ticks(first)),
        until_ticks=min(until_ticks - (overlap or 0), grid.ticks(until)),
        keeps_start=first == 0 and interval.start_s <= ROUNDING_S,
        keeps_end=keeps_end,
    )


def _runs(span: _Span, grid: _Grid) -> Iterator[_Run]:
    """Yield the frames of a span that are encoded; frames after the stored sound are silent."""
    stored_until = min(span.until, grid.count)
    is_short = stored_until - span.first < 2 * _ENCODED_FRAMES
    if is_short and not span.keeps_start and not span.keeps_end:
        yield _Run(span=span, first=span.first, until=span.until)
        return
    if not span.keeps_start:
        yield _Run(span=span, first=span.first, until=span.first + _ENCODED_FRAMES)
    if not span.keeps_end:
        yield _Run(span=span, first=stored_until - _ENCODED_FRAMES, until=span.until)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Range:
    """Frames of a segment of a cut film; `number` is that of the reused segment, if it is one."""

    first: int
    until: int
    number: int | None


def _segment_ranges(span: _Span, grid: _Grid) -> Iterator[_Range]:
    """Yield the frames of the segments of a span."""
    earliest = span.first + (0 if span.keeps_start else _MIN_NEW_FRAMES)
    latest = min(span.until, grid.count) - (0 if span.keeps_end else _MIN_NEW_FRAMES)
    inner = [
        bound for bound in grid.bounds[:-1] if earliest <= bound <= latest and bound > span.first
    ]
    numbers = {frames: number for number, frames in enumerate(pairwise(grid.bounds))}
    for first, until in pairwise([span.first, *inner, span.until]):
        has_start = first == span.first and not span.keeps_start
        has_end = until == span.until and not span.keeps_end
        number = None if has_start or has_end else numbers[first, until]
        yield _Range(first=first, until=until, number=number)


def _decoded_range(run: _Run, grid: _Grid) -> range:
    """Return the numbers of the stored frames that are decoded for a run: at least one."""
    first = min(max(0, run.first - _PRE_ROLL), grid.count - 1)
    return range(first, max(first, min(run.until, grid.count)))


async def _read_frames(
    files: RenditionFiles, grid: _Grid, needed: Sequence[range]
) -> dict[int, bytes]:
    """Return the frames of all segments with needed frames, by their numbers."""
    stored: dict[int, bytes] = {}
    for number, (first, until) in enumerate(pairwise(grid.bounds)):
        if any(first < frames.stop and frames.start < until for frames in needed):
            data = await files.read(files.playlist.segments[number].uri)
            samples, _ = read_samples(data, is_sound=True)
            expected = [grid.ticks(frame) for frame in range(first, until)]
            if [sample.decode_at for sample in samples] != expected:
                raise SegmentError(f"the frames of segment {number} are not evenly spaced")
            stored.update(enumerate((sample.data for sample in samples), first))
    return stored


async def _decode(
    init: bytes, frames: Sequence[bytes], folder: Path, timeout_s: float
) -> tuple[bytes, int]:
    """Return the samples of frames, and the number of their channels."""
    samples = [Sample(place * FRAME_SAMPLES, 0, True, data) for place, data in enumerate(frames)]
    segment = write_segment(0, samples, len(samples) * FRAME_SAMPLES)
    await asyncio.to_thread((folder / _STORED).write_bytes, init + segment)
    arguments = (
        *command.general_options(),
        # The edit list would remove the first frames.
        *("-ignore_editlist", "1", *command.own_file(_STORED)),
        *("-map", "0:a:0", "-f", _SAMPLE_FORMAT, _DECODED),
    )
    await ffmpeg.run(arguments, timeout_s=timeout_s, cwd=folder)
    decoded = await asyncio.to_thread((folder / _DECODED).read_bytes)
    channels, remainder = divmod(len(decoded), len(frames) * FRAME_SAMPLES * _SAMPLE_BYTES)
    if channels not in (1, 2) or remainder:
        raise ValueError(f"{len(frames)} frames were decoded to {len(decoded)} bytes")
    return decoded, channels


def _faded(runs: Sequence[_Run], grid: _Grid, decoded: bytes, channels: int) -> bytes:
    """Return the samples of the runs one after another, silent outside of their intervals."""
    frame_bytes = FRAME_SAMPLES * channels * _SAMPLE_BYTES
    fade = round(_FADE_S * grid.rate_hz)
    signal = bytearray()
    at = 0
    for run in runs:
        numbers = _decoded_range(run, grid)
        heard = decoded[
            (at + run.first - numbers.start) * frame_bytes : (at + len(numbers)) * frame_bytes
        ]
        at += len(numbers)
        samples = array("i", heard.ljust((run.until - run.first) * frame_bytes, b"\0"))
        begin_ticks = run.span.from_ticks - grid.ticks(run.first)
        end_ticks = run.span.until_ticks - grid.ticks(run.first)
        length = len(samples) // channels
        gains: dict[int, float] = {}
        if run.has_start:
            gains |= {tick: (tick - begin_ticks) / fade for tick in range(begin_ticks + fade)}
        if run.has_end:
            gains |= {tick: (end_ticks - tick) / fade for tick in range(end_ticks - fade, length)}
        for tick, gain in gains.items():
            for place in range(tick * channels, (tick + 1) * channels):
                samples[place] = int(samples[place] * max(gain, 0.0))
        signal += samples.tobytes()
    return bytes(signal)


async def _encode(
    signal: bytes, sound: Sequence[str], bitrate_bps: int, folder: Path, timeout_s: float
) -> list[bytes]:
    """Return the frames of a signal, whose rate and channels are given as options of ffmpeg."""
    await asyncio.to_thread((folder / _FADED).write_bytes, signal)
    arguments = (
        *command.general_options(),
        *(*sound, *command.own_file(_FADED, demuxer=_SAMPLE_FORMAT)),
        # The last frames of the signal are complete only with silence after them.
        *("-af", f"apad=pad_len={_PRE_ROLL * FRAME_SAMPLES}"),
        *("-c:a", "aac", "-b:a", str(bitrate_bps), "-movflags", "+empty_moov", _ENCODED_SOUND),
    )
    await ffmpeg.run(arguments, timeout_s=timeout_s, cwd=folder)
    encoded = await asyncio.to_thread((folder / _ENCODED_SOUND).read_bytes)
    samples, _ = read_samples(encoded, is_sound=True)
    return [sample.data for sample in samples[_PRIMING:]]


def _used_frames(
    runs: Sequence[_Run], encoded: Sequence[bytes], stored: Mapping[int, bytes], grid: _Grid
) -> dict[_Span, dict[int, bytes]]:
    """Return the encoded frames that are used in each span, by the numbers of stored frames."""
    used: dict[_Span, dict[int, bytes]] = {}
    at = 0
    for run in runs:
        count = run.until - run.first
        frames = dict(zip(range(run.first, run.until), encoded[at : at + count], strict=True))
        at += count
        numbers = _used_range(run, frames, stored, grid)
        used.setdefault(run.span, {}).update({number: frames[number] for number in numbers})
    return used


def _used_range(
    run: _Run, frames: Mapping[int, bytes], stored: Mapping[int, bytes], grid: _Grid
) -> range:
    """Return the frames of a run that are used: those at a cut, until others can follow.

    A frame is decoded with the end of the window before it, so an encoded one can be followed by a
    stored one, and the reverse, where both frames before end their windows alike. If there is no
    such place, the difference is heard for one frame.
    """

    def joins_at(number: int) -> bool:
        return window_end(frames[number - 1]) == window_end(stored[number - 1])

    if run.has_start and run.has_end:
        return range(run.first, run.until)
    if run.has_start:
        latest = run.first + _MAX_USED_FRAMES
        places = range(run.first + _FADED_IN, latest)
        return range(run.first, next(filter(joins_at, places), latest))
    stored_until = min(run.until, grid.count)
    earliest = stored_until - _MAX_USED_FRAMES
    places = range(stored_until - _FADED_OUT, earliest, -1)
    return range(next(filter(joins_at, places), earliest), run.until)
