"""Facts of sources that need no file."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from portal.transcoding.probing.facts import AudioTrack, Probe, Track, VideoTrack


def a_probe(
    width: int,
    height: int,
    fps: Fraction = Fraction(30),
    *,
    audio: Sequence[AudioTrack] = (),
    subtitles: Sequence[Track] = (),
    duration_s: float = 10.0,
    **video: Any,
) -> Probe:
    """A source that could be copied, but for its sound and whatever is said otherwise."""
    facts = {
        **{"index": 0, "codec": "h264", "profile": "High", "level": 40, "pix_fmt": "yuv420p"},
        **{"width": width, "height": height, "coded_width": width, "coded_height": height},
        **{"rotation": 0, "sar": Fraction(1), "interlaced": False, "has_alpha": False},
        **{"color_space": 1, "color_transfer": 1, "color_primaries": 1},
        **{"fps": fps, "constant_rate": True, "grid_lead": 0.0, "start_s": 0.0},
        **{"duration_s": duration_s, "frame_count": round(duration_s * fps)},
        **{"bitrate_bps": 1_000_000, "peak_bitrate_bps": 2_000_000},
        **{"max_key_distance_s": 2.0, "closed_gops": True},
    }
    return Probe(
        duration_s=duration_s,
        size_bytes=1_000_000,
        readable_share=1.0,
        video=VideoTrack(**{**facts, **video}),
        audio=tuple(audio),
        subtitles=tuple(subtitles),
    )


def a_track(language: str | None = None, **facts: Any) -> AudioTrack:
    heard = {"codec": "aac", "profile": "LC", "channels": 2, "sample_rate_hz": 48_000}
    return AudioTrack(**{"index": 1, "language": language, "title": None, **heard, **facts})
