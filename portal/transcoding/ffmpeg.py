"""Run ffmpeg: the only place that does. What it is told to do is composed in `command.py`.

A run is confined (lowest priority, minimal environment, dies with the worker), has a limit on
its wall time and on how long it may go without progress, and never outlives the call.
"""

import asyncio
import re
import signal
import time
from asyncio import StreamReader
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import imageio_ffmpeg

from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.process import Limits, first_error, send, spawn, stop

_STDERR_TAIL_BYTES = 8192
_READ_BYTES = 65536
_WATCH_PERIOD_S = 0.2
_STALL_LIMIT_S = 120.0
_MIN_RUN_LIMIT_S = 900.0
# A 4K ladder on two weak cores is still faster than this many times the source's duration.
_RUN_LIMIT_PER_SOURCE_S = 60.0
_NETWORK_ERROR = re.compile(
    r"HTTP error|Server returned|ends prematurely|Connection (refused|reset|timed out)"
)
_SOURCE_ENDED_EARLY = "partial file"


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
    on_progress: Callable[[Progress], Awaitable[None]],
    timeout_s: float,
    stall_s: float = _STALL_LIMIT_S,
    brake: Brake | None = None,
    cwd: Path | None = None,
) -> None:
    """Run ffmpeg to its end. Raises TranscodeFailed when it fails, stalls or takes too long."""
    process = await spawn((ffmpeg_path(), *arguments), limits=Limits(), cwd=cwd)
    tail = bytearray()
    watch = _Watch(timeout_s=timeout_s, stall_s=stall_s)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_keep_tail(_pipe(process.stderr), tail))
            tasks.create_task(_follow(_pipe(process.stdout), watch, on_progress))
            watchdog = tasks.create_task(_guard(process, watch, brake or Brake()))
            await process.wait()
            watchdog.cancel()
    except BaseExceptionGroup as group:
        error = first_error(group)
        if isinstance(error, TranscodeFailed):
            raise TranscodeFailed(error.code, detail=_text(tail)) from None
        raise error from None
    finally:
        await stop(process)
    _check(process, _text(tail))


def _check(process: Process, tail: str) -> None:
    network_error = _NETWORK_ERROR.search(tail)
    if process.returncode == 0:
        # ffmpeg takes a connection that broke for good as the end of the file, and is content.
        if network_error and _SOURCE_ENDED_EARLY in tail:
            raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail=tail)
        return
    code = FailCode.SOURCE_UNREACHABLE if network_error else FailCode.FFMPEG_FAILED
    raise TranscodeFailed(code, detail=f"ffmpeg ended with {process.returncode}: {tail}")


def _pipe(stream: StreamReader | None) -> StreamReader:
    if stream is None:
        raise RuntimeError("the process was started without pipes")
    return stream


async def _keep_tail(stream: StreamReader, tail: bytearray) -> None:
    while chunk := await stream.read(_READ_BYTES):
        tail += chunk
        del tail[:-_STDERR_TAIL_BYTES]


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


def _text(tail: bytearray) -> str:
    return tail.decode(errors="replace").strip()
