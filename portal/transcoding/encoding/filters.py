"""Compose filters that turn decoded frames into those of all rungs, or into a still picture. Pure.

A frame is scaled once to the largest rung of the pass, and for each lower rung from the rung above
it, because the cost of scaling depends on the size of its input. HDR is scaled before it is mapped,
for the same reason.

Sizes are (width, height) in pixels, upright.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from portal.transcoding.planning.ladder import MAX_FPS, Rung, capped_fps, frame_step
from portal.transcoding.probing.facts import Probe, Spans, VideoTrack
from portal.transcoding.probing.segment_bounds import SEGMENT_S, SHORTEST_END_S

Size = tuple[int, int]

# A variable-rate source may exceed the highest rate in bursts; frames closer than this share of
# 1/fps are dropped. It keeps 60 fps with jitter, every 4th frame of 240 and every 2nd of 120.
_BURST_SHARE = 0.82
# Least distance of frames of a constant rate that keep their times, whatever their jitter.
_CLOSEST_S = 0.002
# Times in lists are rounded, so a frame this close before such a time belongs to it. Frames that
# keep their times may be as close as 5 ms (60 a second, a third of a frame off) at a constant rate,
# and 13 ms at a variable one.
CUT_TOLERANCE_S = 0.004
# Times of frames are rounded, so a frame belongs to a span that begins this much later.
_BOUND_S = 0.0005
_DEINTERLACER_MIN_PX = 3
# Codecs of broadcasts. The deinterlacer takes nearly all of their pixel formats as they are.
_FIELD_CODECS = ("h264", "mpeg2video")
# Two ticks for each tick of the encoder.
_HELD_TICKS_PER_S = 180_000
_HELD_ROUNDING_S = 0.0001
_SDR = "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"
_TICKS_PER_FRAME = 100
# Shapes that differ by less than this share get no bars.
_SHAPE_TOLERANCE = 0.02
# The film's first frame is shown from zero if it begins at most this long after `start_s`, because
# decoders differ at a damaged start. FFmpeg also restarts the filters when frames change their
# size; the first frame after that keeps its time.
_FIRST_FRAME_S = 0.5
# FFmpeg holds both parts of a time base as C's int.
_MAX_INT = 2**31 - 1

# Code points of ISO/IEC 23091-2.
_UNSPECIFIED = 2
_PQ = 16
_HDR_MATRICES = {14: "ictcp"}
# FFmpeg's scaler fails at any other matrix.
_SCALABLE_MATRICES = frozenset({0, 1, 2, 4, 5, 6, 7, 9})
_SDR_WHITE_NITS = 203
_HD_MIN_HEIGHT = 720


class Repeats(NamedTuple):
    """Times at which a picture that stands still has another frame, in seconds."""

    first_s: float
    period_s: float


# Repetitions in a film without a copy: all its segments begin at these times.
EVEN_REPEATS = Repeats(float(SEGMENT_S), float(SEGMENT_S))


def filter_graph(
    probe: Probe,
    rungs: Sequence[Rung],
    *,
    is_snapped: bool,
    after_s: Fraction | None = None,
    end_s: float | None = None,
    held_until_s: float | None = None,
    repeats: Repeats = EVEN_REPEATS,
) -> str:
    """Return the graph for `-filter_complex`, with an output named after each rung.

    `is_snapped` moves the frames of a constant rate to exact times; otherwise frames keep their
    times. The graph outputs the frames of the film that follow the one at `after_s`, up to `end_s`.
    With `held_until_s`, frames are repeated where segments begin (`repeats`), up to that time.
    """
    top_down = sorted(rungs, key=lambda rung: rung.width * rung.height, reverse=True)
    size = (top_down[0].width, top_down[0].height)
    if held_until_s is None:
        prepared = [*_prepare(probe, is_snapped=is_snapped, after_s=after_s)]
        chains = []
        output = "scaled0"
    else:
        prepared = [*_prepare_held(probe.video, after_s)]
        until_s = held_until_s if end_s is None else min(held_until_s, end_s + SHORTEST_END_S)
        chains = [*_hold(size, until_s, after_s, repeats)]
        output = "shown"
    cut = [] if end_s is None else [f"trim=end={end_s:.6f}"]
    steps = ",".join((*cut, *visible_frames(probe.video), *prepared, *_finish(probe.video, size)))
    chains.insert(0, f"[0:{probe.video.index}]{steps}[{output}]")
    for place, rung in enumerate(top_down):
        branches = f"[{rung.name}]"
        if place + 1 < len(top_down):
            lower = top_down[place + 1]
            branches += f"[next{place}]"
            # Sizes are rounded to even numbers, so the lower rung's shape differs a little.
            scale = f"scale={lower.width}:{lower.height}:flags=bicubic,setsar=1"
            chains.append(f"[next{place}]{scale}[scaled{place + 1}]")
        chains.append(f"[scaled{place}]split={branches.count('[')}{branches}")
    return ";".join(chains)


def during(spans: Spans) -> str:
    """Return the expression that is not zero within these spans, also a little before each."""
    return "+".join(
        f"gte(t,{from_s - _BOUND_S:.6f})*lt(t,{until_s - _BOUND_S:.6f})"
        for from_s, until_s in spans
    )


def visible_frames(video: VideoTrack) -> Iterator[str]:
    """Yield the filter that removes frames that the edit list hides."""
    if video.hidden:
        yield f"select='not({during(video.hidden)})'"


def still_filters(video: VideoTrack, size: Size) -> Iterator[str]:
    """Yield the filters from a decoded frame to a picture of this size in a JPEG's full range."""
    # A deinterlacer would need the neighbouring frames, which are seconds away here.
    if video.interlaced:
        yield "field,scale=iw:2*ih"
    yield from _finish(video, size)
    yield "scale=out_range=pc"


