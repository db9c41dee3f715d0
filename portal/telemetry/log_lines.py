"""Log lines as text in which nothing that was logged can pass for a line of its own."""

from __future__ import annotations

import logging
from types import TracebackType

INDENT = "    "

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class LineFormatter(logging.Formatter):
    """One line a record; tracebacks follow it, indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - logging's name
        return indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - logging's name
        return indented(stack_info)


def visible(text: str) -> str:
    r"""The text with line breaks, escape sequences and the like written out, as in `\x1b[2J`."""
    if text.isprintable():
        return text
    return "".join(it if it.isprintable() else _written_out(it) for it in text)


def indented(text: str) -> str:
    """Several lines, none of which begins as a record does."""
    return "\n".join(INDENT + visible(line) for line in text.split("\n"))


def _written_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
