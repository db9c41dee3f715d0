"""Run ffmpeg and read its log. No other module starts ffmpeg; `command` composes its arguments.

A run is confined: lowest priority, minimal environment, limited memory, processor time and file
size; it ends with the worker. It has a limit on its wall time and on the time without progress, and
never outlives the call. Only the last few complaints of stderr are kept.
"""

import asyncio
import math
import os
import re
import signal
from asyncio import StreamReader
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import cast

import imageio_ffmpeg

from portal.processes.child import (
    OUT_OF_MEMORY,
    Limits,
    OutOfTime,
    Stalled,
    Watch,
    attend,
    spawn,
    stop,
)
from portal.transcoding.errors import FailCode, TranscodeFailed

_READ_BYTES = 65536
STALL_LIMIT_S = 120.0
_MIN_RUN_LIMIT_S = 900.0
# Wall time as a multiple of the source's duration. A 4K ladder on two weak cores takes less.
_RUN_LIMIT_PER_SOURCE_S = 60.0
# Address space, most of it reserved but unused: threads' stacks and arenas, and frames.
# Measured with the ladder of an 8192x4320 source 3.9 GiB on 2 cores and 9.6 GiB on 16 (4K: 3.7 and
# 8.3, 1080p: 2.1 and 4.3); the limit is about twice as much.
_BASE_MEMORY_BYTES = 6 * 1024**3
_MEMORY_PER_CORE_BYTES = 1024**3
# A segment of four seconds at 8 Gbit/s.
_MAX_FILE_BYTES = 4 * 1024**3


# Called with the seconds of the film that ffmpeg has written.
OnFfmpegProgress = Callable[[float], Awaitable[None]]
# Figures at the end have the level `verbose`. With `repeat` repeated lines are kept, and `level`
# writes the level of each line, by which complaints are recognised.
LOG_LEVEL = ("-loglevel", "repeat+level+verbose")

_TAIL_BYTES = 8192
_NO_COMPLAINT = re.compile(rb"\[(info|verbose|debug|trace)\]")
_DECODED = re.compile(
    rb"\[in#0.*\[verbose\]   Input stream #0:\d+ \(video\):.*?"
    rb" (\d+) frames decoded; (\d+) decode errors;"
)
_UNHEARD = re.compile(
    rb"\[in#.*\[verbose\]   Input stream #\d+:(\d+) \(audio\):.*?; 0 frames decoded;"
)
_CORRUPT = re.compile(rb"\[vist#0:.*corrupt decoded frame")
# Figures in the summary of the filter `ebur128`, whose lines have no level. The last line of a part
# gets its end with the next part: before that, another thread's message may follow on the line.
_LOUDNESS = re.compile(rb" +(I|LRA|Peak): +(-?[0-9.]+|-?inf|nan) (?:LUFS|LU|dBFS)")
# Linux repeats this signal every second, and ffmpeg counts signals. No other process sends it any:
# it has a separate session, and a run that this module ends is not judged by its log.
_CPU_LIMIT = re.compile(
    rf"received signal {signal.SIGXCPU.value}|Received > \d system signals, hard exiting"
)
_SIGNAL_LINE = b"received signal"
_NETWORK_ERROR = re.compile(
    r"HTTP error|Server returned|ends prematurely|Connection (refused|reset|timed out)"
    r"|Error reading HTTP response"
)
# Complaints of protocols, most of which a retry overcomes.
_PROTOCOL = re.compile(rb"\[(https?|tcp|tls) @ ")
_SOURCE_ENDED_EARLY = "partial file"


@dataclass(kw_only=True, slots=True)
class RunReport:
    """Figures of a run about decoding; `frames_decoded` is None if no video was decoded.

    `decode_errors` counts packets that gave no frame, `corrupt_frames` frames with concealed
    damage, `network_faults` complaints about reading the source, most of which were overcome.
    `unheard` has the indexes of sound streams of which nothing was decoded, and `loudness` the
    figures of the filter `ebur128`, by its names for them.
    """

    frames_decoded: int | None = None
    decode_errors: int = 0
    corrupt_frames: int = 0
    network_faults: int = 0
    unheard: set[int] = field(default_factory=set)
    loudness: dict[str, float] = field(default_factory=dict)

    def __add__(self, other: "RunReport") -> "RunReport":
        """Return the report of two runs about one film."""
        frames = (self.frames_decoded or 0) + (other.frames_decoded or 0)
        return RunReport(
            frames_decoded=frames or None,
            decode_errors=self.decode_errors + other.decode_errors,
            corrupt_frames=self.corrupt_frames + other.corrupt_frames,
            network_faults=self.network_faults + other.network_faults,
            unheard=self.unheard | other.unheard,
            loudness=self.loudness | other.loudness,
        )

    @property
    def packets(self) -> int:
        """Return the number of packets that were decoded, or failed to."""
        return (self.frames_decoded or 0) + self.decode_errors

    @property
    def faults(self) -> int:
        """Return the number of faults while decoding."""
        return self.decode_errors + self.corrupt_frames