def frame_before(
    video: VideoTrack, at_s: float, *, is_snapped: bool, is_held: bool = False
) -> Fraction:
    """Return `after_s` for a part whose first segment begins at this time.

    The result is the time of the frame before, or a time that the same frames would follow.
    """
    earliest_s = Fraction(at_s - CUT_TOLERANCE_S)
    if is_held:
        return earliest_s - Fraction(CUT_TOLERANCE_S)
    if not is_snapped:
        return earliest_s - Fraction(_closest_s(video))
    fps = capped_fps(video.fps)
    start_s = Fraction(video.start_s)
    return start_s + (math.ceil((earliest_s - start_s) * fps) - 1) / fps


def time_base(fps: Fraction) -> Fraction:
    """Return the seconds of a tick, of which a frame lasts a whole number.

    Ticks of 1/fps would be exact for a constant rate such as 30000/1001, but would move a track
    that begins between two of them. Fractions of that are exact too, and move it by less. For a
    rate with huge terms the number is nearly whole.
    """
    ticks_per_s = fps * _TICKS_PER_FRAME
    if max(ticks_per_s.as_integer_ratio()) > _MAX_INT:
        ticks_per_s = Fraction(round(ticks_per_s))
    return 1 / ticks_per_s


def _prepare(probe: Probe, *, is_snapped: bool, after_s: Fraction | None) -> Iterator[str]:
    """Yield the filters from decoded frames, which FFmpeg turned upright, to shown frames."""
    video = probe.video
    yield from _deinterlace(video)
    if after_s is not None:
        if is_snapped:
            yield from _snap_after(video, after_s)
        else:
            # The same frames as by `_thin_out`, which depends on the frame before.
            before = f"if(isnan(prev_selected_t),{float(after_s):.6f},prev_selected_t)"
            yield f"select='gte(t-{before},{_closest_s(video):.6f})'"
        return
    yield from _thin_out(video)
    if is_snapped:
        yield from _snap(video)
    # A track may begin later than its sound; its first frame is then shown from the start. A track
    # that begins before zero would lose frames. It is moved, unless that would separate it from its
    # sound.
    shift = "" if probe.audio else "-min(STARTPTS,0)"
    yield f"setpts='if(eq(N,0)*lt(T,{_latest_start_s(video):.6f}),0,PTS{shift})'"


