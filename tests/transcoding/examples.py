"""A probe and finished renditions as the tests of planning and packaging need them."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from portal.transcoding.packaging.master import FinishedRendition, Kind, master_playlist
from portal.transcoding.probing.facts import AudioTrack, Probe, Track, VideoTrack


def a_probe(
    width: int,
    height: int,
    fps: Fraction = Fraction(30),
    *,
    audio: Sequence[AudioTrack] = (),
    subtitles: Sequence[Track] = (),
    duration_s: float = 10.0,
    **video: object,
) -> Probe:
    """A source that could be copied, but for its sound and whatever is said otherwise."""
    facts: dict[str, object] = {
        "index": 0,
        "codec": "h264",
        "width": width,
        "height": height,
        "coded_width": width,
        "coded_height": height,
        "rotation": 0,
        "sar": Fraction(1),
        "fps": fps,
        "constant_rate": True,
        "pix_fmt": "yuv420p",
        "interlaced": False,
        "duration_s": duration_s,
        "color_space": 1,
        "color_transfer": 1,
        "color_primaries": 1,
        "profile": "High",
        "level": 40,
        "full_range": False,
        "has_alpha": False,
        "start_s": 0.0,
        "frame_count": round(duration_s * fps),
        "bitrate_bps": 1_000_000,
        "peak_bitrate_bps": 2_000_000,
        "max_key_distance_s": 2.0,
        "closed_gops": True,
        "grid_lead": 0.0,
    }
    return Probe(
        duration_s=duration_s,
        size_bytes=1_000_000,
        readable_share=1.0,
        video=VideoTrack(**{**facts, **video}),
        audio=tuple(audio),
        subtitles=tuple(subtitles),
    )


def a_video(height: int, bandwidth_bps: int, **otherwise: object) -> FinishedRendition:
    facts = {
        "kind": Kind.VIDEO,
        "name": f"{height}p",
        "width": height * 16 // 9,
        "height": height,
        "fps": Fraction(30000, 1001),
        "codecs": "avc1.64001f",
        "bandwidth_bps": bandwidth_bps,
        "average_bandwidth_bps": bandwidth_bps // 2,
        "iframe_bandwidth_bps": bandwidth_bps // 10,
        "size_bytes": 1,
        "segment_count": 1,
    }
    return FinishedRendition(**{**facts, **otherwise})


def a_sound(name: str = "audio", **otherwise: object) -> FinishedRendition:
    facts = {
        "kind": Kind.AUDIO,
        "name": name,
        "codecs": "mp4a.40.2",
        "bandwidth_bps": 140_000,
        "average_bandwidth_bps": 128_000,
        "size_bytes": 1,
        "segment_count": 1,
        "channels": 2,
        "label": "Audio",
        "is_default": True,
    }
    return FinishedRendition(**{**facts, **otherwise})


def a_text(name: str, language: str | None, label: str) -> FinishedRendition:
    sound = a_sound(name, language=language, label=label, is_default=False, channels=None)
    return replace(sound, kind=Kind.SUBTITLES, codecs="wvtt", bandwidth_bps=10_000_000)


def here(*renditions: FinishedRendition) -> str:
    return master_playlist([("", rendition) for rendition in renditions])
