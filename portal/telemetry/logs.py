"""Structured logs: one JSON object a line, with the ids of the current request or job.

As text, nothing that was logged can pass for a line of its own. Never logged: signed addresses,
tokens, passwords, bodies.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from portal.config import Config

_context: ContextVar[dict[str, Any]] = ContextVar("log_context", default={})  # noqa: B039  # never mutated

TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
JSON_FIELDS = ("timestamp", "levelname", "name", "message")
# Their own info lines say what ours say already, or carry no ids.
QUIET = ("procrastinate", "hypercorn.error", "aiobotocore", "botocore", "tortoise", "psycopg.pool")


@contextmanager
def log_context(**fields: Any) -> Iterator[None]:
    """Add fields to every record logged inside, in this task and those it starts."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def bind(**fields: Any) -> None:
    """As `log_context`, until the current task ends; for a request, which is a task."""
    _context.set({**_context.get(), **fields})


def current_fields() -> Mapping[str, Any]:
    """The fields that records logged now would carry."""
    return _context.get()


def configure_logging(config: Config) -> None:
    """Send all logs to standard output in the configured format."""
    handler = logging.StreamHandler(sys.stdout)
    handler.addFilter(_add_context)
    if config.log_format == "json":
        handler.setFormatter(JsonFormatter(JSON_FIELDS, timestamp=True))
    else:
        handler.setFormatter(LineFormatter(TEXT_FORMAT))
    logging.basicConfig(level=config.log_level, handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


class LineFormatter(logging.Formatter):
    """One line a record; tracebacks follow it, indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"    {visible(line)}" for line in lines)


def visible(text: str) -> str:
    r"""The text with line breaks, escape sequences and the like written out, as in `\x1b[2J`.

    An operator sees what there was; pages leave such characters out: see `text.shown`.
    """
    if text.isprintable():
        return text
    return "".join(
        it if it.isprintable() else it.encode("unicode_escape").decode("ascii") for it in text
    )


def _add_context(record: logging.LogRecord) -> bool:
    for name, value in _context.get().items():
        if not hasattr(record, name):
            setattr(record, name, value)
    return True