def _deinterlace(video: VideoTrack) -> Iterator[str]:
    is_tall_enough = min(video.coded_width, video.coded_height) >= _DEINTERLACER_MIN_PX
    # Only some key frames are probed, so a short part may be interlaced all the same. Progressive
    # frames pass unchanged, which takes 0.2 % of the time to encode a ladder. Where frames change
    # their size, FFmpeg would lose the frame that the filter holds back.
    may_have_fields = video.codec in _FIELD_CODECS and not video.changes_size
    if (video.interlaced or may_have_fields) and is_tall_enough:
        yield "bwdif=mode=send_frame:deint=interlaced"


def _latest_start_s(video: VideoTrack) -> float:
    """Return the latest time of the film's first frame, before that of any other frame."""
    spare_s = float(Fraction(1, 2) / video.fps) if video.changes_size else _FIRST_FRAME_S
    return max(video.start_s, 0.0) + spare_s


def _prepare_held(video: VideoTrack, after_s: Fraction | None) -> Iterator[str]:
    """Yield the filters for frames that are repeated, also for one before `after_s`."""
    yield from _deinterlace(video)
    # A later part knows the time of a frame, but not its number.
    if frame_step(video.fps) > 1 or not video.constant_rate:
        yield _select_by_time(video)
    earliest = 0 if after_s is None else f"min(PTS,{float(after_s):.6f}/TB)"
    yield f"setpts='if(eq(N,0)*lt(T,{_latest_start_s(video):.6f}),{earliest},PTS)'"


def _hold(size: Size, until_s: float, after_s: Fraction | None, repeats: Repeats) -> Iterator[str]:
    """Yield the chains that repeat a frame where a segment begins and no other frame is shown.

    A filter with two inputs outputs a frame at the times of both: the latest frame of each. Here
    one input is the film, the other a clock with a frame at the film's start, and at that of each
    segment. The clock's picture is stacked beside the film's, and then cut off. Frames have even
    times and the clock odd ones, which tells them apart.
    """
    width, height = size
    ticks = f"settb=1/{_HELD_TICKS_PER_S}"
    yield f"[shown]{ticks},setpts='2*round(PTS/2)'[even]"
    count = max(1, math.ceil((until_s - SHORTEST_END_S - repeats.first_s) / repeats.period_s) + 1)
    clock = f"color=s=2x{height}:r=1:d={count}"
    times = f"gt(N,0)*(round(({repeats.first_s:.6f}+(N-1)*{repeats.period_s:.6f})/TB/2)*2+1)"
    yield f"{clock},format=yuv420p,{_SDR},setsar=1,{ticks},setpts='{times}'[clock]"
    selected = f"not(mod(pts,2))+gte(t-prev_selected_t,{CUT_TOLERANCE_S})"
    if after_s is not None:
        is_later = f"gte(t,{float(after_s) + CUT_TOLERANCE_S - _HELD_ROUNDING_S:.6f})"
        selected = f"{is_later}*({selected}+isnan(prev_selected_t))"
    yield (
        f"[even][clock]hstack,crop={width}:{height}:0:0,{_SDR},select='{selected}'"
        ",setpts='2*floor(PTS/2)'[scaled0]"
    )


def _thin_out(video: VideoTrack) -> Iterator[str]:
    """Yield the filter that keeps a rate below the highest one."""
    step = frame_step(video.fps)
    if not video.constant_rate:
        yield _select_by_time(video)
    elif step > 1:
        yield f"framestep={step}"


def _select_by_time(video: VideoTrack) -> str:
    return f"select='isnan(prev_selected_t)+gte(t-prev_selected_t,{_least_distance_s(video):.6f})'"


def _least_distance_s(video: VideoTrack) -> float:
    """Return the distance of frames below which one is dropped, in a film of a variable rate."""
    step = frame_step(video.fps)
    target = video.fps / step if step > 1 else Fraction(MAX_FPS)
    return _BURST_SHARE / float(target)


def _closest_s(video: VideoTrack) -> float:
    """Return the least distance of frames that keep their times, in any film."""
    return _CLOSEST_S if video.constant_rate else _least_distance_s(video)


