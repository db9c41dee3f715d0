"""Output of a supervised child, written to a log file or passed on line by line."""

import asyncio
import os
import shutil
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

TAIL_LINES = 12
LOG_FILE_LIMIT_BYTES = 5_000_000
LINE_LIMIT_BYTES = 16_384


@dataclass(slots=True)
class LogFile:
    """Log file of limited size, with one older file next to it.

    The child writes to the file directly, so it never waits for this process.
    """

    path: Path
    limit_bytes: int = LOG_FILE_LIMIT_BYTES
    _start: int = 0

    def open(self) -> int:
        """Return a new file descriptor for the child's output, which the caller closes."""
        self.trim()
        output = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._start = os.fstat(output).st_size
        return output

    def tail(self) -> list[str]:
        """Return the last lines since the latest `open`."""
        try:
            with self.path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(min(self._start, size), size - LINE_LIMIT_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-TAIL_LINES:]

    def trim(self) -> None:
        """Limit the size of the file; called regularly while the child runs."""
        # Copied and truncated, not renamed, because a running child keeps the file open. On a full
        # disk it is truncated without a copy.
        with suppress(OSError):
            if self.path.stat().st_size > self.limit_bytes:
                with suppress(OSError):
                    shutil.copyfile(self.path, self.path.with_suffix(".1.log"))
                os.truncate(self.path, 0)
                self._start = 0


@dataclass(slots=True)
class LineOutput:
    """Output of which each line is passed to `write`, for example to show it in a terminal."""

    write: Callable[[str], None]
    _reader: int | None = None
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))

    def open(self) -> int:
        """Return a new file descriptor for the child's output, which the caller closes."""
        if self._reader is not None:  # left by a failed start
            os.close(self._reader)
        self._lines.clear()
        self._reader, writer = os.pipe()
        return writer

    def tail(self) -> list[str]:
        """Return the last lines since the latest `open`."""
        return list(self._lines)

    def trim(self) -> None:
        """Do nothing: no output is stored."""

    async def pump(self) -> None:
        """Read until the child and all processes that share its output have closed it."""
        if self._reader is None:
            return
        pipe = os.fdopen(self._reader, "rb", buffering=0)
        self._reader = None
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), pipe
        )
        try:
            incomplete = b""
            while data := await stream.read(LINE_LIMIT_BYTES):
                *lines, incomplete = (incomplete + data).split(b"\n")
                if len(incomplete) >= LINE_LIMIT_BYTES:
                    lines.append(incomplete)
                    incomplete = b""
                for line in lines:
                    self._write_line(line)
            if incomplete:
                self._write_line(incomplete)
        finally:
            transport.close()

    def _write_line(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        self._lines.append(text)
        self.write(text)


Output = LogFile | LineOutput
