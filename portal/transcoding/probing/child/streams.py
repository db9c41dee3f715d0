"""Describe the streams of an opened file, and choose those that count."""

import contextlib
import re
import struct
from collections.abc import Iterable
from typing import Any

from av.container import InputContainer
from av.sidedata.sidedata import Type
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from portal.transcoding.probing.child import avc

_MAX_AUDIO_TRACKS = 8
_MAX_SUBTITLE_TRACKS = 32
_MAX_TITLE_CHARS = 80
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_UNDETERMINED = "und"
# What muxers write when nobody named the track.
_DEFAULT_NAMES = re.compile(
    r"hand\s?le|core media|iso media|produced by|inc\.|\(c\)|gpac|l-smash|bento4|\baac\b|\bavc\b",
    re.IGNORECASE,
)
_FULL_RANGE = 2
_FULL_TURN = 360


def video_streams(container: InputContainer) -> list[VideoStream]:
    """The default one first, without cover art, which is a video stream too."""
    still = Disposition.attached_pic | Disposition.timed_thumbnails
    return _default_first(
        stream for stream in container.streams.video if not stream.disposition & still
    )


def video(stream: VideoStream, frame: VideoFrame) -> dict[str, Any]:
    """The facts of the video, but for those of its index."""
    context = stream.codec_context
    configuration = avc.read_configuration(context.extradata)
    return {
        "index": stream.index,
        "codec": context.name,
        "profile": context.profile,
        "level": configuration.level if configuration else None,
        "coded_width": frame.width,
        "coded_height": frame.height,
        "pix_fmt": frame.format.name,
        "has_alpha": any(component.is_alpha for component in frame.format.components),
        # A degenerate display matrix has no angle.
        "rotation": frame.rotation if abs(frame.rotation) <= _FULL_TURN else 0,
        "mirrored": _is_mirrored(frame),
        "sar": _ratio(stream.sample_aspect_ratio or context.sample_aspect_ratio),
        "average_rate": _ratio(stream.average_rate),
        "base_rate": _ratio(stream.base_rate),
        "start_s": _seconds(frame.pts, frame.time_base) or 0.0,
        "duration_s": _seconds(stream.duration, stream.time_base),
        "interlaced": frame.interlaced_frame,
        "full_range": int(frame.color_range) == _FULL_RANGE or "yuvj" in frame.format.name,
        "color_space": int(frame.colorspace),
        "color_transfer": int(frame.color_trc),
        "color_primaries": int(frame.color_primaries),
    }


def _is_mirrored(frame: VideoFrame) -> bool:
    """Whether the display matrix (three rows of three, from FFmpeg in native order) flips."""
    matrix = b""
    # PyAV doesn't know every kind of side data, and then gives none.
    with contextlib.suppress(ValueError):
        sides: Any = frame.side_data  # a mapping by its type, a sequence by its behaviour
        matrix = b"".join(bytes(side) for side in sides if side.type == Type.DISPLAYMATRIX)
    if len(matrix) != struct.calcsize("9i"):
        return False
    a, b, _, c, d, *_ = struct.unpack("9i", matrix)
    return bool(a * d - b * c < 0)


def audio(container: InputContainer) -> list[dict[str, Any]]:
    """The tracks that can be heard, the default first."""
    playable = [
        {
            **_track(stream),
            "profile": stream.codec_context.profile,
            "channels": stream.channels,
            "sample_rate_hz": stream.sample_rate,
        }
        for stream in _default_first(container.streams.audio)
        if stream.codec_context is not None and stream.channels > 0 and stream.sample_rate > 0
    ]
    return playable[:_MAX_AUDIO_TRACKS]


def subtitles(container: InputContainer) -> list[dict[str, Any]]:
    """The tracks made of text."""
    texts = [
        _track(stream)
        for stream in container.streams.subtitles
        if stream.codec_context is not None and stream.codec_context.codec.text_sub
    ]
    return texts[:_MAX_SUBTITLE_TRACKS]


def _default_first(streams: Iterable[Any]) -> list[Any]:
    """In the file's order, but those it marks as default before all others."""
    return sorted(streams, key=lambda stream: not stream.disposition & Disposition.default)


def _track(stream: Any) -> dict[str, Any]:
    return {
        "index": stream.index,
        "codec": stream.codec_context.name,
        "language": _language(stream),
        "title": _title(stream),
    }


def _language(stream: Any) -> str | None:
    language = stream.metadata.get("language", "")
    known = _LANGUAGE.fullmatch(language) and language.lower() != _UNDETERMINED
    return language if known else None


def _title(stream: Any) -> str | None:
    for key in ("title", "name", "handler_name"):
        text = "".join(char for char in stream.metadata.get(key, "") if char.isprintable()).strip()
        if text and not _DEFAULT_NAMES.search(text):
            return text[:_MAX_TITLE_CHARS]
    return None


def _ratio(value: Any) -> str | None:
    return f"{value.numerator}/{value.denominator}" if value else None


def _seconds(value: int | None, time_base: Any) -> float | None:
    return float(value * time_base) if value and time_base else None
