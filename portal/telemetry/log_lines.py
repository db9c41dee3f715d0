"""Log lines as text in which nothing that was logged can pass for a line of its own."""

import logging
from typing import Any


class LineFormatter(logging.Formatter):
    """One line a record; tracebacks follow it, indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - logging's name
        return indented(stack_info)


def visible(text: str) -> str:
    r"""The text with line breaks, escape sequences and the like written out, as in `\x1b[2J`.

    An operator sees what there was; pages leave such characters out: see `text.shown`.
    """
    if text.isprintable():
        return text
    return "".join(
        it if it.isprintable() else it.encode("unicode_escape").decode("ascii") for it in text
    )


def indented(text: str) -> str:
    """Several lines, none of which begins as a record does."""
    return "\n".join(f"    {visible(line)}" for line in text.split("\n"))
