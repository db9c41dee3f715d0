"""Tries of background jobs that have a row.

The row has the columns `tries` and `error_code`. A job that ends its worker is found by recovery
and runs again, so each run counts a try when it begins, and none begins after the last one.
"""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from tortoise.expressions import F
from tortoise.models import Model
from tortoise.queryset import QuerySet

from portal.database.outages import is_temporary
from portal.processes.child import lacks_memory
from portal.queue.jobs import Job
from portal.transcoding.errors import DiskFull, FailCode, TranscodeFailed

Row = TypeVar("Row", bound=Model)


class TriesExhausted(Exception):
    """Every try of a job ended with its worker."""

    code = "worker_lost"


def is_interruption(exc: BaseException) -> bool:
    """Return whether an error would have ended the work on any other video, too."""
    is_of_machine = isinstance(exc, asyncio.CancelledError | DiskFull)
    return is_of_machine or is_temporary(exc) or is_out_of_memory(exc)


def is_out_of_memory(exc: BaseException) -> bool:
    """Return whether work failed because this machine lacks memory, and not for its file."""
    is_named = isinstance(exc, MemoryError)
    if isinstance(exc, TranscodeFailed):
        is_named = exc.code is FailCode.OUT_OF_MEMORY
    elif isinstance(exc, OSError):
        is_named = exc.errno in (errno.ENOMEM, errno.EAGAIN)
    return is_named and lacks_memory()


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


@asynccontextmanager
async def one_try(job: Job, rows: QuerySet[Row], **begun: object) -> AsyncIterator[Row | None]:
    """Count a try in a job's row, as `counted_try` does, with the limits of its kind.

    After `job.longest_s`, cancel the block and raise `TimeoutError`. The try is then not counted,
    like an interrupted one.
    """
    one_of = counted_try(rows, max_tries=job.max_tries, **begun)
    async with asyncio.timeout(job.longest_s), one_of as row:
        yield row
