"""Start one child process, attend it while it works, and stop it.

Every child leads a session and process group of its own, so that Ctrl-C in a terminal reaches
only the parent, and is signalled by Linux when its parent ends. Linux ties that to the *thread*
that started the child: start children from a loop that runs in a thread as long-lived as the
process. With `Limits` a child is confined, for programs that read untrusted media.
"""

import asyncio
import errno
import json
import os
import signal
import sys
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, cast

from portal.concurrency import task_group

_CONFINE = Path(__file__).with_name("confine.py")
# A stopped process can't act on SIGTERM before it is continued.
_STOP_SIGNALS = ((signal.SIGTERM, 0.0), (signal.SIGCONT, 3.0))
_KILLED_TIMEOUT_S = 3.0
_DRAIN_LIMIT_S = 5.0
_READ_BYTES = 65_536
_WATCH_PERIOD_S = 0.2
# Where TLS trust is configured is not a secret, and https sources need it.
_INHERITED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")

# What a machine short of memory, or one that shuts down, ends a child with; limits of its own use
# other signals.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a child may use; zero means unlimited. `nice` 19 is the lowest priority.

    `memory_bytes` is of address space, `cpu_s` of all threads together, `file_bytes` of any one
    file it writes.
    """

    nice: int = 19
    memory_bytes: int = 0
    cpu_s: int = 0
    file_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SystemUser:
    """An account of the operating system, for a child to run as."""

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
    """Start a program, named by its absolute path. The caller must `stop` it.

    `environ` is its whole environment; with limits it is added to a minimal one, so that no
    secret is inherited. `output` is a descriptor for stdout and stderr, which otherwise are piped.
    `death_signal` is sent to the child when this process ends. Raises OSError.
    """
    if not os.access(argv[0], os.X_OK):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    inherited = {}
    if limits:
        known = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        inherited = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", **known}
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
    """Send the child a request as JSON, on its stdin, which is closed then."""
    stdin = cast("StreamWriter", process.stdin)
    # The child may have ended before it read anything.
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(json.dumps(request).encode())
        await stdin.drain()
    stdin.close()


async def read_tail(stream: StreamReader | None, max_bytes: int) -> bytes:
    """Read a child's pipe to its end, and keep the last of it: it may write without end."""
    tail = b""
    while chunk := await cast("StreamReader", stream).read(_READ_BYTES):
        tail = (tail + chunk)[-max_bytes:]
    return tail


class Stalled(Exception):
    """The child made no progress for too long."""


class OutOfTime(Exception):
    """The child took longer than it may."""


@dataclass(slots=True)
class Watch:
    """What is known about a child: when it has to be ready, and when it last got on."""

    timeout_s: float
    stall_s: float
    _started_at: float = field(default_factory=time.monotonic)
    _moved_at: float = field(default_factory=time.monotonic)
    _position: tuple[object, ...] = ()

    def saw(self, *position: object) -> None:
        """The child says that it is here."""
        if position != self._position:
            self._moved_at = time.monotonic()
        self._position = position

    def skip(self, seconds: float) -> None:
        """Time in which the child was paused counts for neither limit."""
        self._started_at += seconds
        self._moved_at += seconds

    def check(self) -> None:
        """Raise Stalled or OutOfTime when a limit is exceeded."""
        now = time.monotonic()
        if now - self._moved_at > self.stall_s:
            raise Stalled
        if now - self._started_at > self.timeout_s:
            raise OutOfTime


async def attend(
    process: Process, watch: Watch, *readers: Coroutine[None, None, Any], paused: asyncio.Event
) -> list[Any]:
    """Run the readers of its output until the child has ended; the caller stops and judges it.

    Answers what they return. While `paused` is set the child stands still. Raises Stalled,
    OutOfTime, or a reader's error.
    """
    async with task_group() as tasks:
        reading = [tasks.create_task(reader) for reader in readers]
        watchdog = tasks.create_task(_guard(process, watch, paused))
        await process.wait()
        watchdog.cancel()
    return [task.result() for task in reading]


async def _guard(process: Process, watch: Watch, paused: asyncio.Event) -> None:
    """Enforce the limits and pause."""
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
    """Send each signal and give it its seconds; then kill the whole process group.

    Returns once the process is gone, unless the kernel holds it; harmless when it already is.
    """
    try:
        for number, grace_s in signals:
            if process.returncode is None:
                send(process, number)
                await _wait(process, grace_s)
    finally:
        kill_group(process)
    await _wait(process, _KILLED_TIMEOUT_S)
    # What is left is read, so that the pipes close now and not in a garbage collection.
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_LIMIT_S):
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    await stream.read()


def send(process: Process, signal_number: signal.Signals) -> None:
    """Signal the process, if it is still there."""
    with suppress(ProcessLookupError):
        process.send_signal(signal_number)


def kill_group(process: Process) -> None:
    """Kill the child with what it started and left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def was_ended_from_outside(returncode: int) -> bool:
    """Whether a child ended for no fault of what it read. One that uses up memory ends so, too."""
    return -returncode in _FROM_OUTSIDE


def describe_exit(returncode: int) -> str:
    """`exit status 3` or `killed by SIGKILL`."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"


async def _wait(process: Process, timeout_s: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), timeout_s)
