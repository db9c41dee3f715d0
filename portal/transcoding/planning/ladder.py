"""Plan the video renditions of a source. Pure: the same probe gives the same plan.

The top rung has the source's size, and no rendition is larger. The lower rungs have standard sizes,
each at least a quarter smaller in each direction than the one above, because closer sizes cost an
encode and look the same. A size is a box, not a height: a 1920x800 film is "1080p", and so is
1080x1920.

The top rung may be a copy of the source's stream if the probe allows it. `transcoding.copying`
checks the conditions that need the whole stream.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from portal.transcoding.planning.tracks import AudioRung, TrackRung, plan_audio, plan_subtitles
from portal.transcoding.probing.facts import Probe, VideoTrack
from portal.transcoding.probing.segment_bounds import MAX_GOP_S, SEGMENT_S, SHORTEST_END_S

# Conditions on a copied stream: all players decode it, and can switch at its key frames.
_PROFILES = frozenset({"Constrained Baseline", "Baseline", "Main", "High"})
_PIX_FMTS = frozenset({"yuv420p", "yuvj420p"})
_MAX_LEVEL = 42
_MAX_LEVEL_ABOVE_HD = 52
_HD_PIXELS = 1920 * 1088
_MAX_BITRATE_RATIO = 3
# Players stall if the picture ends long before the sound. A copied picture can't be made longer,
# but may end a segment earlier.
_MAX_EARLY_END_S = SEGMENT_S
# Frames that last longer are repeated, because segments would begin late.
_LONGEST_FRAME_S = SEGMENT_S / 2
_LATEST_START_S = 1.0
# Highest bit rates, on average and in a segment, of a copy that is published alone at first. Above
# them, viewers on slow lines need a lower rendition.
_ALONE_BITRATE_BPS = 8_000_000
_ALONE_PEAK_BPS = 16_000_000


# The standard sizes are encoded at a constant quality, with a cap in bit/s by the short side.
# Chosen by measurement (VMAF 0.6.1 of each rung at its own size,
# three real 1080p clips: a forest, a street, a room; kbit/s beside it; with B-frames and a crf of
# 23, which take as many bits as 24 without B-frames):
#
#            240p      360p      480p       720p       1080p
#   forest   87  327   91  759   95 1472    97 2544    99 4272
#   street   78  336   87  777   93 1541    98 3588    97 6532
#   room     92  110   92  196   92  306    92  623    94 1479
#
# With a crf of 20 the 1080p rung gains about one point for 40 % more bits; with 26 it loses three
# or four. Low rungs score low where they reach their cap, as intended: they are for poor links.
# Presets at equal VMAF, 360p and 720p: faster takes 13 to 16 % fewer bits than veryfast for 1.4 to
# 1.8 times the processor time; at 360p fast and medium take 22 % fewer for 2.0 and 2.6 times.
# Scaling 1080p to 360p, VMAF at equal bits: lanczos 55, bicubic 53, area 49, bilinear 42; bicubic
# costs 9 % less than lanczos. 1440p and 2160p are extrapolated from the other sizes.
#
# The caps are for 16:9 at 30 fps; those of other shapes and rates are computed from them. Apple's
# HLS authoring specification has similar rates: 145 kbit/s at 416x234, 365 at 640x360, 1100 at
# 768x432, 3000 and 4500 at 720p, 6000 and 7800 at 1080p.
#
# At this preset B-frames gain nothing. In nine encodings of six real clips, at 480p and 720p, no
# B-frames and a crf of 24 take 1 % fewer bits than three and 23, for 0.4 points more VMAF.
PRESET = "veryfast"
CRF = 24
_LADDER = {
    240: 300_000,  # plays on the poorest link, and costs about 3 % of encoding 1080p
    360: 700_000,
    480: 1_400_000,
    720: 3_300_000,
    1080: 6_000_000,
    1440: 9_300_000,
    2160: 17_000_000,
}

# Encoding time of the ladder from which a source becomes playable before the ladder is complete.
_EARLY_FROM_ENCODE_S = 8
# Longest encoding time of renditions that are made together after a copy, with one decode. Alone,
# the rendition for slow lines would take about half the time, but the whole ladder would take
# longer, because the source is decoded twice.
_APART_FROM_ENCODE_S = 30
# Pixels that two processors encode per second, without decoding: 60 s of 1080p30 in five rungs take
# 38 s (tests/benchmarks/transcode.py).
_ENCODED_PIXELS_PER_S = 175_000_000
# Pixels that two processors decode per second, by the codec. Measured with 3 s of a grainy 1080p30
# clip at 5 to 10 Mbit/s and `ffmpeg -f null`, with half the processor time (590, 520, 710, 730,
# 1300, 850 and 200 million; png 110).
_DECODED_PIXELS_PER_S = {
    "h264": 600_000_000,
    "hevc": 500_000_000,
    "vp8": 700_000_000,
    "vp9": 700_000_000,
    "av1": 700_000_000,
    "mpeg4": 700_000_000,
    "mjpeg": 700_000_000,
    "prores": 200_000_000,
}
_DECODED_OTHERWISE_PIXELS_PER_S = 110_000_000
# Short side of the largest rung that is made quickly, and is good enough to start watching.
_EARLY_SHORT_SIDE = 360

_WIDEST = Fraction(16, 9)
_MIN_STEP = Fraction(5, 4)
MAX_FPS = 60
_REFERENCE_FPS = 30
# Smaller frames have more detail per pixel, so the bit rate falls more slowly than the area. A
# doubled frame rate needs about 1.4 times the bits.
_AREA_EXPONENT = 0.75
_FPS_EXPONENT = 0.5
_MIN_BITRATE_BPS = 150_000
_BUFFER_S = 1.5

# Bytes of this H.264 encoder for one byte of a source's codec. No rendition gets more than the
# source's bit rate at its size times this factor. Measured at equal VMAF on three real clips of
# 480p (a park, a road, a crystal), at two qualities each:
#
#   H.264 (x264 medium)     1.2 to 1.5    HEVC (x265 fast)       1.2 to 1.8
#   VP9 (libvpx, speed 5)   1.4 to 2.5    AV1 (SVT, preset 9)    1.7 to 2.2
#
# H.264 sources get a factor of 1, because the gain is not visible, and so do those in VP8, which
# doesn't compress better. For other codecs (ProRes, MJPEG)
# nothing was measured; their bit rates are so high that the caps above apply first.
_WORTH_IN_H264 = {"h264": 1.0, "vp8": 1.0, "hevc": 2.0, "vp9": 2.5, "av1": 2.25}
# Least bit rate, as a share of a rung's cap: still pictures take nearly no bits in the source, but
# have a key frame at the start of each segment here.
_MIN_CAP_SHARE = 0.05
# Seconds of its bit rate by which the encoder exceeds it at the start, which matters in short
# clips: 0.4 s as measured, of the 1.35 s that the decoder's buffer would allow.
_SPENT_EARLY_S = 0.45


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """Video rendition. `copied` means that the source's stream is copied, not encoded."""

    name: str
    width: int
    height: int
    fps: Fraction
    max_bitrate_bps: int
    copied: bool = False

    @property
    def buffer_bits(self) -> int:
        """Return the size of the decoder's buffer for the cap."""
        return round(self.max_bitrate_bps * _BUFFER_S)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Planned renditions of a source; `video` is in rising order and never empty.

    `plays_by_copy` means that the copied rendition is published alone at first. `keeps_times` means
    that frames of all renditions have the source's times, as those of a copy. An encoded picture
    ends at `picture_s`, None if that is unknown. `is_held` means that a frame is repeated where a
    segment begins without one. Expected times are for a worker with two processors. `decode_s` is
    the time to decode the source once. Frames take `moving_s` at their rate, without pauses.
    """

    duration_s: float
    moving_s: float
    decode_s: float
    video: tuple[Rung, ...]
    audio: tuple[AudioRung, ...]
    subtitles: tuple[TrackRung, ...]
    plays_by_copy: bool
    keeps_times: bool
    picture_s: float | None = None
    is_held: bool = False

    def first_pass(self, *, cautious: bool = False) -> tuple[str, ...]:
        """Return the names of the video renditions to make before the video is ready.

        They are the copied one if it suffices, or all if they take a short time. Otherwise they are
        one that is good enough to start with, and the copied one if there is one. Set `cautious` to
        get the latter in any case, if an earlier attempt failed at the file.
        """
        copied = [rung.name for rung in self.video if rung.copied]
        if self.plays_by_copy and not cautious:
            return tuple(copied)
        if self.ladder_s < _EARLY_FROM_ENCODE_S and not cautious:
            return tuple(rung.name for rung in self.video)
        sizes = {rung.name: (rung.width, rung.height) for rung in self.video}
        first = {early_rendition(sizes), *copied}
        return tuple(name for name in sizes if name in first)

    def limited_to(self, names: Collection[str], *, with_sound: bool = True) -> "Plan":
        """Return the plan of a pass that makes these video renditions.

        It also makes all sound and subtitles, unless `with_sound` is False.
        """
        video = tuple(rung for rung in self.video if rung.name in names)
        if with_sound:
            return replace(self, video=video)
        return replace(self, video=video, audio=(), subtitles=())

    @property
    def ladder_s(self) -> float:
        """Return the expected time to make all renditions in one pass."""
        return self.encode_s([rung.name for rung in self.video])

    def encode_s(self, names: Collection[str]) -> float:
        """Return the expected encoding time of a pass with these renditions; 0 for copies."""
        encoded = [rung for rung in self.video if rung.name in names and not rung.copied]
        if not encoded:
            return 0.0
        pixels_per_s = sum(rung.width * rung.height * float(rung.fps) for rung in encoded)
        return self.decode_s + pixels_per_s * self.moving_s / _ENCODED_PIXELS_PER_S


def early_rendition(sizes: Mapping[str, tuple[int, int]]) -> str | None:
    """Return the rendition that is made quickly and is good enough to start with.

    `sizes` are those of the renditions, in rising order. The result is None if there are none.
    """
    low = [name for name, size in sizes.items() if size_class(*size) <= _EARLY_SHORT_SIDE]
    return low[-1] if low else next(iter(sizes), None)


def is_made_together(pixels_per_s: float, duration_s: float) -> bool:
    """Return whether renditions with this number of pixels per second are encoded in one pass.

    Otherwise viewers on slow lines would wait too long beside a copy.
    """
    return pixels_per_s * duration_s / _ENCODED_PIXELS_PER_S < _APART_FROM_ENCODE_S


def plan_renditions(probe: Probe, *, may_copy: bool = True) -> Plan:
    """Plan all renditions of a source; without `may_copy`, all are encoded.

    All renditions of a source that can be copied keep the times of its frames, also without
    `may_copy`.
    """
    video = probe.video
    rungs = plan_ladder(probe)
    is_copyable = rungs[-1].copied
    is_copied = is_copyable and may_copy
    # The number of frames counts, and not their bytes, because samples may share bytes.
    frames = video.frame_count or float(video.fps) * probe.duration_s
    pixels_per_s = _DECODED_PIXELS_PER_S.get(video.codec, _DECODED_OTHERWISE_PIXELS_PER_S)
    picture_s = probe.duration_s if video.duration_s and not is_copyable else video.duration_s
    is_held = not is_copyable and _is_held(video, picture_s)
    repeated = probe.duration_s / SEGMENT_S if is_held else 0
    return Plan(
        duration_s=probe.duration_s,
        moving_s=min(probe.duration_s, (frames + repeated) / float(video.fps)),
        decode_s=video.coded_width * video.coded_height * frames / pixels_per_s,
        video=(*rungs[:-1], replace(rungs[-1], copied=is_copied)),
        audio=plan_audio(probe, may_copy=is_copied),
        subtitles=plan_subtitles(probe),
        plays_by_copy=is_copied
        and (video.bitrate_bps or math.inf) <= _ALONE_BITRATE_BPS
        and (video.peak_bitrate_bps or math.inf) <= _ALONE_PEAK_BPS,
        keeps_times=is_copyable,
        picture_s=picture_s,
        is_held=is_held,
    )


def _is_held(video: VideoTrack, picture_s: float | None) -> bool:
    """Return whether a frame lasts, or may last, too long in a picture that ends at this time."""
    if picture_s is None or video.last_frame_s is None:
        return False
    unknown_s = 0.0 if video.constant_rate else math.inf
    longest_s = unknown_s if video.longest_frame_s is None else video.longest_frame_s
    return max(longest_s, picture_s - video.last_frame_s) >= _LONGEST_FRAME_S


def even_starts_s(plan: Plan, video: VideoTrack) -> list[float] | None:
    """Return the times of segments of a film without a copy: each multiple of `SEGMENT_S`.

    The result is None if it is not certain that a frame begins at each of them.
    """
    unknown_s = math.inf if video.grid_lead is None else 0.0
    longest_s = unknown_s if video.longest_frame_s is None else video.longest_frame_s
    is_even = video.start_s <= _LATEST_START_S and longest_s < _LONGEST_FRAME_S
    if plan.picture_s is None or not (is_even or plan.is_held):
        return None
    count = math.ceil((plan.picture_s - SHORTEST_END_S) / SEGMENT_S)
    return [float(SEGMENT_S * number) for number in range(max(1, count))]


def plan_ladder(probe: Probe) -> tuple[Rung, ...]:
    """Return the video renditions of a source in rising order; never empty."""
    video = probe.video
    source = size_class(video.width, video.height)
    top = min(source, Fraction(max(_LADDER)))
    sides = (*(Fraction(side) for side in _LADDER if side * _MIN_STEP <= top), top)
    rungs = [_rung(video, short_side=side, scale=side / source) for side in sides]
    capped = [_below_source_rate(rung, probe) for rung in rungs]
    return (*capped[:-1], replace(capped[-1], copied=_can_copy(probe, as_rung=rungs[-1])))


def size_class(width: int, height: int) -> Fraction:
    """Return the short side of the smallest 16:9 box, upright or not, that contains the video."""
    return max(Fraction(min(width, height)), max(width, height) / _WIDEST)


def capped_fps(fps: Fraction) -> Fraction:
    """Return a rate of at most 60 after leaving out frames: 120 becomes 60, 100 becomes 50."""
    return fps / frame_step(fps)


def frame_step(fps: Fraction) -> int:
    """Return the number of frames of which one is kept."""
    return max(1, math.ceil(fps / MAX_FPS))


def _rung(video: VideoTrack, *, short_side: Fraction, scale: Fraction) -> Rung:
    width = _even(video.width * scale)
    height = _even(video.height * scale)
    fps = capped_fps(video.fps)
    standard = next(side for side in _LADDER if short_side <= side)
    area = math.pow(width * height / (standard**2 * _WIDEST), _AREA_EXPONENT)
    motion = math.pow(max(1.0, float(fps / _REFERENCE_FPS)), _FPS_EXPONENT)
    rate_bps = round(_LADDER[standard] * area * motion / 1000) * 1000
    return Rung(
        name=f"{math.floor(short_side)}p",
        width=width,
        height=height,
        fps=fps,
        max_bitrate_bps=max(_MIN_BITRATE_BPS, rate_bps),
    )


def _even(length: Fraction) -> int:
    """Round down to an even number, which 4:2:0 needs; rounding up would enlarge the picture."""
    return max(2, math.floor(length) // 2 * 2)


def _below_source_rate(rung: Rung, probe: Probe) -> Rung:
    """Cap a rung by the bit rate of the source at the rung's size."""
    video = probe.video
    worth = _WORTH_IN_H264.get(video.codec)
    rate_bps = video.bitrate_bps
    if not worth or not rate_bps:
        return rung
    area = rung.width * rung.height / (video.coded_width * video.coded_height)
    duration_s = video.duration_s or probe.duration_s
    evenly = duration_s / (duration_s + _SPENT_EARLY_S)
    least_bps = rung.max_bitrate_bps * _MIN_CAP_SHARE
    share = math.pow(min(1.0, area), _AREA_EXPONENT)
    source_bps = max(least_bps, rate_bps * worth * share * evenly)
    return replace(rung, max_bitrate_bps=min(rung.max_bitrate_bps, round(source_bps)))


