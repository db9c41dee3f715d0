"""Tries of background jobs that have a row: posters, captions and transcriptions.

The row has the columns `tries` and `error_code`. A job that ends its worker is found by recovery
and runs again, so each run counts a try when it begins, and none begins after the last one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from tortoise.expressions import F
from tortoise.models import Model
from tortoise.queryset import QuerySet

from portal.database.outages import is_temporary
from portal.transcoding.errors import DiskFull

Row = TypeVar("Row", bound=Model)


class TriesExhausted(Exception):
    """Every try of a job ended with its worker."""

    code = "worker_lost"


def is_interruption(exc: BaseException) -> bool:
    """Return whether an error would have ended the work on any other video, too."""
    return isinstance(exc, asyncio.CancelledError | DiskFull) or is_temporary(exc)


@asynccontextmanager
async def counted_try(
    rows: QuerySet[Row], *, max_tries: int, **begun: object
) -> AsyncIterator[Row | None]:
    """Count a try of the job whose row is the only one of `rows`, and set the columns `begun`.

    Yields the row; None if it is gone, or has an error. A try that is interrupted
    (`is_interruption`) is not counted. Raises `TriesExhausted` if no try is left.
    """
    pending = rows.filter(error_code=None)
    await pending.update(tries=F("tries") + 1, **begun)
    row = await pending.first()
    tries: int = getattr(row, "tries", 0)
    if tries > max_tries:
        raise TriesExhausted
    try:
        yield row
    except BaseException as exc:
        if row is not None and is_interruption(exc):
            # Another run, and progress, set another number.
            await rows.filter(tries=tries).update(tries=tries - 1)
        raise