def _snap(video: VideoTrack, origin: str = "STARTPTS") -> Iterator[str]:
    """Yield the filters that move frames to their places on a grid through the first frame's."""
    tick = time_base(capped_fps(video.fps))
    numerator, denominator = video.fps.as_integer_ratio()
    frames = f"(PTS-{origin})*TB*{numerator}/{denominator}"
    place = f"round({frames}{video.grid_lead or 0.0:+.4f})"
    yield f"settb={tick.numerator}/{tick.denominator}"
    yield f"setpts='round({origin}+{place}*{denominator}/{numerator}/TB)'"


def _snap_after(video: VideoTrack, after_s: Fraction) -> Iterator[str]:
    """Yield the same as `_thin_out` and `_snap`: each snapped frame is on the grid."""
    last = round(after_s / time_base(capped_fps(video.fps)))
    yield from _snap(video, str(last))
    numerator, denominator = video.fps.as_integer_ratio()
    step = frame_step(video.fps)
    yield f"select='gte(round((pts-{last})*TB*{numerator}/{denominator}),{step})'"
    # This also tells the encoder the rate.
    if step > 1:
        yield f"framestep={step}"


def _finish(video: VideoTrack, size: Size) -> Iterator[str]:
    """Yield the filters that scale frames and convert their colours to BT.709 in 8-bit 4:2:0."""
    scale = _fit(video, size)
    if video.color_space not in _SCALABLE_MATRICES:
        yield "setparams=colorspace=bt2020nc"
    if video.has_alpha:
        # Transparent parts become black; their own colours can be anything.
        yield "format=gbrap,premultiply=inplace=1,format=gbrp"
    if video.is_hdr:
        yield scale
        yield from _tone_map(video)
    else:
        # Players, too, assume BT.709 for HD without a tag, and BT.601 for less.
        matrix = "auto"
        if video.color_space == _UNSPECIFIED:
            is_hd = min(video.width, video.height) >= _HD_MIN_HEIGHT
            matrix = "bt709" if is_hd else "bt601"
        yield f"{scale}:in_color_matrix={matrix}:out_color_matrix=bt709:out_range=tv"
    yield "format=yuv420p"
    yield _SDR
    width, height = size
    yield f"pad={width}:{height}:(ow-iw)/2:(oh-ih)/2"
    yield "setsar=1"


def _fit(video: VideoTrack, size: Size) -> str:
    """Return a filter that scales frames to a size, or to less where their shape differs.

    FFmpeg restarts the filters when frames change their size, so each graph sees one size.
    """
    width, height = size
    sar = float(video.upright_sar)
    # Sizes of renditions and of apertures are rounded to even numbers.
    spare_x = _SHAPE_TOLERANCE * width + 2 * width / height + 2
    spare_y = _SHAPE_TOLERANCE * height + 2 * height / width + 2
    fitted_x = f"{height}*a*{sar:.6f}"
    fitted_y = f"{width}/a/{sar:.6f}"
    return (
        f"scale=w='if(gt({width}-{fitted_x},{spare_x:.3f}),max(2,2*round({fitted_x}/2)),{width})'"
        f":h='if(gt({height}-{fitted_y},{spare_y:.3f}),max(2,2*round({fitted_y}/2)),{height})'"
        ":flags=bicubic"
    )


def _tone_map(video: VideoTrack) -> Iterator[str]:
    """Yield the filters from HDR to BT.709, in linear floating point, with SDR white at 203 nits.

    That level is ITU-R BT.2408's. The curve keeps darker tones and compresses highlights into the
    range above it.
    """
    transfer = "smpte2084" if video.color_transfer == _PQ else "arib-std-b67"
    matrix = _HDR_MATRICES.get(video.color_space, "bt2020nc")
    yield f"zscale=tin={transfer}:pin=bt2020:min={matrix}:t=linear:npl={_SDR_WHITE_NITS}"
    yield "format=gbrpf32le"
    yield "zscale=p=bt709"
    yield "tonemap=mobius:desat=0"
    yield "zscale=t=bt709:m=bt709:r=tv"
