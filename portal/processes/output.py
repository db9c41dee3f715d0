"""What a supervised child prints: written to a log file, or passed on line by line."""

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
    """An append-only file of bounded size; one older file is kept beside it.

    The child writes to the file itself, so it never waits for this process.
    """

    path: Path
    limit_bytes: int = LOG_FILE_LIMIT_BYTES
    _start: int = 0

    def open(self) -> int:
        """A new file descriptor for the child to write to; the caller closes it."""
        self.trim()
        output = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._start = os.fstat(output).st_size
        return output

    def tail(self) -> list[str]:
        """The last lines since the latest `open`."""
        try:
            with self.path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(min(self._start, size), size - LINE_LIMIT_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-TAIL_LINES:]

    def trim(self) -> None:
        """Keep the file within bounds; called now and then while the child runs."""
        # Copied and cut, not renamed: a running child goes on writing to the same file. On a full
        # disk it is cut without a copy.
        with suppress(OSError):
            if self.path.stat().st_size > self.limit_bytes:
                with suppress(OSError):
                    shutil.copyfile(self.path, self.path.with_suffix(".1.log"))
                os.truncate(self.path, 0)
                self._start = 0


@dataclass(slots=True)
class LineOutput:
    """Passes each line of a child to `write`, for example to show it in a terminal."""

    write: Callable[[str], None]
    _reader: int | None = None
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))

    def open(self) -> int:
        """As that of `LogFile`."""
        if self._reader is not None:  # of a start that failed
            os.close(self._reader)
        self._lines.clear()
        self._reader, writer = os.pipe()
        return writer

    def tail(self) -> list[str]:
        """As that of `LogFile`."""
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


Output = LogFile | LineOutput
