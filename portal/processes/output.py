"""Output of a supervised child, passed on line by line or written to a log file."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

TAIL_LINES = 12
LOG_FILE_LIMIT_BYTES = 5_000_000
LINE_LIMIT_BYTES = 16_384


@dataclass(slots=True)
class LineOutput:
    """Output of which each line is passed to `write`.

    `is_shown` tells that people see the lines as they come, so that errors need not repeat them.
    """

    write: Callable[[str], None]
    is_shown: bool = True
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


def log_output(path: Path, *, limit_bytes: int = LOG_FILE_LIMIT_BYTES) -> LineOutput:
    """Return an output that is appended to a log file of limited size.

    One older file is kept next to it. Lines are lost while the disk is full.
    """

    def append(line: str) -> None:
        with suppress(OSError):
            if path.exists() and path.stat().st_size > limit_bytes:
                path.replace(path.with_suffix(".1.log"))
            with path.open("a", encoding="utf-8") as log:
                log.write(f"{line}\n")

    return LineOutput(append, is_shown=False)
