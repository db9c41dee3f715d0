"""Shows the lines of several children in one terminal, each with its name in front.

Lines wait in a short queue for a thread of their own: a terminal that is held (Ctrl-S), or a
pipe that nobody reads, loses lines but never stops a child or the supervision.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

from portal.processes.output import LOG_FILE_LIMIT_BYTES
from portal.telemetry.logs import TEXT_FORMAT, LineFormatter

QUEUE_LINES = 2_000
FLUSH_TIMEOUT_S = 1.0
STDOUT = 1


class Terminal:
    """Writes whole lines to standard output; made by `open_terminal`."""

    def __init__(self, descriptor: int = STDOUT) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(QUEUE_LINES)
        # A daemon, because it may be held by the terminal for ever when all the rest has ended.
        self._thread = threading.Thread(target=self._write_all, name="terminal", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Show a line, soon."""
        try:
            self._lines.put_nowait(text)
        except queue.Full:  # shown too slowly: better a lost line than a portal that waits
            return

    def named(self, name: str) -> Callable[[str], None]:
        """A function that shows a line under this name."""
        return lambda line: self.write(f"{name:7} | {line}")

    def close(self) -> None:
        """Show what is queued, as long as somebody looks."""
        deadline = time.monotonic() + FLUSH_TIMEOUT_S
        try:
            self._lines.put(None, timeout=FLUSH_TIMEOUT_S)
        except queue.Full:
            return
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _write_all(self) -> None:
        while (text := self._lines.get()) is not None:
            try:
                _write(self._descriptor, f"{text}\n".encode(errors="replace"))
            except OSError:  # the terminal was closed; the portal goes on without it
                return


@contextmanager
def open_terminal(log: Path) -> Iterator[Terminal]:
    """A terminal that also shows what this process logs; the log file keeps that as well."""
    terminal, logger = Terminal(), logging.getLogger("portal")
    shown = logging.StreamHandler(terminal)
    shown.terminator = ""
    shown.setFormatter(logging.Formatter("portal  | %(message)s"))
    kept = RotatingFileHandler(log, maxBytes=LOG_FILE_LIMIT_BYTES, backupCount=1, delay=True)
    kept.setFormatter(LineFormatter(TEXT_FORMAT))
    handlers = (shown, kept)
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield terminal
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
        kept.close()
        terminal.close()


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
