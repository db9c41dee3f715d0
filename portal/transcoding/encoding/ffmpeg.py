"""Run ffmpeg, the only place that starts it, and read what it says. `command` composes arguments.

A run is confined (lowest priority, minimal environment, limited memory, processor time and file
size, dies with the worker), has a limit on its wall time and on how long it may go without
progress, and never outlives the call. Of what it writes to stderr no more than the last few
complaints are held, however many there are.
"""

import asyncio
import math
import os
import re
import signal
from asyncio import StreamReader
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import cast

import imageio_ffmpeg

from portal.processes.child import (
    Limits,
    OutOfTime,
    Stalled,
    Watch,
    attend,
    send,
    spawn,
    stop,
)
from portal.transcoding.errors import FailCode, TranscodeFailed

_READ_BYTES = 65536
STALL_LIMIT_S = 120.0
_MIN_RUN_LIMIT_S = 900.0
# A 4K ladder on two weak cores is still faster than this many times the source's duration.
_RUN_LIMIT_PER_SOURCE_S = 60.0
# Address space, mostly reserved and never touched: threads' stacks and arenas, frames in flight.
# Measured with the ladder of an 8192x4320 source 3.9 GiB on 2 cores and 9.6 GiB on 16 (4K: 3.7 and
# 8.3, 1080p: 2.1 and 4.3); this is about twice as much.
_BASE_MEMORY_BYTES = 6 * 1024**3
_MEMORY_PER_CORE_BYTES = 1024**3
# A segment of four seconds at 8 Gbit/s.
_MAX_FILE_BYTES = 4 * 1024**3


# Told the seconds of the source that ffmpeg has written.
OnFfmpegProgress = Callable[[float], Awaitable[None]]
# The figures at the end are `verbose`. Every line is wanted ("repeat"), and its level, to tell the
# complaints from the rest.
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
_OUT_OF_MEMORY = re.compile(
    r"Cannot allocate memory|malloc of size \d+ failed|pthread_create.*temporarily unavailable"
)
# Linux repeats this signal every second, and ffmpeg counts. Nobody else sends it signals: it has
# a session of its own, and what this program ends is not judged by its log.
_CPU_LIMIT = re.compile(
    rf"received signal {signal.SIGXCPU.value}|Received > \d system signals, hard exiting"
)
_SIGNAL_LINE = b"received signal"
# What it ends with after SIGINT, once all is written.
_ENDED_STATUS = 255
_NETWORK_ERROR = re.compile(
    r"HTTP error|Server returned|ends prematurely|Connection (refused|reset|timed out)"
    r"|Error reading HTTP response"
)
# The protocols' own complaints; a try or two later all may be well.
_PROTOCOL = re.compile(rb"\[(https?|tcp|tls) @ ")
_SOURCE_ENDED_EARLY = "partial file"


@dataclass(kw_only=True, slots=True)
class RunReport:
    """What ffmpeg says about decoding the video in the end; no frames are None without a decoder.

    `decode_errors` counts packets that gave nothing, `corrupt_frames` frames with patched places,
    `network_faults` complaints about reading the source, most of them overcome. `unheard` are the
    indexes of sound streams of which nothing was decoded.
    """

    frames_decoded: int | None = None
    decode_errors: int = 0
    corrupt_frames: int = 0
    network_faults: int = 0
    unheard: set[int] = field(default_factory=set)

    @property
    def packets(self) -> int:
        """How many packets were decoded, or were to be."""
        return (self.frames_decoded or 0) + self.decode_errors

    @property
    def faults(self) -> int:
        """How often decoding went wrong."""
        return self.decode_errors + self.corrupt_frames


