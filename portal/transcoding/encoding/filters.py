"""Compose filters: each decoded frame becomes every rung's, or a still picture. Pure.

A frame is scaled once to the largest rung of the pass and each lower rung from the one above
it, because scaling costs what its input is large. HDR is scaled first and mapped then, for the
same reason.

Shapes: sizes are (width, height) in pixels, upright.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from portal.transcoding.planning.ladder import MAX_FPS, Rung, capped_fps, frame_step
from portal.transcoding.probing.cuts import SEGMENT_S, SHORTEST_END_S
from portal.transcoding.probing.facts import Probe, VideoTrack

Size = tuple[int, int]

# A variable-rate source may burst above the cap; frames closer than this share of 1/fps go. It
# spares the jitter of 60 fps, and makes every fourth of 240 and every second of 120 stay.
_BURST_SHARE = 0.82
# Frames of a constant rate that keep their times are further apart, whatever their jitter.
_CLOSEST_S = 0.002
# A listed time is rounded; a frame this close before it is meant. Frames that keep their own times
# may stand as close as 5 ms (60 a second, a third of a frame off), variable ones 13 ms.
CUT_TOLERANCE_S = 0.004
_DEINTERLACER_MIN_PX = 3
# Codecs of broadcasts. The deinterlacer takes their pixel formats as they are, but for rare ones.
_FIELD_CODECS = ("h264", "mpeg2video")
# Two for each tick of the encoder's.
_HELD_TICKS_PER_S = 180_000
_HELD_ROUNDING_S = 0.0001
_SDR = "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"
_TICKS_PER_FRAME = 100
# A shape this close to the expected one, as a share, gets no bars.
_SHAPE_TOLERANCE = 0.02
# The film's first frame is shown from zero if it begins at most this long after `start_s`: decoders
# may differ about a damaged start. FFmpeg also restarts the filters in the middle, when frames
# change; the first frame there keeps its time.
_FIRST_FRAME_S = 0.5
# FFmpeg holds both parts of a time base as C's int.
_MAX_INT = 2**31 - 1

# Code points of ISO/IEC 23091-2.
_UNSPECIFIED = 2
_PQ = 16
_HDR_MATRICES = {10: "bt2020c", 14: "ictcp"}
# Any other matrix stops FFmpeg's scaler.
_SCALABLE_MATRICES = frozenset({0, 1, 2, 4, 5, 6, 7, 9})
_SDR_WHITE_NITS = 203
_HD_MIN_HEIGHT = 720


def filter_graph(
    probe: Probe,
    rungs: Sequence[Rung],
    *,
    is_snapped: bool,
    after_s: Fraction | None = None,
    held_until_s: float | None = None,
) -> str:
    """The graph for `-filter_complex`; its outputs are named for the rungs.

    `is_snapped` moves the frames of a constant rate to exact times; otherwise all keep their own.
    With `after_s`, when the last frame of an earlier run is shown, those that follow it come out as
    they would have in that run. With `held_until_s`, frames are repeated where segments begin, up
    to then.
    """
    top_down = sorted(rungs, key=lambda rung: rung.width * rung.height, reverse=True)
    size = _size(top_down[0])
    if held_until_s is None:
        prepared = _prepare(probe, is_snapped=is_snapped, after_s=after_s)
        held = []
    else:
        prepared = _prepare_held(probe.video, after_s)
        held = [*_hold(size, held_until_s, after_s)]
    steps = ",".join((*prepared, *_finish(probe.video, size)))
    chains = [f"[0:{probe.video.index}]{steps}[{'shown' if held else 'scaled0'}]", *held]
    for place, rung in enumerate(top_down):
        chains += _rung(place, rung, top_down[place + 1 : place + 2])
    return ";".join(chains)


def still_filters(video: VideoTrack, size: Size) -> Iterator[str]:
    """From one decoded frame to a picture of this size in the full range of a JPEG."""
    # One frame alone: a deinterlacer would look at its neighbours, which are seconds away.
    if video.interlaced:
        yield "field,scale=iw:2*ih"
    yield from _finish(video, size)
    yield "scale=out_range=pc"


def _rung(place: int, rung: Rung, following: Sequence[Rung]) -> Iterator[str]:
    """Feed a rung's frames to its encoder and to the next lower rung."""
    branches = f"[{rung.name}]"
    if following:
        branches += f"[next{place}]"
        # Rounded to even numbers, its shape is a little another one.
        yield f"[next{place}]{_scale(_size(following[0]))},setsar=1[scaled{place + 1}]"
    yield f"[scaled{place}]split={branches.count('[')}{branches}"


