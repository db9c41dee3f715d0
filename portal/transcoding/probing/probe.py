"""Find out what a source holds, or refuse it within seconds and say why.

The parsing happens in a confined process (`__main__`); this module starts it and turns its
facts into a `Probe`. Limits: MP4 and QuickTime only; http(s) addresses, or an absolute path.
"""

import json
import math
import signal
import sys
from asyncio import timeout
from asyncio.subprocess import Process
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from portal.processes.child import Limits, spawn, stop
from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed

# It leaves no compiled modules behind (-B): a limit on files would leave it half of one.
_CHILD = ("-I", "-B", "-m", "portal.transcoding.probing")
# Measured: 0.13 GiB resident for an 8192x4320 picture, 1.7 GiB for an index of 50 million samples,
# twenty times what half a day at 60 frames per second has.
_MEMORY_BYTES = 4 * 1024**3
# A file that keeps the processor busy is told from a storage that doesn't answer by this share
# of the time limit, spent computing.
_CPU_SHARE = 0.6
# It has nothing to write but its answer, and that goes through a pipe.
_FILE_BYTES = 1
# Decoders and scalers break down somewhere above, whatever the number of pixels.
_MAX_SIDE_PX = 16_384
# Below this share of samples inside the file an upload counts as cut off. What is left of the
# others is worth publishing, with a word about what is missing.
_MIN_READABLE_SHARE = 0.9
_FALLBACK_FPS = Fraction(25)
_STDERR_TAIL_CHARS = 4000
# What a machine short of memory, or one that shuts down, ends a probe with; its own limits use
# other signals. A file that has the machine run short fails as often as it is tried.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLimits:
    """What a source may measure; 0 means no limit. `max_pixels` is of one frame."""

    max_pixels: int = 8192 * 4320
    max_duration_s: int = 12 * 3600
    max_size_bytes: int = 100 * 10**9


_DEFAULT_LIMITS = SourceLimits()


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoTrack:
    """The video as it is stored (`coded_*`) and as it is meant to be seen (`width`, `height`).

    `width` and `height` are after rotation and with square pixels; a `mirrored` picture has to be
    flipped, too (FFmpeg does both when it decodes). `duration_s` is None when the
    file's own claim can't be trusted (fragmented files). `constant_rate` means every frame lasts
    1/`fps`. The colour fields are the code points of ISO/IEC 23091-2 (2 = unspecified).

    `start_s` is when the first frame is shown, edit lists applied. What comes from the file's
    index is None without one (fragmented files): `frame_count` counts what is presented,
    `bitrate_bps` is the stored bytes over the duration, and `max_key_distance_s` the longest
    stretch between key frames, the end included. `closed_gops` means that H.264 can be cut at
    every key frame without decoding: those sampled are IDR pictures with one constant delay, and
    nothing is discarded. It is False in doubt.
    """

    index: int
    codec: str
    width: int
    height: int
    coded_width: int
    coded_height: int
    rotation: int
    sar: Fraction
    fps: Fraction
    constant_rate: bool
    pix_fmt: str
    interlaced: bool
    duration_s: float | None
    color_space: int
    color_transfer: int
    color_primaries: int
    profile: str | None
    full_range: bool
    has_alpha: bool
    start_s: float
    frame_count: int | None
    bitrate_bps: int | None
    max_key_distance_s: float | None
    closed_gops: bool
    mirrored: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioTrack:
    """A track that can be played. `language` is as in the file, None when undetermined."""

    index: int
    codec: str
    channels: int
    sample_rate_hz: int
    language: str | None
    title: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubtitleTrack:
    """A text track; captions made of pictures are left out."""

    index: int
    codec: str
    language: str | None
    title: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """What a source holds. `duration_s` is the longest track's, as the file claims it.

    `readable_share` is the share of the video's samples that lie inside the file. The audio
    tracks' default comes first.
    """

    duration_s: float
    size_bytes: int
    readable_share: float
    video: VideoTrack
    audio: tuple[AudioTrack, ...]
    subtitles: tuple[SubtitleTrack, ...]


async def probe(
    source_url: str, *, limits: SourceLimits = _DEFAULT_LIMITS, timeout_s: float = 30
) -> Probe:
    """Examine a source and decode its first frame.

    Raises SourceRejected when it can't be published, TranscodeFailed when it can't be reached or
    examined in time.
    """
    address, protocols = source_address(source_url)
    request = {
        "source": address,
        "protocols": protocols,
        "timeout_s": timeout_s,
        "max_pixels": limits.max_pixels,
        "max_side_px": _MAX_SIDE_PX,
        "max_size_bytes": limits.max_size_bytes,
    }
    answer = await _ask_child(request, timeout_s=timeout_s)
    _refuse(answer, limits)
    found = _interpret(answer)
    _check_measures(found, limits)
    return found


def source_address(source_url: str) -> tuple[str, str]:
    """The address as FFmpeg takes it, and the protocols it may use to read it."""
    if source_url.startswith(("http://", "https://")):
        return source_url, "http,https,tcp,tls"
    if Path(source_url).is_absolute():
        return f"file:{source_url}", "file"
    raise ValueError("a source is an http(s) address or an absolute path")


