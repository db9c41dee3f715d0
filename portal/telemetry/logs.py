"""Structured logs: one JSON object per line, with the ids of the current request or job.

In the text format a logged value can't forge another line. Signed addresses, tokens, passwords and
bodies are never logged.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from portal.config import Config, misspelt_variables

_context: ContextVar[dict[str, Any]] = ContextVar("log_context", default={})  # noqa: B039  # never mutated

TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
JSON_FIELDS = ("timestamp", "levelname", "name", "message")
# Loggers whose info lines repeat the portal's own, or have no ids.
QUIET = ("procrastinate", "hypercorn.error", "aiobotocore", "botocore", "tortoise", "psycopg.pool")


@contextmanager
def log_context(**fields: Any) -> Iterator[None]:
    """Add fields to all records logged in the block, also by tasks that it starts."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def bind(**fields: Any) -> None:
    """Add fields to all records until the current task ends, which for a request is the request."""
    _context.set({**_context.get(), **fields})


def current_fields() -> Mapping[str, Any]:
    """Return the fields of records logged at this point."""
    return _context.get()


def configure_logging(config: Config) -> None:
    """Send all logs to standard output in the configured format; warn of misspelt settings."""
    handler = logging.StreamHandler(sys.stdout)
    handler.addFilter(_add_context)
    if config.log_format == "json":
        handler.setFormatter(JsonFormatter(JSON_FIELDS, timestamp=True))
    else:
        handler.setFormatter(LineFormatter(TEXT_FORMAT))
    logging.basicConfig(level=config.log_level, handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    for message in misspelt_variables():
        logging.getLogger(__name__).warning(message, extra={"action": "misspelt_setting"})


class LineFormatter(logging.Formatter):
    """Formatter that writes one line per record, followed by its indented traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the record's line with control characters escaped."""
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Return the traceback, indented, with control characters escaped."""
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"    {visible(line)}" for line in lines)


def visible(text: str) -> str:
    r"""Return the text with control characters and line breaks escaped, as in `\x1b[2J`.

    Pages leave such characters out instead: see `text.shown`.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def _add_context(record: logging.LogRecord) -> bool:
    for name, value in _context.get().items():
        if not hasattr(record, name):
            setattr(record, name, value)
    return True
