"""Run ffmpeg: the only place that starts it. `command` composes its arguments.

A run is confined (lowest priority, minimal environment, limited memory, processor time and file
size, dies with the worker), has a limit on its wall time and on how long it may go without
progress, and never outlives the call.
"""

import asyncio
import math
import os
from asyncio import StreamReader
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import imageio_ffmpeg

from portal.processes.child import Limits, OutOfTime, Stalled, Watch, attend, spawn, stop
from portal.transcoding.encoding.ffmpeg_log import LOG_LEVEL, FfmpegLog, RunReport
from portal.transcoding.errors import FailCode, TranscodeFailed

_READ_BYTES = 65536
_STALL_LIMIT_S = 120.0
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


def run_limit_s(duration_s: float) -> float:
    """The wall time a source of this duration may take."""
    return max(_MIN_RUN_LIMIT_S, duration_s * _RUN_LIMIT_PER_SOURCE_S)


def stall_limit_s(decoded_first_s: float) -> float:
    """How long a run may go without progress that first decodes so much of the source for nothing.

    Any machine that could show the source decodes it as fast.
    """
    return _STALL_LIMIT_S + decoded_first_s


@cache
def ffmpeg_path() -> str:
    """The ffmpeg that came with the portal."""
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def default_limits(timeout_s: float) -> Limits:
    """What a run of at most this wall time may use."""
    cores = os.cpu_count() or 1
    return Limits(
        memory_bytes=_BASE_MEMORY_BYTES + cores * _MEMORY_PER_CORE_BYTES,
        cpu_s=math.ceil(timeout_s * cores),
        file_bytes=_MAX_FILE_BYTES,
    )


async def run(
    arguments: Sequence[str],
    *,
    timeout_s: float,
    on_progress: OnFfmpegProgress | None = None,
    stall_s: float = _STALL_LIMIT_S,
    paused: asyncio.Event | None = None,
    cwd: Path | None = None,
    limits: Limits | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunReport:
    """Run ffmpeg to its end. Raises TranscodeFailed when it fails, stalls or takes too long.

    The log level is set here, for the figures at the end. While `paused` is set ffmpeg stands
    still: its output can't be taken away fast enough. `environ` is what a proxied source needs.
    """
    process = await spawn(
        (ffmpeg_path(), *LOG_LEVEL, *arguments),
        limits=limits or default_limits(timeout_s),
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
        # Nothing that one told to end would still write is of use.
        await stop(process, signals=())
    if (code := log.failure(process.returncode)) is not None:
        raise TranscodeFailed(code, detail=f"ffmpeg ended with {process.returncode}: {log.text()}")
    return log.report


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
                await on_progress(written_s(fields))
            fields = {}


def written_s(fields: dict[str, str]) -> float:
    """How far one block of `-progress` lines is; ffmpeg writes N/A before it knows."""
    try:
        return max(0.0, float(fields["out_time_us"]) / 1e6)
    except (KeyError, ValueError):
        return 0.0