class FfmpegLog:
    """Takes in stderr as it comes."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._rest = b""
        self.report = RunReport()

    def feed(self, chunk: bytes) -> None:
        """Take in some bytes, ending anywhere."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-_TAIL_BYTES:]
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        if _NO_COMPLAINT.search(line) is None or _SIGNAL_LINE in line:
            self.report.corrupt_frames += _CORRUPT.search(line) is not None
            self.report.network_faults += _PROTOCOL.match(line) is not None
            self._tail += line + b"\n"
            del self._tail[:-_TAIL_BYTES]
        elif (found := _DECODED.match(line)) is not None:
            self.report.frames_decoded = (self.report.frames_decoded or 0) + int(found[1])
            self.report.decode_errors += int(found[2])
        elif (found := _UNHEARD.match(line)) is not None:
            self.report.unheard.add(int(found[1]))

    def text(self) -> str:
        """The last complaints."""
        return (self._tail + self._rest).decode(errors="replace").strip()

    def failure(self, returncode: int | None) -> FailCode | None:
        """Why a run that ended by itself failed, None when it did not."""
        text = self.text()
        network_error = self.report.network_faults or _NETWORK_ERROR.search(text)
        if returncode == 0:
            # ffmpeg takes a connection that broke for good as the end of the file, and is content.
            is_cut = network_error and _SOURCE_ENDED_EARLY in text
            return FailCode.SOURCE_UNREACHABLE if is_cut else None
        if returncode == -signal.SIGXFSZ:
            return FailCode.OUTPUT_TOO_LARGE
        if returncode == -signal.SIGXCPU or _CPU_LIMIT.search(text):
            return FailCode.TIMED_OUT
        if _OUT_OF_MEMORY.search(text):
            return FailCode.OUT_OF_MEMORY
        return FailCode.SOURCE_UNREACHABLE if network_error else FailCode.FFMPEG_FAILED


def run_limit_s(duration_s: float) -> float:
    """The wall time a source of this duration may take."""
    return max(_MIN_RUN_LIMIT_S, duration_s * _RUN_LIMIT_PER_SOURCE_S)


@cache
def ffmpeg_path() -> str:
    """The ffmpeg that came with the portal."""
    return str(imageio_ffmpeg.get_ffmpeg_exe())


async def run(
    arguments: Sequence[str],
    *,
    timeout_s: float,
    on_progress: OnFfmpegProgress | None = None,
    stall_s: float = STALL_LIMIT_S,
    paused: asyncio.Event | None = None,
    ended: asyncio.Event | None = None,
    cwd: Path | None = None,
    limits: Limits | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunReport:
    """Run ffmpeg to its end. Raises TranscodeFailed when it fails, stalls or takes too long.

    The log level is set here, for the figures at the end. While `paused` is set ffmpeg stands
    still: its output can't be taken away fast enough. Once `ended` is set it is told to end, which
    is no failure then. `environ` is what a proxied source needs.
    """
    cores = len(os.sched_getaffinity(0))
    default_limits = Limits(
        memory_bytes=_BASE_MEMORY_BYTES + cores * _MEMORY_PER_CORE_BYTES,
        cpu_s=math.ceil(timeout_s * cores),
        file_bytes=_MAX_FILE_BYTES,
    )
    process = await spawn(
        (ffmpeg_path(), *LOG_LEVEL, *arguments),
        limits=limits or default_limits,
        cwd=cwd,
        environ=environ,
    )
    log = FfmpegLog()
    watch = Watch(timeout_s, stall_s)
    readers = (
        _keep_log(cast("StreamReader", process.stderr), log),
        _follow(cast("StreamReader", process.stdout), watch, on_progress),
    )
    ended = ended or asyncio.Event()
    ending = asyncio.create_task(_end(process, ended))
    try:
        await attend(process, watch, *readers, paused=paused or asyncio.Event())
    except Stalled:
        raise TranscodeFailed(FailCode.STALLED, detail=log.text()) from None
    except OutOfTime:
        raise TranscodeFailed(FailCode.TIMED_OUT, detail=log.text()) from None
    finally:
        ending.cancel()
        # Nothing that one told to end would still write is of use.
        await stop(process, signals=())
    is_ended = ended.is_set() and process.returncode == _ENDED_STATUS
    if not is_ended and (code := log.failure(process.returncode)) is not None:
        raise TranscodeFailed(code, detail=f"ffmpeg ended with {process.returncode}: {log.text()}")
    return log.report


async def _end(process: Process, ended: asyncio.Event) -> None:
    await ended.wait()
    send(process, signal.SIGINT)


async def _keep_log(stream: StreamReader, log: FfmpegLog) -> None:
    while chunk := await stream.read(_READ_BYTES):
        log.feed(chunk)


async def _follow(stream: StreamReader, watch: Watch, on_progress: OnFfmpegProgress | None) -> None:
    fields: dict[str, str] = {}
    while line := await stream.readline():
        key, _, value = line.decode(errors="replace").strip().partition("=")
        fields[key] = value
        if key == "progress":
            watch.saw(fields.get("out_time_us"), fields.get("frame"))
            if on_progress:
                time_us = fields.get("out_time_us", "N/A")  # which stands there before it knows
                await on_progress(0.0 if time_us == "N/A" else max(0.0, float(time_us) / 1e6))
            fields = {}