class FfmpegLog:
    """Reader of ffmpeg's stderr."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._incomplete_line = b""
        self.report = RunReport()

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes, which may end within a line."""
        *lines, incomplete_line = (self._incomplete_line + chunk).split(b"\n")
        self._incomplete_line = incomplete_line[-_TAIL_BYTES:]
        for line in lines:
            self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        if (match := _LOUDNESS.match(line)) is not None:
            self.report.loudness[match[1].decode()] = float(match[2])
        elif _NO_COMPLAINT.search(line) is None or _SIGNAL_LINE in line:
            self.report.corrupt_frames += _CORRUPT.search(line) is not None
            self.report.network_faults += _PROTOCOL.match(line) is not None
            self._tail += line + b"\n"
            del self._tail[:-_TAIL_BYTES]
        elif (match := _DECODED.match(line)) is not None:
            self.report.frames_decoded = (self.report.frames_decoded or 0) + int(match[1])
            self.report.decode_errors += int(match[2])
        elif (match := _UNHEARD.match(line)) is not None:
            self.report.unheard.add(int(match[1]))

    def text(self) -> str:
        """Return the last warnings and errors that ffmpeg wrote, up to 8 KiB."""
        return (self._tail + self._incomplete_line).decode(errors="replace").strip()

    def failure(self, returncode: int | None) -> FailCode | None:
        """Return why a run that ended by itself failed; None if it succeeded."""
        text = self.text()
        network_error = self.report.network_faults or _NETWORK_ERROR.search(text)
        if returncode == 0:
            # A connection that broke for good looks to ffmpeg like the end of the file.
            is_cut = network_error and _SOURCE_ENDED_EARLY in text
            return FailCode.SOURCE_UNREACHABLE if is_cut else None
        if returncode == -signal.SIGXFSZ:
            return FailCode.OUTPUT_TOO_LARGE
        if returncode == -signal.SIGXCPU or _CPU_LIMIT.search(text):
            return FailCode.TIMED_OUT
        if OUT_OF_MEMORY.search(text):
            return FailCode.OUT_OF_MEMORY
        return FailCode.SOURCE_UNREACHABLE if network_error else FailCode.FFMPEG_FAILED


def run_limit_s(duration_s: float) -> float:
    """Return the limit on the wall time for a source of this duration."""
    return max(_MIN_RUN_LIMIT_S, duration_s * _RUN_LIMIT_PER_SOURCE_S)


@cache
def ffmpeg_path() -> str:
    """Return the path of the ffmpeg that is installed with the portal."""
    return str(imageio_ffmpeg.get_ffmpeg_exe())


async def run(
    arguments: Sequence[str],
    *,
    timeout_s: float,
    on_progress: OnFfmpegProgress | None = None,
    stall_s: float = STALL_LIMIT_S,
    paused: asyncio.Event | None = None,
    cwd: Path | None = None,
    limits: Limits | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunReport:
    """Run ffmpeg to its end. Raises TranscodeFailed if it fails, stalls or takes too long.

    The log level is set here, for the figures at the end. While `paused` is set, ffmpeg is stopped,
    because its output can't be uploaded fast enough. `environ` is for a proxied source.
    """
    process = await spawn(
        (ffmpeg_path(), *LOG_LEVEL, *arguments),
        limits=limits or _encoding_limits(timeout_s),
        cwd=cwd,
        environ=environ,
    )
    log = FfmpegLog()
    watch = Watch(timeout_s, stall_s)
    readers = (
        _keep_log(cast("StreamReader", process.stderr), log),
        _follow(cast("StreamReader", process.stdout), watch, on_progress),
    )
    try:
        await attend(process, watch, *readers, paused=paused or asyncio.Event())
    except Stalled:
        raise TranscodeFailed(FailCode.STALLED, detail=log.text()) from None
    except OutOfTime:
        raise TranscodeFailed(FailCode.TIMED_OUT, detail=log.text()) from None
    finally:
        # Output after this point would not be used, so ffmpeg is killed at once.
        await stop(process, signals=())
    code = log.failure(process.returncode)
    if code is not None:
        raise TranscodeFailed(code, detail=f"ffmpeg ended with {process.returncode}: {log.text()}")
    return log.report


def _encoding_limits(timeout_s: float) -> Limits:
    cores = len(os.sched_getaffinity(0))
    return Limits(
        memory_bytes=_BASE_MEMORY_BYTES + cores * _MEMORY_PER_CORE_BYTES,
        cpu_s=math.ceil(timeout_s * cores),
        file_bytes=_MAX_FILE_BYTES,
    )


async def _keep_log(stream: StreamReader, log: FfmpegLog) -> None:
    while chunk := await stream.read(_READ_BYTES):
        log.feed(chunk)


async def _follow(stream: StreamReader, watch: Watch, on_progress: OnFfmpegProgress | None) -> None:
    fields: dict[str, str] = {}
    written_s = 0.0
    while line := await stream.readline():
        key, _, value = line.decode(errors="replace").strip().partition("=")
        fields[key] = value
        if key == "progress":
            watch.saw(fields.get("out_time_us"), fields.get("frame"))
            if on_progress:
                time_us = fields.get("out_time_us", "N/A")  # before the first output
                if time_us != "N/A":
                    # At the end, the time of one of several outputs may come after a later one.
                    written_s = max(written_s, float(time_us) / 1e6)
                await on_progress(written_s)
            fields = {}
