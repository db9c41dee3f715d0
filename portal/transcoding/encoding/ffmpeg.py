"""Run ffmpeg: the only place that does. What it is told to do is composed in `command.py`.

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

from portal.processes.child import Limits, first_error, send, spawn, stop
from portal.transcoding.encoding.ffmpeg_log import LOG_LEVEL, Log, RunReport
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
class Progress:
    """One report of ffmpeg's. `speed` is in source seconds per second, None when unknown."""

    out_time_s: float
    frame: int
    speed: float | None
    finished: bool


@dataclass(slots=True)
class Brake:
    """Holds ffmpeg up while its output can't be taken away fast enough."""

    held: bool = False


@dataclass(slots=True)
class _Watch:
    """What the watchdog knows about a run."""

    timeout_s: float
    stall_s: float
    started_at: float = field(default_factory=time.monotonic)
    moved_at: float = field(default_factory=time.monotonic)
    held_s: float = 0.0
    position: tuple[float, int] | None = None

    def saw(self, progress: Progress) -> None:
        position = (progress.out_time_s, progress.frame)
        if position != self.position:
            self.moved_at = time.monotonic()
        self.position = position

    def skip(self, seconds: float) -> None:
        """Time in which ffmpeg was held up counts for neither limit."""
        self.held_s += seconds
        self.moved_at += seconds

    def exceeded(self) -> FailCode | None:
        now = time.monotonic()
        if now - self.moved_at > self.stall_s:
            return FailCode.STALLED
        return FailCode.TIMED_OUT if now - self.started_at - self.held_s > self.timeout_s else None


async def ignore_progress(progress: Progress) -> None:
    """For runs that are too short to report on."""


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
    on_progress: Callable[[Progress], Awaitable[None]],
    timeout_s: float,
    stall_s: float = _STALL_LIMIT_S,
    brake: Brake | None = None,
    cwd: Path | None = None,
    limits: Limits | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunReport:
    """Run ffmpeg to its end. Raises TranscodeFailed when it fails, stalls or takes too long.

    The log level is set here, for the figures at the end. `environ` is what a veiled source needs.
    """
    process = await spawn(
        (ffmpeg_path(), *LOG_LEVEL, *arguments),
        limits=limits or default_limits(timeout_s),
        cwd=cwd,
        environ=environ,
    )
    log = Log()
    watch = _Watch(timeout_s=timeout_s, stall_s=stall_s)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_keep_log(_pipe(process.stderr), log))
            tasks.create_task(_follow(_pipe(process.stdout), watch, on_progress))
            watchdog = tasks.create_task(_guard(process, watch, brake or Brake()))
            await process.wait()
            watchdog.cancel()
    except BaseExceptionGroup as group:
        error = first_error(group)
        if isinstance(error, TranscodeFailed):
            raise TranscodeFailed(error.code, detail=log.text()) from None
        raise error from None
    finally:
        await stop(process)
    _check(process.returncode, log)
    return log.report()


def _check(returncode: int | None, log: Log) -> None:
    if (code := log.failure(returncode)) is not None:
        raise TranscodeFailed(code, detail=f"ffmpeg ended with {returncode}: {log.text()}")


def _pipe(stream: StreamReader | None) -> StreamReader:
    if stream is None:
        raise RuntimeError("the process was started without pipes")
    return stream


async def _keep_log(stream: StreamReader, log: Log) -> None:
    while chunk := await stream.read(_READ_BYTES):
        log.feed(chunk)


async def _follow(
    stream: StreamReader, watch: _Watch, on_progress: Callable[[Progress], Awaitable[None]]
) -> None:
    fields: dict[str, str] = {}
    while line := await stream.readline():
        key, _, value = line.decode(errors="replace").strip().partition("=")
        fields[key] = value
        if key == "progress":
            progress = parse_progress(fields)
            watch.saw(progress)
            await on_progress(progress)
            fields = {}


def parse_progress(fields: dict[str, str]) -> Progress:
    """Turn one block of `-progress` lines into values; ffmpeg writes N/A for what it lacks."""
    speed = _number(fields.get("speed", "").removesuffix("x"))
    return Progress(
        out_time_s=max(0.0, (_number(fields.get("out_time_us", "")) or 0.0) / 1e6),
        frame=int(_number(fields.get("frame", "")) or 0),
        speed=speed or None,
        finished=fields.get("progress") == "end",
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


async def _guard(process: Process, watch: _Watch, brake: Brake) -> None:
    """Enforce the limits and obey the brake."""
    held = False
    checked_at = time.monotonic()
    while True:
        await asyncio.sleep(_WATCH_PERIOD_S)
        now = time.monotonic()
        if held:
            watch.skip(now - checked_at)
        checked_at = now
        if brake.held != held:
            held = brake.held
            send(process, signal.SIGSTOP if held else signal.SIGCONT)
        if (code := watch.exceeded()) is not None:
            raise TranscodeFailed(code)