def frame_before(
    video: VideoTrack, at_s: float, *, is_snapped: bool, is_held: bool = False
) -> Fraction:
    """What `after_s` is where nothing is made before a segment that begins at this time.

    That is the time of the frame before, or of one that would be followed by the same.
    """
    earliest_s = Fraction(at_s - CUT_TOLERANCE_S)
    if is_held:
        return earliest_s - Fraction(CUT_TOLERANCE_S)
    if not is_snapped:
        return earliest_s - Fraction(_closest_s(video))
    fps, start_s = capped_fps(video.fps), Fraction(video.start_s)
    return start_s + (math.ceil((earliest_s - start_s) * fps) - 1) / fps


def time_base(fps: Fraction) -> Fraction:
    """Seconds of a tick that a frame lasts a whole number of, or nearly for a rate of huge parts.

    Ticks of 1/fps would be exact for a constant rate such as 30000/1001, but move a track that
    does not begin on one; parts of it are exact too and move it by less.
    """
    ticks_per_s = fps * _TICKS_PER_FRAME
    if max(ticks_per_s.as_integer_ratio()) > _MAX_INT:
        ticks_per_s = Fraction(round(ticks_per_s))
    return 1 / ticks_per_s


def _deinterlace(video: VideoTrack) -> Iterator[str]:
    is_tall_enough = min(video.coded_width, video.coded_height) >= _DEINTERLACER_MIN_PX
    # Key frames were sampled, so a short part may be interlaced all the same. Progressive frames
    # pass as they are: that takes 0.2 % of the time that encoding a ladder takes. Where frames
    # change their size, FFmpeg would lose the one that the filter holds back.
    may_have_fields = video.codec in _FIELD_CODECS and not video.changes_size
    if (video.interlaced or may_have_fields) and is_tall_enough:
        yield "bwdif=mode=send_frame:deint=interlaced"


def _prepare(probe: Probe, *, is_snapped: bool, after_s: Fraction | None) -> Iterator[str]:
    """From decoded frames (already turned upright by ffmpeg) to the frames that are shown."""
    video = probe.video
    yield from _deinterlace(video)
    if after_s is not None:
        if is_snapped:
            yield from _snap_after(video, after_s)
        else:
            yield _select_after(video, after_s)
        return
    yield from _thin_out(video)
    if is_snapped:
        yield from _snap(video)
    # A track may begin late, after its audio; its first frame is then shown from the start. One
    # that begins before zero would lose frames: it is moved, unless that would part it from audio.
    shift = "" if probe.audio else "-min(STARTPTS,0)"
    yield f"setpts='if(eq(N,0)*lt(T,{_latest_start_s(video):.6f}),0,PTS{shift})'"


def _latest_start_s(video: VideoTrack) -> float:
    """Return when the film's first frame is shown at the latest, and no other one yet."""
    spare_s = float(Fraction(1, 2) / video.fps) if video.changes_size else _FIRST_FRAME_S
    return max(video.start_s, 0.0) + spare_s


def _prepare_held(video: VideoTrack, after_s: Fraction | None) -> Iterator[str]:
    """Prepare frames that are repeated; a frame before `after_s` may be repeated, too."""
    yield from _deinterlace(video)
    # Each run can tell the time of a frame, but not its number.
    if frame_step(video.fps) > 1 or not video.constant_rate:
        yield _select_thinly(video)
    earliest = 0 if after_s is None else f"min(PTS,{float(after_s):.6f}/TB)"
    yield f"setpts='if(eq(N,0)*lt(T,{_latest_start_s(video):.6f}),{earliest},PTS)'"


def _hold(size: Size, until_s: float, after_s: Fraction | None) -> Iterator[str]:
    """Repeat a frame wherever a segment begins and no other is shown.

    A clock ticks there, and a filter that takes two inputs gives a frame at the times of both: the
    latest one of each. The clock's picture is stacked beside the film's, then cut off. Frames have
    even times and the clock odd ones, which tells them apart.
    """
    width, height = size
    ticks = f"settb=1/{_HELD_TICKS_PER_S}"
    yield f"[shown]{ticks},setpts='2*round(PTS/2)'[even]"
    clock = f"color=s=2x{height}:r=1/{SEGMENT_S}:d={max(1.0, until_s - SHORTEST_END_S):.6f}"
    yield f"{clock},format=yuv420p,{_SDR},setsar=1,{ticks},setpts='PTS+gt(N,0)'[clock]"
    own = f"not(mod(pts,2))+gte(t-prev_selected_t,{CUT_TOLERANCE_S})"
    if after_s is not None:
        is_later = f"gte(t,{float(after_s) + CUT_TOLERANCE_S - _HELD_ROUNDING_S:.6f})"
        own = f"{is_later}*({own}+isnan(prev_selected_t))"
    yield (
        f"[even][clock]hstack,crop={width}:{height}:0:0,{_SDR},select='{own}'"
        ",setpts='2*floor(PTS/2)'[scaled0]"
    )


