"""Run ffmpeg: the only place that starts it. `command` composes its arguments.

A run is confined (lowest priority, minimal environment, limited memory, processor time and file
size, dies with the worker), has a limit on its wall time and on how long it may go without
progress, and never outlives the call.
"""

import asyncio
import math
import os
import signal
import time
from asyncio import StreamReader
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import imageio_ffmpeg

from portal.concurrency.task_group import task_group
from portal.processes.child import Limits, send, spawn, stop
from portal.transcoding.encoding.ffmpeg_log import LOG_LEVEL, FfmpegLog, RunReport
from portal.transcoding.errors import FailCode, TranscodeFailed

_READ_BYTES = 65536
_WATCH_PERIOD_S = 0.2
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


@dataclass(frozen=True, kw_only=True, slots=True)
class FfmpegProgress:
    """How far ffmpeg has written."""

    out_time_s: float
    frame: int


OnFfmpegProgress = Callable[[FfmpegProgress], Awaitable[None]]


@dataclass(slots=True)
class Backpressure:
    """Pauses ffmpeg while its output can't be taken away fast enough."""

    is_paused: bool = False


@dataclass(slots=True)
class _Watch:
    """What the watchdog knows about a run."""

    timeout_s: float
    stall_s: float
    started_at: float = field(default_factory=time.monotonic)
    moved_at: float = field(default_factory=time.monotonic)
    paused_s: float = 0.0
    position: tuple[float, int] | None = None

    def saw(self, progress: FfmpegProgress) -> None:
        position = (progress.out_time_s, progress.frame)
        if position != self.position:
            self.moved_at = time.monotonic()
        self.position = position

    def skip(self, seconds: float) -> None:
        """Time in which ffmpeg was paused counts for neither limit."""
        self.paused_s += seconds
        self.moved_at += seconds

    def exceeded(self) -> FailCode | None:
        now = time.monotonic()
        if now - self.moved_at > self.stall_s:
            return FailCode.STALLED
        return (
            FailCode.TIMED_OUT if now - self.started_at - self.paused_s > self.timeout_s else None
        )


async def _ignore(progress: FfmpegProgress) -> None:
    """Nobody watches a short run."""


def run_limit_s(duration_s: float) -> float:
    """The wall time a source of this duration may take."""
    return max(_MIN_RUN_LIMIT_S, duration_s * _RUN_LIMIT_PER_SOURCE_S)


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
    on_progress: OnFfmpegProgress = _ignore,
    stall_s: float = _STALL_LIMIT_S,
    backpressure: Backpressure | None = None,
    cwd: Path | None = None,
    limits: Limits | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunReport:
    """Run ffmpeg to its end. Raises TranscodeFailed when it fails, stalls or takes too long.

    The log level is set here, for the figures at the end. `environ` is what a proxied source needs.
    """
    process = await spawn(
        (ffmpeg_path(), *LOG_LEVEL, *arguments),
        limits=limits or default_limits(timeout_s),
        cwd=cwd,
        environ=environ,
    )
    log = FfmpegLog()
    watch = _Watch(timeout_s=timeout_s, stall_s=stall_s)
    try:
        async with task_group() as tasks:
            tasks.create_task(_keep_log(_pipe(process.stderr), log))
            tasks.create_task(_follow(_pipe(process.stdout), watch, on_progress))
            watchdog = tasks.create_task(_guard(process, watch, backpressure or Backpressure()))
            await process.wait()
            watchdog.cancel()
    except TranscodeFailed as exc:
        raise TranscodeFailed(exc.code, detail=log.text()) from None
    finally:
        await stop(process)
    if (code := log.failure(process.returncode)) is not None:
        raise TranscodeFailed(code, detail=f"ffmpeg ended with {process.returncode}: {log.text()}")
    return log.report()


def _pipe(stream: StreamReader | None) -> StreamReader:
    if stream is None:
        raise RuntimeError("the process was started without pipes")
    return stream


async def _keep_log(stream: StreamReader, log: FfmpegLog) -> None:
    while chunk := await stream.read(_READ_BYTES):
        log.feed(chunk)


async def _follow(stream: StreamReader, watch: _Watch, on_progress: OnFfmpegProgress) -> None:
    fields: dict[str, str] = {}
    while line := await stream.readline():
        key, _, value = line.decode(errors="replace").strip().partition("=")
        fields[key] = value
        if key == "progress":
            progress = parse_progress(fields)
            watch.saw(progress)
            await on_progress(progress)
            fields = {}


def parse_progress(fields: dict[str, str]) -> FfmpegProgress:
    """Turn one block of `-progress` lines into values; ffmpeg writes N/A for what it lacks."""
    return FfmpegProgress(
        out_time_s=max(0.0, _number(fields.get("out_time_us", "")) / 1e6),
        frame=int(_number(fields.get("frame", ""))),
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


async def _guard(process: Process, watch: _Watch, backpressure: Backpressure) -> None:
    """Enforce the limits and apply backpressure."""
    is_paused = False
    checked_at = time.monotonic()
    while True:
        await asyncio.sleep(_WATCH_PERIOD_S)
        now = time.monotonic()
        if is_paused:
            watch.skip(now - checked_at)
        checked_at = now
        if backpressure.is_paused != is_paused:
            is_paused = backpressure.is_paused
            send(process, signal.SIGSTOP if is_paused else signal.SIGCONT)
        if (code := watch.exceeded()) is not None:
            raise TranscodeFailed(code)
