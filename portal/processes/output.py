"""Starting and ending one child process, and keeping what it says.

Every child leads a session of its own, so that Ctrl-C in a terminal reaches only the parent,
and is told by the kernel when the parent is gone (Linux only; see `leftovers` for the rest).
The signal belongs to the thread that started the child: start children from a thread that
lives as long as they should, which is the main thread in practice.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import click

PR_SET_PDEATHSIG = 1
TAIL_LINES = 12
LOG_FILE_LIMIT_BYTES = 5_000_000
LINE_LIMIT_BYTES = 16_384
KILLED_TIMEOUT_S = 1.0

# Resolved before any fork: between fork and exec nothing may be imported or looked up.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class UpError(click.ClickException):
    """`portal up` cannot start or go on; the message is all there is to say. Exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"portal up: {self.message}", file=file, err=file is None)


@dataclass(frozen=True, slots=True)
class SystemUser:
    """The operating system's account that a child runs as."""

    name: str
    uid: int
    gid: int


class Output(Protocol):
    """Where a child's standard output and error go."""

    def open(self) -> int:
        """A new file descriptor for the child to write to; the caller closes it."""

    def tail(self) -> list[str]:
        """The last lines since the latest `open`."""

    def trim(self) -> None:
        """Keep what is stored within bounds; called now and then while the child runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """How to start a child, see that it works, and end it.

    `ending` is a list of signals, each with the seconds it is given; SIGKILL follows by itself.
    """

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    output: Output
    ready: Callable[[], Awaitable[bool]] | None = None
    ready_timeout_s: float = 30.0
    ending: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5.0),)
    orphan_signal: signal.Signals = signal.SIGTERM
    hurry_signal: signal.Signals = signal.SIGKILL
    user: SystemUser | None = None
    cwd: Path | None = None


async def spawn(spec: ChildSpec) -> asyncio.subprocess.Process:
    """Start the child; raises `UpError` when the system refuses."""
    output = spec.output.open()
    account: dict[str, Any] = {}
    if spec.user:
        account = {"user": spec.user.uid, "group": spec.user.gid, "extra_groups": []}
    try:
        return await asyncio.create_subprocess_exec(
            *spec.argv,
            env=dict(spec.environ),
            cwd=spec.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_end_with_parent(spec.orphan_signal),
            **account,
        )
    except OSError as exc:
        raise UpError(f"{spec.name} cannot be started: {exc}") from exc
    finally:
        os.close(output)


def _end_with_parent(orphan_signal: signal.Signals) -> Callable[[], None] | None:
    """Code for the child, after fork and change of user (which would clear the request)."""
    if _prctl is None:
        return None
    prctl, number, parent = _prctl, int(orphan_signal), os.getpid()

    def ask_the_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died before the request was made
            os._exit(1)

    return ask_the_kernel


async def end(process: asyncio.subprocess.Process, spec: ChildSpec) -> None:
    """Ask, wait, ask harder, kill. Nothing of the child's process group is left."""
    try:
        for number, grace_s in spec.ending:
            if process.returncode is not None:
                break
            send(process, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await process.wait()
    finally:
        kill_group(process)
    with suppress(TimeoutError):  # one stuck in the kernel cannot be helped
        async with asyncio.timeout(KILLED_TIMEOUT_S):
            await process.wait()


def send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)


def kill_group(process: asyncio.subprocess.Process) -> None:
    """Kill the child and what it started and left behind, such as a worker's ffmpeg."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def describe_exit(returncode: int) -> str:
    """`exit status 3` or `killed by SIGKILL`."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"


@dataclass(slots=True)
class LogFile:
    """An append-only file of bounded size; one older file is kept beside it.

    The child writes to the file itself, so it never waits for this process.
    """

    path: Path
    limit_bytes: int = LOG_FILE_LIMIT_BYTES
    _start: int = 0

    def open(self) -> int:
        self.trim()
        output = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._start = os.fstat(output).st_size
        return output

    def tail(self) -> list[str]:
        try:
            with self.path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(min(self._start, size), size - LINE_LIMIT_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-TAIL_LINES:]

    def trim(self) -> None:
        # Copied and cut, not renamed: a running child goes on writing to the same file.
        with suppress(FileNotFoundError):
            if self.path.stat().st_size > self.limit_bytes:
                shutil.copyfile(self.path, self.path.with_suffix(".1.log"))
                os.truncate(self.path, 0)
                self._start = 0


@dataclass(slots=True)
class LineOutput:
    """Hands each line of a child to `write`, for example to show it in a terminal."""

    write: Callable[[str], None]
    _reader: int | None = None
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))

    def open(self) -> int:
        self._lines.clear()
        self._reader, writer = os.pipe()
        return writer

    def tail(self) -> list[str]:
        return list(self._lines)

    def trim(self) -> None:
        """Nothing is stored."""

    async def pump(self) -> None:
        """Read until the child and all that share its output have closed it."""
        if self._reader is None:
            return
        descriptor, self._reader = self._reader, None
        pipe = os.fdopen(descriptor, "rb", buffering=0)
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), pipe
        )
        try:
            await self._read(stream)
        finally:
            transport.close()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        rest = b""
        while data := await stream.read(LINE_LIMIT_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) >= LINE_LIMIT_BYTES:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._say(line)
        if rest:
            self._say(rest)

    def _say(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        self._lines.append(text)
        self.write(text)