async def _ask_child(request: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
    limits = Limits(
        nice=0,
        memory_bytes=_MEMORY_BYTES,
        cpu_s=math.ceil(timeout_s * _CPU_SHARE),
        file_bytes=_FILE_BYTES,
    )
    process = await spawn((sys.executable, *_CHILD), limits=limits, stdin=True)
    try:
        async with timeout(timeout_s):
            stdout, stderr = await process.communicate(json.dumps(request).encode())
    except TimeoutError:
        raise TranscodeFailed(FailCode.PROBE_FAILED, detail="probe timed out") from None
    finally:
        await stop(process)
    return _answer(process, stdout=stdout, stderr=stderr)


def _answer(process: Process, *, stdout: bytes, stderr: bytes) -> dict[str, Any]:
    if process.returncode == 0:
        answer: dict[str, Any] = json.loads(stdout)
        return answer
    tail = stderr.decode(errors="replace")[-_STDERR_TAIL_CHARS:]
    detail = f"probe ended with {process.returncode}: {tail}"
    number = -(process.returncode or 0)
    if number > 0 and number not in _FROM_OUTSIDE:
        # The file crashed the parser or ran into a limit, and it will do so again.
        raise SourceRejected(RejectCode.DAMAGED, detail=detail)
    raise TranscodeFailed(FailCode.PROBE_FAILED, detail=detail)


def _refuse(answer: dict[str, Any], limits: SourceLimits) -> None:
    error, detail = answer.get("error"), answer.get("detail", "")
    if error == "unreachable":
        raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail=detail)
    if error == RejectCode.TOO_LARGE:
        raise _too_large(limits)
    if error == RejectCode.FILE_TOO_LARGE:
        raise _file_too_large(limits)
    if error is not None:
        raise SourceRejected(RejectCode(error), detail=detail)
    if answer["readable_share"] < _MIN_READABLE_SHARE:
        raise SourceRejected(RejectCode.TRUNCATED)


def _check_measures(found: Probe, limits: SourceLimits) -> None:
    video = found.video
    for width, height in (
        (video.coded_width, video.coded_height),
        (video.width, video.height),  # stretched pixels can make more of it
    ):
        if max(width, height) > _MAX_SIDE_PX or 0 < limits.max_pixels < width * height:
            raise _too_large(limits)
    if 0 < limits.max_duration_s < found.duration_s:
        raise SourceRejected(RejectCode.TOO_LONG, limit=_in_words(limits.max_duration_s))


def _too_large(limits: SourceLimits) -> SourceRejected:
    pixels = f"{limits.max_pixels / 1e6:.3g} megapixels" if limits.max_pixels else ""
    side = f"{_MAX_SIDE_PX} pixels a side"
    return SourceRejected(RejectCode.TOO_LARGE, limit=f"{pixels} or {side}" if pixels else side)


def _file_too_large(limits: SourceLimits) -> SourceRejected:
    return SourceRejected(RejectCode.FILE_TOO_LARGE, limit=f"{limits.max_size_bytes / 1e9:.3g} GB")


def _in_words(duration_s: int) -> str:
    minutes, seconds = divmod(duration_s, 60)
    hours, minutes = divmod(minutes, 60)
    parts = {"h": hours, "min": minutes, "s": seconds}
    return " ".join(f"{value} {unit}" for unit, value in parts.items() if value)


def _interpret(answer: dict[str, Any]) -> Probe:
    video = _video_track(answer["video"])
    audio = tuple(AudioTrack(**track) for track in answer["audio"])
    subtitles = tuple(SubtitleTrack(**track) for track in answer["subtitles"])
    shortest_s = float(1 / video.fps)
    duration_s = max(answer["duration_s"] or 0.0, video.duration_s or 0.0, shortest_s)
    return Probe(
        duration_s=duration_s,
        size_bytes=answer["size_bytes"],
        readable_share=answer["readable_share"],
        video=video,
        audio=audio,
        subtitles=subtitles,
    )


def _video_track(facts: dict[str, Any]) -> VideoTrack:
    sar = _fraction(facts.pop("sar")) or Fraction(1)
    average, base = _fraction(facts.pop("average_rate")), _fraction(facts.pop("base_rate"))
    if facts["frame_count"] is None:
        facts["duration_s"] = None
    width, height = _display_size(facts, sar)
    return VideoTrack(
        width=width,
        height=height,
        sar=sar,
        fps=_nominal_rate(average, base),
        constant_rate=average is not None and average == base,
        **facts,
    )


def _display_size(facts: dict[str, Any], sar: Fraction) -> tuple[int, int]:
    """Square pixels by stretching the axis the ratio says is squeezed; then upright."""
    width, height = facts["coded_width"], facts["coded_height"]
    if sar > 1:
        width = round(width * sar)
    else:
        height = round(height / sar)
    # FFmpeg turns by quarters within a degree, and by any other angle inside the same frame.
    is_quarter = abs(facts["rotation"] % 180 - 90) <= 1
    return (height, width) if is_quarter else (width, height)


def _nominal_rate(average: Fraction | None, base: Fraction | None) -> Fraction:
    """The base rate when the average says it is meant (30000/1001, not 29.968), else the average.

    `base` is the lowest rate all timestamps fit, so in a variable source it can be absurdly high.
    """
    if average and base and abs(average - base) / base < Fraction(1, 100):
        return base
    return average or base or _FALLBACK_FPS


def _fraction(text: str | None) -> Fraction | None:
    value = Fraction(text) if text else None
    return value if value and value > 0 else None