def _can_copy(probe: Probe, *, as_rung: Rung) -> bool:
    """Return whether all players decode the source's stream, and can switch to it.

    The timing of frames doesn't matter. `as_rung` is the encoded rendition of the source's size.
    """
    video = probe.video
    max_bps = max(as_rung.max_bitrate_bps * _MAX_BITRATE_RATIO, _ALONE_BITRATE_BPS)
    is_large = video.coded_width * video.coded_height > _HD_PIXELS
    return (
        video.codec == "h264"
        and video.profile in _PROFILES
        and video.pix_fmt in _PIX_FMTS
        and video.level is not None
        and video.level <= (_MAX_LEVEL_ABOVE_HD if is_large else _MAX_LEVEL)
        and not (video.interlaced or video.rotation or video.mirrored or video.is_hdr)
        and not (any(video.margins) or video.changes_size)
        and video.sar == 1
        and video.is_sar_certain
        and (video.coded_width, video.coded_height) == (as_rung.width, as_rung.height)
        and video.fps == as_rung.fps
        and video.closed_gops
        and video.max_key_distance_s is not None
        and video.max_key_distance_s <= MAX_GOP_S
        and _is_copyable_as_edited(probe)
        and probe.duration_s - (video.duration_s or 0.0) <= _MAX_EARLY_END_S
        and video.bitrate_bps is not None
        and video.bitrate_bps <= max_bps
    )


def _is_copyable_as_edited(probe: Probe) -> bool:
    """Return whether edit lists leave a part of the picture to be copied.

    They may hide its beginning and its end. The frames up to the first key frame, and those after
    the last one, may depend on hidden frames, and are then encoded.
    """
    video = probe.video
    if probe.lead_s is None:
        return not video.hidden
    pieces_s = 2 * ((video.max_key_distance_s or 0.0) + SHORTEST_END_S)
    return probe.shows_one_part(video.hidden) and (video.duration_s or 0.0) > pieces_s
