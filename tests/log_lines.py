"""What this process logs, for tests of what it must not."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pythonjsonlogger.json import JsonFormatter


@contextmanager
def collected_lines() -> Iterator[list[str]]:
    """All that is logged meanwhile at any level, with all fields."""
    root, found = logging.getLogger(), list[str]()
    formatter = JsonFormatter(json_ensure_ascii=False)

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(formatter.format(record))

    collector, level = Collector(), root.level
    root.addHandler(collector)
    root.setLevel(logging.DEBUG)
    try:
        yield found
    finally:
        root.removeHandler(collector)
        root.setLevel(level)
