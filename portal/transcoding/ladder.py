"""Decide which renditions a source gets. Pure: no I/O, the same probe gives the same ladder.

The top rung is always the source's own picture, so nothing an editor uploaded is thrown away,
and nothing is ever enlarged. Below it come the standard sizes, each at least a quarter smaller
in each direction than the one above: closer neighbours cost an encode and look the same.
A size is a box, not a height: a 1920x800 film is "1080p", and 1080x1920 is too.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from portal.transcoding.probe import Probe

# 240 keeps a picture moving on the poorest link and costs about 3 % of encoding a 1080p ladder.
_STANDARD_SHORT_SIDES = (240, 360, 480, 720, 1080, 1440, 2160)
_WIDEST = Fraction(16, 9)
_MIN_STEP = Fraction(5, 4)
_MAX_FPS = 60

_CRF = 23
_REFERENCE_PIXELS = 1920 * 1080
_REFERENCE_BITRATE_BPS = 6_000_000
_REFERENCE_FPS = 30
# Smaller pictures hold more detail per pixel, so the rate falls more slowly than the area;
# likewise a doubled frame rate needs about 1.4 times the bits.
_AREA_EXPONENT = 0.75
_FPS_EXPONENT = 0.5
_MIN_BITRATE_BPS = 200_000
_BUFFER_S = 1.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """One video rendition to make. Constant quality (`crf`), capped at `max_bitrate_bps`."""

    name: str
    width: int
    height: int
    fps: Fraction
    crf: int
    max_bitrate_bps: int
    buffer_bits: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioRung:
    """The one audio rendition all video renditions share."""

    name: str = "audio"
    bitrate_bps: int = 128_000
    channels: int = 2
    sample_rate_hz: int = 48_000


def plan_ladder(probe: Probe) -> tuple[Rung, ...]:
    """The video renditions for a source, lowest first; never empty."""
    width, height = probe.video.width, probe.video.height
    fps = capped_fps(probe.video.fps)
    scales = _scales(size_class(width, height))
    return tuple(_rung(width, height, scale=scale, fps=fps) for scale in scales)


def plan_audio(probe: Probe) -> AudioRung | None:
    """The audio rendition, if the source has sound."""
    return AudioRung() if probe.audio else None


def size_class(width: int, height: int) -> Fraction:
    """The short side of the smallest 16:9 box, upright or not, that the picture fits in."""
    return max(Fraction(min(width, height)), max(width, height) / _WIDEST)


def capped_fps(fps: Fraction) -> Fraction:
    """At most 60, by leaving out whole frames: 120 becomes 60, 100 becomes 50."""
    return fps / frame_step(fps)


def frame_step(fps: Fraction) -> int:
    """Keep one frame of this many."""
    return max(1, math.ceil(fps / _MAX_FPS))


def _scales(source: Fraction) -> list[Fraction]:
    """Factors from the source's size to each rung's, rising; the last is 1 unless above 2160."""
    top = min(source, Fraction(_STANDARD_SHORT_SIDES[-1]))
    below = [Fraction(side) for side in _STANDARD_SHORT_SIDES if side * _MIN_STEP <= top]
    return [side / source for side in (*below, top)]


def _rung(width: int, height: int, *, scale: Fraction, fps: Fraction) -> Rung:
    rung_width, rung_height = _even(width * scale), _even(height * scale)
    max_bitrate_bps = _max_bitrate_bps(rung_width * rung_height, fps)
    return Rung(
        name=f"{math.floor(size_class(width, height) * scale)}p",
        width=rung_width,
        height=rung_height,
        fps=fps,
        crf=_CRF,
        max_bitrate_bps=max_bitrate_bps,
        buffer_bits=round(max_bitrate_bps * _BUFFER_S),
    )


def _even(length: Fraction) -> int:
    """Round down to an even number: 4:2:0 chroma needs it, and up would enlarge."""
    return max(2, math.floor(length) // 2 * 2)


def _max_bitrate_bps(pixels: int, fps: Fraction) -> int:
    area = math.pow(pixels / _REFERENCE_PIXELS, _AREA_EXPONENT)
    motion = math.pow(max(1.0, float(fps / _REFERENCE_FPS)), _FPS_EXPONENT)
    rate_bps = _REFERENCE_BITRATE_BPS * area * motion
    return max(_MIN_BITRATE_BPS, round(rate_bps / 1000) * 1000)
