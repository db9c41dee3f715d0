"""Segments of a cut film: those of the whole film that are kept, and those that are made at cuts.

A segment of the whole film that is entirely kept is played as it is. Where a cut is inside a
segment, the kept part of it becomes another segment: split off without decoding, if it begins and
ends at key frames, or encoded from the source like the same part of the whole film. Segments keep
the times of the whole film, so players find a discontinuity where the next interval begins.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path

from portal.concurrency import task_group
from portal.transcoding import errors
from portal.transcoding.encoding.encode import encode_part
from portal.transcoding.encoding.output_validation import refusing_unreadable
from portal.transcoding.encoding.parts import Part, PartsDontJoin, Pass, Rendition, Segment
from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.encoding.sink import OnStored, Sink, ignore_stored, put_file
from portal.transcoding.packaging.avc import shared_init
from portal.transcoding.packaging.cmaf import shown_frames
from portal.transcoding.packaging.hls import INIT_NAME
from portal.transcoding.planning.kept import MOST_MOVED_S, Interval, Kept
from portal.transcoding.planning.ladder import Plan

# Times this close are the same: less than the shortest frame lasts.
_SAME_S = 0.004
# Runs of ffmpeg at the same time, because one alone waits for the source and for its decoder.
_CONCURRENT_PIECES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSegment:
    """Segment of a cut film; `span` is its part of the whole film.

    `number` is that of the segment of the whole film that contains it. If `is_whole`, that is
    played as it is.
    """

    span: Interval
    number: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class PicturePieces:
    """Segments of a rendition that the whole film doesn't have, by their spans.

    `init` is an init segment for them and those of the whole film; None if the film's is.
    """

    segments: Mapping[Interval, Segment]
    init: bytes | None = None


def cut_segments(starts_s: Sequence[float], end_s: float, keep: Kept) -> list[list[CutSegment]]:
    """Return the segments of the cut film by intervals, both in order.

    An interval is divided where segments of the whole film begin, which is at `starts_s`; the last
    one ends at `end_s`. A bound of an interval within `_SAME_S` of such a place is moved there.
    """
    ends_s = (*starts_s[1:], end_s)
    intervals = []
    for interval in keep.intervals:
        segments = []
        for number, (from_s, until_s) in enumerate(zip(starts_s, ends_s, strict=True)):
            span = Interval(
                from_s if interval.start_s <= from_s + _SAME_S else interval.start_s,
                until_s if interval.end_s >= until_s - _SAME_S else interval.end_s,
            )
            if span.end_s - span.start_s > _SAME_S:
                is_whole = span == (from_s, until_s)
                segments.append(CutSegment(span=span, number=number, is_whole=is_whole))
        intervals.append(segments)
    return intervals


async def at_frames(keep: Kept, film: RenditionFiles) -> Kept:
    """Return the intervals with each bound moved to the closest start of a frame.

    A bound in the middle of a frame that is shown longer than 100 ms stays, as does the end of an
    interval after the picture, where the sound is longer. Intervals have a frame at least. `film`
    is a rendition of the whole film's picture. Raises SourceRejected if nothing is left,
    TranscodeFailed if a segment can't be read, or whatever the reader raised.
    """
    starts_s = film.playlist.starts_s
    numbers = {
        bound_s: max(0, bisect_right(starts_s, bound_s) - 1)
        for interval in keep.intervals
        for bound_s in interval
    }
    frames_s = {number: await _frame_times_s(number, film) for number in set(numbers.values())}
    moved = []
    for interval in keep.intervals:
        at_start_s = frames_s[numbers[interval.start_s]]
        at_end_s = frames_s[numbers[interval.end_s]]
        start_s = _moved(interval.start_s, at_start_s)
        later_s = [at_s for at_s in (*at_start_s, *at_end_s) if at_s > start_s]
        if later_s:
            moved.append(Interval(start_s, _moved(interval.end_s, later_s)))
    if not moved:
        raise errors.SourceRejected(errors.RejectCode.ZERO_DURATION)
    return Kept(tuple(moved))


def _moved(bound_s: float, frames_s: Sequence[float]) -> float:
    """Return the start of the closest frame; the bound itself if it is far from, or after, all."""
    closest_s = min(frames_s, key=lambda at_s: abs(at_s - bound_s))
    is_far = abs(closest_s - bound_s) > MOST_MOVED_S
    return bound_s if is_far or bound_s > max(frames_s) else closest_s


async def _frame_times_s(number: int, film: RenditionFiles) -> list[float]:
    """Return when the frames of a segment begin, and when it ends."""
    segment = film.playlist.segments[number]
    start_s = film.playlist.starts_s[number]
    init = await film.read_init()
    data = await film.read(segment.uri)
    with refusing_unreadable():
        offsets_s = [at_s for at_s, _ in shown_frames(init, data)]
    return [start_s + offset_s for offset_s in (*offsets_s, segment.duration_s)]


async def encode_pieces(
    whole: Pass,
    spans: Sequence[Interval],
    *,
    inits: Mapping[str, bytes],
    sink: Sink,
    work_dir: Path,
    on_stored: OnStored = ignore_stored,
) -> dict[str, PicturePieces]:
    """Encode parts of a film's picture, in seconds, and store them; return them by rendition.

    The pass `whole` has the times of the whole film's segments, each of the spans is within one of
    these, and there is one at least. `inits` are the stored init segments of renditions that the
    portal has encoded; the pass has those of copies. `on_stored` takes each piece once it is
    stored. If the encoder makes other init segments now, because it is of another version,
    renditions get init segments that are for both. Raises as `encode_part`, or TranscodeFailed if
    an init segment can't be for both.
    """
    starts_s = sorted({*(whole.starts_s or ()), *(bound_s for span in spans for bound_s in span)})
    firsts = [bisect_left(starts_s, span.start_s) for span in spans]
    encode = partial(
        _encode_spans, firsts=firsts, sink=sink, work_dir=work_dir, on_stored=on_stored
    )
    of_pass = replace(whole, starts_s=starts_s, plan=_plan_of_pieces(whole))
    try:
        encoded = await encode(of_pass, inits=inits)
    except PartsDontJoin:
        of_pass = replace(of_pass, foreign_inits={**inits, **whole.foreign_inits})
        encoded = await encode(of_pass, inits={})
    return await _collect_pieces(of_pass, spans, encoded, sink)


async def _encode_spans(
    of_pass: Pass,
    *,
    firsts: Sequence[int],
    inits: Mapping[str, bytes],
    sink: Sink,
    work_dir: Path,
    on_stored: OnStored,
) -> list[dict[str, Rendition]]:
    """Encode the segments of a pass with these numbers; return the renditions of each by name."""
    slots = asyncio.Semaphore(_CONCURRENT_PIECES)

    async def encode(first: int) -> dict[str, Rendition]:
        part = Part(first=first, until=first + 1)
        async with slots:
            _, renditions = await encode_part(
                of_pass, part, inits=inits, sink=sink, work_dir=work_dir, on_stored=on_stored
            )
        return renditions

    async with task_group() as tasks:
        running = [tasks.create_task(encode(first)) for first in firsts]
    return [task.result() for task in running]


async def _collect_pieces(
    of_pass: Pass,
    spans: Sequence[Interval],
    encoded: Sequence[Mapping[str, Rendition]],
    sink: Sink,
) -> dict[str, PicturePieces]:
    """Return the pieces of each rendition, and store the init segments that they need.

    `encoded` has for each span the renditions with its segment. Raises TranscodeFailed if an init
    segment can't be for all segments of a rendition.
    """
    pieces = {}
    for name in of_pass.names:
        renditions = [by_name[name] for by_name in encoded]
        init = None
        if name in of_pass.foreign_inits:
            # ffmpeg, and players that use it, ignore a second init segment of a playlist.
            own_inits = [rendition.init for rendition in renditions]
            with refusing_unreadable():
                init = shared_init([of_pass.foreign_inits[name], *own_inits])
            await put_file(sink, f"{name}/{INIT_NAME}", init)
        segments = [rendition.segments[0] for rendition in renditions]
        pieces[name] = PicturePieces(dict(zip(spans, segments, strict=True)), init)
    return pieces


def _plan_of_pieces(whole: Pass) -> Plan:
    """Return the plan of pieces.

    Frames that are shown long are repeated, because one may begin before a piece or end after it.
    """
    video = whole.probe.video
    picture_s = whole.plan.picture_s or whole.probe.duration_s
    longest_s = inf if video.longest_frame_s is None else video.longest_frame_s
    last_s = inf if video.last_frame_s is None else picture_s - video.last_frame_s
    if max(longest_s, last_s) <= 2 * MOST_MOVED_S:
        return whole.plan
    return replace(whole.plan, is_held=True, picture_s=picture_s)
