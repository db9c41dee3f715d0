"""Find out what a source holds, or refuse it within seconds and say why.

The parsing happens in `probe_child.py`, a confined process; this module starts it and turns its
facts into a `Probe`. Limits: MP4 and QuickTime only; http(s) addresses, or an absolute path.
"""

import json
import math
import sys
from asyncio import timeout
from asyncio.subprocess import Process
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.process import Limits, spawn, stop

_CHILD = Path(__file__).with_name("probe_child.py")
_MEMORY_BYTES = 4 * 1024**3
_MAX_SIDE_PX = 8192
# Below this share of samples inside the file an upload counts as cut off; a missing last frame
# or two is not worth a refusal.
_MIN_READABLE_SHARE = 0.98
_FALLBACK_FPS = Fraction(25)
_STDERR_TAIL_CHARS = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoTrack:
    """The video as it is stored (`coded_*`) and as it is meant to be seen (`width`, `height`).

    `width` and `height` are after rotation and with square pixels. `duration_s` is None when the
    file's own claim can't be trusted (fragmented files). `constant_rate` means every frame lasts
    1/`fps`. The colour fields are the code points of ISO/IEC 23091-2 (2 = unspecified).
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


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioTrack:
    """The audio track that will be heard."""

    index: int
    codec: str
    channels: int
    sample_rate_hz: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """What a source holds. `duration_s` is the longest track's, as the file claims it."""

    duration_s: float
    video: VideoTrack
    audio: AudioTrack | None


async def probe(source_url: str, *, timeout_s: float = 30) -> Probe:
    """Examine a source and decode its first frame.

    Raises SourceRejected when it can't be published, TranscodeFailed when it can't be reached or
    examined in time.
    """
    address, protocols = source_address(source_url)
    request = {"source": address, "protocols": protocols, "timeout_s": timeout_s}
    return _interpret(await _ask_child(request, timeout_s=timeout_s))


def source_address(source_url: str) -> tuple[str, str]:
    """The address as FFmpeg takes it, and the protocols it may use to read it."""
    if source_url.startswith(("http://", "https://")):
        return source_url, "http,https,tcp,tls"
    if Path(source_url).is_absolute():
        return f"file:{source_url}", "file"
    raise ValueError("a source is an http(s) address or an absolute path")


async def _ask_child(request: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
    limits = Limits(nice=0, memory_bytes=_MEMORY_BYTES, cpu_s=math.ceil(timeout_s))
    process = await spawn((sys.executable, "-I", str(_CHILD)), limits=limits, stdin=True)
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
    if process.returncode is not None and process.returncode < 0:
        # A signal: the file crashed the parser or ran into a limit, and it will do so again.
        raise SourceRejected(RejectCode.DAMAGED, detail=detail)
    raise TranscodeFailed(FailCode.PROBE_FAILED, detail=detail)


def _interpret(answer: dict[str, Any]) -> Probe:
    if (error := answer.get("error")) == "unreachable":
        raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail=answer["detail"])
    if error is not None:
        raise SourceRejected(RejectCode(error), detail=answer["detail"])
    if answer["readable_share"] < _MIN_READABLE_SHARE:
        raise SourceRejected(RejectCode.TRUNCATED)
    video = _video_track(answer["video"])
    if max(video.width, video.height, video.coded_width, video.coded_height) > _MAX_SIDE_PX:
        raise SourceRejected(RejectCode.TOO_LARGE)
    audio = AudioTrack(**answer["audio"]) if answer["audio"] else None
    shortest_s = float(1 / video.fps)
    duration_s = max(answer["duration_s"] or 0.0, video.duration_s or 0.0, shortest_s)
    return Probe(duration_s=duration_s, video=video, audio=audio)


def _video_track(facts: dict[str, Any]) -> VideoTrack:
    sar = _fraction(facts.pop("sar")) or Fraction(1)
    average, base = _fraction(facts.pop("average_rate")), _fraction(facts.pop("base_rate"))
    indexed = facts.pop("frame_count") > 0
    if not indexed:
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
    return (height, width) if facts["rotation"] % 180 else (width, height)


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