def _thin_out(video: VideoTrack) -> Iterator[str]:
    step = frame_step(video.fps)
    if video.constant_rate:
        if step > 1:
            yield f"framestep={step}"
        return
    yield _select_thinly(video)


def _select_thinly(video: VideoTrack) -> str:
    return f"select='isnan(prev_selected_t)+gte(t-prev_selected_t,{_shortest_s(video):.6f})'"


def _shortest_s(video: VideoTrack) -> float:
    """Of a variable rate: how long a frame lasts at least."""
    step = frame_step(video.fps)
    target = video.fps / step if step > 1 else Fraction(MAX_FPS)
    return _BURST_SHARE / float(target)


def _snap(video: VideoTrack, origin: str = "STARTPTS") -> Iterator[str]:
    """Move each frame to its place on the grid, which has one at the time of the first frame."""
    tick, (above, below) = time_base(capped_fps(video.fps)), video.fps.as_integer_ratio()
    place = f"round((PTS-{origin})*TB*{above}/{below}{video.grid_lead or 0.0:+.4f})"
    yield f"settb={tick.numerator}/{tick.denominator}"
    yield f"setpts='round({origin}+{place}*{below}/{above}/TB)'"


def _snap_after(video: VideoTrack, after_s: Fraction) -> Iterator[str]:
    """As `_thin_out` and `_snap`: any frame that was snapped tells where the grid is."""
    last = round(after_s / time_base(capped_fps(video.fps)))
    yield from _snap(video, str(last))
    (above, below), step = video.fps.as_integer_ratio(), frame_step(video.fps)
    yield f"select='gte(round((pts-{last})*TB*{above}/{below}),{step})'"
    # Tells the encoder the rate, too.
    if step > 1:
        yield f"framestep={step}"


def _select_after(video: VideoTrack, after_s: Fraction) -> str:
    """As `_thin_out`, which goes by the frame before; a rate that is not thinned out loses none."""
    before = f"if(isnan(prev_selected_t),{float(after_s):.6f},prev_selected_t)"
    return f"select='gte(t-{before},{_closest_s(video):.6f})'"


def _closest_s(video: VideoTrack) -> float:
    return _CLOSEST_S if video.constant_rate else _shortest_s(video)


def _finish(video: VideoTrack, size: Size) -> Iterator[str]:
    """Scale, and bring the colours to what every screen shows: BT.709 in 8-bit 4:2:0."""
    scale = _fit(video, size)
    if video.color_space not in _SCALABLE_MATRICES:
        yield "setparams=colorspace=bt2020nc"
    if video.has_alpha:
        # What shows through is black; the colours under transparent pixels can be anything.
        yield "format=gbrap,premultiply=inplace=1,format=gbrp"
    if video.is_hdr:
        yield scale
        yield from _tone_map(video)
    else:
        matrix = _assumed_matrix(video)
        yield f"{scale}:in_color_matrix={matrix}:out_color_matrix=bt709:out_range=tv"
    yield "format=yuv420p"
    yield _SDR
    width, height = size
    yield f"pad={width}:{height}:(ow-iw)/2:(oh-ih)/2"
    yield "setsar=1"


def _fit(video: VideoTrack, size: Size) -> str:
    """Return a filter that scales frames to a size, or to less where their shape is another.

    FFmpeg restarts the filters when frames change their size, so each graph sees one size.
    """
    width, height = size
    sar = float(video.upright_sar)
    # Sizes of renditions, and of what an aperture leaves, are rounded to even numbers.
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
    """From HDR light to BT.709, in linear floating point, where SDR white is at 203 nits.

    That level is ITU-R BT.2408's. The curve keeps what is darker as it is and folds highlights into
    what is left above.
    """
    transfer = "smpte2084" if video.color_transfer == _PQ else "arib-std-b67"
    matrix = _HDR_MATRICES.get(video.color_space, "bt2020nc")
    yield f"zscale=tin={transfer}:pin=bt2020:min={matrix}:t=linear:npl={_SDR_WHITE_NITS}"
    yield "format=gbrpf32le"
    yield "zscale=p=bt709"
    yield "tonemap=mobius:desat=0"
    yield "zscale=t=bt709:m=bt709:r=tv"


def _assumed_matrix(video: VideoTrack) -> str:
    """Untagged video is BT.709 when HD and BT.601 when not, as players assume too."""
    if video.color_space != _UNSPECIFIED:
        return "auto"
    return "bt709" if min(video.width, video.height) >= _HD_MIN_HEIGHT else "bt601"


def _size(rung: Rung) -> Size:
    return (rung.width, rung.height)


def _scale(size: Size) -> str:
    """Bicubic; what other kernels cost and bring stands in `planning.ladder`."""
    return f"scale={size[0]}:{size[1]}:flags=bicubic"
