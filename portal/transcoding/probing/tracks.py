"""Choose among the tracks of a source, name them, and find silent ones.

Cameras write silent tracks for inputs without a microphone. Limits of finding these: only layouts
that PyAV can decode, see `__main__`; no fragmented files, whose index is incomplete.
"""

from __future__ import annotations

import contextlib
import re
import time
from array import array
from collections.abc import Iterable
from itertools import islice
from typing import Any

import av
from av.container import InputContainer
from av.stream import Disposition

from portal.transcoding.probing import boxes, telemetry
from portal.transcoding.probing.edits import TimeLine
from portal.transcoding.probing.source import packets

_MAX_TITLE_CHARS = 80
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_UNDETERMINED = "und"
# Names that muxers write for unnamed tracks, and makers of cameras, which viewers need not know.
_DEFAULT_NAMES = re.compile(
    r"hand\s?le|core media|iso media|produced by|inc\.|\(c\)|gpac|l-smash|bento4"
    r"|\b(aac|avc|hevc|pcm)\b|dji|gopro|insta360|ambarella|garmin|parrot|autel|sony|canon|nikon"
    r"|panasonic|fujifilm|samsung|huawei|xiaomi",
    re.IGNORECASE,
)
# Names with only a channel or a number.
_PLAIN_NAMES = re.compile(
    r"mono|stereo|left|right|[lr]|(audio|sound|track|channel|ch|a)[\s_.#-]*\d*", re.IGNORECASE
)
_NAME_KEYS = ("title", "name", "handler_name")
# Places of a track at which silence is looked for, so that little of a long one is read.
_PLACES = 20
# A decoder needs one packet to begin with.
_PACKETS = 4
# Highest level of silence: 60 dB below full scale in 16-bit samples.
_SILENT_PEAK = 32
# Limit on the time for all tracks, which must be less than that of the probe.
SILENCE_LIMIT_S = 5.0
# Least share of the pixels of the best picture that another one has, or else it is a preview.
_LEAST_SHARE = 0.1


def is_decodable(stream: Any, request: dict[str, Any]) -> bool:
    """Return whether a track's decoder is among the names in `request["decoders"]`.

    Commas separate the names. The result is False if FFmpeg has no decoder for the track.
    """
    context = stream.codec_context
    return context is not None and context.name in request["decoders"].split(",")


def codec_name(stream: av.VideoStream, outline: boxes.Outline) -> str:
    """Return FFmpeg's name of a codec, or else the code in the file."""
    if stream.codec_context is not None:
        return stream.codec_context.codec.canonical_name
    entries = outline.pictures.get(stream.id) or [boxes.PictureEntry((0, 0), {})]
    return re.sub(r"[^\w.-]", "?", entries[0].kind.decode("latin-1"), flags=re.ASCII) or "unknown"


def picture_tracks(container: InputContainer, request: dict[str, Any]) -> list[av.VideoStream]:
    """Return the video tracks, the best first.

    Tracks that can be decoded come before others, moving pictures before stills, and enabled tracks
    before disabled ones. Of several, the one with the most pixels in all its frames is the best.
    """
    # Cover art is a video stream too.
    art = Disposition.attached_pic | Disposition.timed_thumbnails
    videos = [video for video in container.streams.video if not video.disposition & art]
    return sorted(
        videos,
        key=lambda video: (
            is_decodable(video, request),
            *_motion(video),
            _pixels(video) * len(video.index_entries),
        ),
        reverse=True,
    )


def _motion(stream: av.VideoStream) -> tuple[bool, bool]:
    """Return whether a track has several frames, and whether it is enabled."""
    return len(stream.index_entries) > 1, bool(stream.disposition & Disposition.default)


def _pixels(stream: av.VideoStream) -> int:
    context = stream.codec_context
    return context.width * context.height if context else 0


def is_film_beside(other: av.VideoStream, best: av.VideoStream) -> bool:
    """Return whether another track is a film too, and no small preview of the best one."""
    return all(_motion(other)) and _pixels(other) >= _LEAST_SHARE * _pixels(best)


def default_first(streams: Iterable[Any]) -> list[Any]:
    """Return streams in the file's order, default streams first."""
    return sorted(streams, key=lambda stream: not stream.disposition & Disposition.default)


def describe(stream: Any, time_line: TimeLine) -> dict[str, Any]:
    """Return the facts about a track of sound or text."""
    language = stream.metadata.get("language", "")
    is_valid = _LANGUAGE.fullmatch(language) and language.lower() != _UNDETERMINED
    return {
        "index": stream.index,
        "codec": stream.codec_context.name,
        "language": language if is_valid else None,
        "title": _title(stream),
        "hidden": time_line.hidden_spans(stream),
    }


def _title(stream: Any) -> str | None:
    for key in _NAME_KEYS:
        text = "".join(char for char in stream.metadata.get(key, "") if char.isprintable()).strip()
        if text and not (_DEFAULT_NAMES.search(text) or _PLAIN_NAMES.fullmatch(text)):
            return text[:_MAX_TITLE_CHARS]
    return None


def has_device_name(stream: Any) -> bool:
    """Return whether a text track is telemetry by its name; its cues are read with the others."""
    return any(telemetry.is_device_name(stream.metadata.get(key, "")) for key in _NAME_KEYS)


def is_silent(container: InputContainer, stream: Any, *, until: float) -> bool:
    """Return whether no decoded sample is loud.

    The result is False if the time `until`, by the monotonic clock, is reached.
    """
    entries = stream.index_entries
    for place in range(_PLACES):
        if time.monotonic() > until:
            return False
        with contextlib.suppress(av.FFmpegError):
            container.seek(entries[len(entries) * place // _PLACES].timestamp, stream=stream)
            for packet in islice(packets(container, [stream]), _PACKETS):
                if any(_peak(frame) > _SILENT_PEAK for frame in stream.decode(packet)):
                    return False
    return True


def _peak(frame: av.AudioFrame) -> int:
    parts = av.AudioResampler(format="s16").resample(frame)
    samples = array("h", b"".join(bytes(part.planes[0]) for part in parts))
    return max(map(abs, samples), default=0)
