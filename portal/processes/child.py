"""Start a child process, supervise it while it works, and stop it.

Every child leads a new session and process group, so that Ctrl-C in a terminal reaches only the
parent. Linux signals a child when the *thread* that started it ends: start children from a loop
whose thread lives as long as the process. `Limits` confine a child that reads untrusted media.
"""

import asyncio
import errno
import json
import mmap
import os
import re
import signal
import sys
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, cast

from portal.concurrency import task_group

_CONFINE = Path(__file__).with_name("confine.py")
# A stopped process can't handle SIGTERM before it is continued.
_STOP_SIGNALS = ((signal.SIGTERM, 0.0), (signal.SIGCONT, 3.0))
_KILLED_TIMEOUT_S = 3.0
_DRAIN_LIMIT_S = 5.0
_READ_BYTES = 65_536
_WATCH_PERIOD_S = 0.2
# https sources need the TLS trust store; its path is no secret.
_INHERITED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")

# Address space of an encode at 360p on 2 cores.
_SMALL_CHILD_BYTES = 1024**3
# Complaints of ffmpeg, Python and the dynamic linker about memory.
OUT_OF_MEMORY = re.compile(
    r"Cannot allocate memory|malloc of size \d+ failed|pthread_create.*temporarily unavailable"
    r"|MemoryError|failed to map segment"
)
# Signals of a machine that runs out of memory or shuts down; `Limits` cause other signals.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Resource limits of a child; zero means unlimited.

    `nice` 19 is the lowest priority. `memory_bytes` limits the address space, `cpu_s` the time of
    all threads together, `file_bytes` each file that is written.
    """

    nice: int = 19
    memory_bytes: int = 0
    cpu_s: int = 0
    file_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SystemUser:
    """Account of the operating system that runs a child."""

    name: str
    uid: int
    gid: int


async def spawn(
    argv: Sequence[str],
    *,
    limits: Limits | None = None,
    stdin: bool = False,
    output: int | None = None,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    user: SystemUser | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> Process:
    """Start a program by its absolute path. The caller must `stop` it.

    `environ` is the whole environment, or with limits an addition to a minimal one, so that no
    secret is inherited. `output` is a descriptor for stdout and stderr, which are piped by default.
    The child receives `death_signal` when this process ends. Raises `OSError`.
    """
    if not os.access(argv[0], os.X_OK):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    inherited = {}
    if limits:
        paths = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        inherited = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", **paths}
    account = f"{user.uid},{user.gid}" if user else "-"
    confinement = ",".join(map(str, astuple(limits))) if limits else "-"
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_CONFINE)),
        *(str(os.getpid()), str(int(death_signal)), account, confinement, *argv),
        stdin=PIPE if stdin else DEVNULL,
        stdout=PIPE if output is None else output,
        stderr=PIPE if output is None else output,
        env={**inherited, **(environ or {})},
        cwd=cwd,
        start_new_session=True,
    )


async def ask(process: Process, request: Mapping[str, object]) -> None:
    """Send a request as JSON to the child's stdin, and close it."""
    stdin = cast("StreamWriter", process.stdin)
    # The child may have ended without reading.
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(json.dumps(request).encode())
        await stdin.drain()
    stdin.close()


async def read_tail(stream: StreamReader | None, max_bytes: int) -> bytes:
    """Read a child's pipe to its end; return the last `max_bytes` of the output."""
    tail = b""
    while chunk := await cast("StreamReader", stream).read(_READ_BYTES):
        tail = (tail + chunk)[-max_bytes:]
    return tail


class Stalled(Exception):
    """The child has made no progress for `Watch.stall_s`."""


class OutOfTime(Exception):
    """The child has run longer than `Watch.timeout_s`."""


@dataclass(slots=True)
class Watch:
    """Time limits of a child, for the whole run and since its last progress."""

    timeout_s: float
    stall_s: float
    _started_at: float = field(default_factory=time.monotonic)
    _moved_at: float = field(default_factory=time.monotonic)
    _position: tuple[object, ...] = ()

    def saw(self, *position: object) -> None:
        """Record a position of the child; a new one counts as progress."""
        if position != self._position:
            self._moved_at = time.monotonic()
        self._position = position

    def skip(self, seconds: float) -> None:
        """Extend both limits by the time for which the child was paused."""
        self._started_at += seconds
        self._moved_at += seconds

    def check(self) -> None:
        """Raise `Stalled` or `OutOfTime` if a limit is exceeded."""
        now = time.monotonic()
        if now - self._moved_at > self.stall_s:
            raise Stalled
        if now - self._started_at > self.timeout_s:
            raise OutOfTime


@asynccontextmanager
async def guarded(
    process: Process, watch: Watch, *, paused: asyncio.Event
) -> AsyncIterator[asyncio.TaskGroup]:
    """Enforce a child's limits until it ends; the block reads its output, also by tasks.

    The child is suspended while `paused` is set. The caller stops it and checks its return code.
    Raises `Stalled`, `OutOfTime`, or an error of the block or of a task.
    """
    async with task_group() as tasks:
        watchdog = tasks.create_task(_guard(process, watch, paused))
        yield tasks
        await process.wait()
        watchdog.cancel()


async def attend(
    process: Process, watch: Watch, *readers: Coroutine[None, None, Any], paused: asyncio.Event
) -> list[Any]:
    """Run readers of a child's output until it ends, as `guarded`; return their results."""
    async with guarded(process, watch, paused=paused) as tasks:
        reading = [tasks.create_task(reader) for reader in readers]
    return [task.result() for task in reading]


async def _guard(process: Process, watch: Watch, paused: asyncio.Event) -> None:
    """Enforce the limits, and suspend the child while `paused` is set."""
    is_paused = False
    checked_at = time.monotonic()
    while True:
        await asyncio.sleep(_WATCH_PERIOD_S)
        now = time.monotonic()
        if is_paused:
            watch.skip(now - checked_at)
        checked_at = now
        if paused.is_set() != is_paused:
            is_paused = paused.is_set()
            send(process, signal.SIGSTOP if is_paused else signal.SIGCONT)
        watch.check()


async def stop(
    process: Process, signals: Sequence[tuple[signal.Signals, float]] = _STOP_SIGNALS
) -> None:
    """Send each signal and wait for its seconds, then kill the whole process group.

    Returns when the process has ended, or after a time limit if the kernel blocks it.
    """
    try:
        for number, grace_s in signals:
            if process.returncode is None:
                send(process, number)
                await _wait(process, grace_s)
    finally:
        kill_group(process)
    await _wait(process, _KILLED_TIMEOUT_S)
    # Reading to the end closes the pipes now instead of in a garbage collection.
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_LIMIT_S):
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    await stream.read()


def send(process: Process, signal_number: signal.Signals) -> None:
    """Send a signal to a process, unless it has ended."""
    with suppress(ProcessLookupError):
        process.send_signal(signal_number)


def kill_group(process: Process) -> None:
    """Kill a child and all processes that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def lacks_memory() -> bool:
    """Return whether this process can't reserve the memory that a small child needs.

    That is so with a low limit on the address space, or if others have taken the memory of the
    machine, and then the content of a file says nothing about the failure of a child.
    """
    try:
        mmap.mmap(-1, _SMALL_CHILD_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return True
    return False


def was_ended_from_outside(returncode: int) -> bool:
    """Return whether a signal from outside ended a child, also for lack of memory."""
    return -returncode in _FROM_OUTSIDE


def describe_exit(returncode: int) -> str:
    """Describe a return code, as in `exit status 3` or `killed by SIGKILL`."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"


async def _wait(process: Process, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await process.wait()
