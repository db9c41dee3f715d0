"""Concurrency helpers: tasks with plain errors, shared calls and cached values."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

CANCEL_AGAIN_S = 1


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Open an `asyncio.TaskGroup` whose first error is raised without an exception group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from error.__cause__


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` in a task while the block of an `async with` runs.

    When the block ends, the task is cancelled and has ended. An error of the work cancels the block
    and is raised in its place, without an exception group.
    """
    async with task_group() as tasks:
        task = tasks.create_task(work)
        try:
            yield
        finally:
            # `asyncio.wait_for` of Python 3.11, by which the connection pool waits, loses a
            # cancellation that comes together with what it waits for.
            while not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=CANCEL_AGAIN_S)


class SingleFlight(Generic[Value]):
    """Calls that are shared by key while they run. Results are not kept."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Value]] = {}

    async def get(self, key: str, work: Callable[[], Awaitable[Value]]) -> Value:
        """Return the result of the running call with this key, or else of a new one."""
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._do(key, work))
        # A cancelled caller must not cancel the call of the others.
        return await asyncio.shield(self._tasks[key])

    async def _do(self, key: str, work: Callable[[], Awaitable[Value]]) -> Value:
        try:
            return await work()
        finally:
            del self._tasks[key]


class CachedValue(Generic[Value]):
    """A value that is fetched once for all concurrent callers. Failures are not cached."""

    def __init__(
        self, fetch: Callable[[], Awaitable[Value]], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._flight: SingleFlight[Value] = SingleFlight()
        # The last value, and the time when its fetch began: later changes may be missing in it.
        self._last: tuple[float, Value] | None = None

    async def get(self, *, max_age_s: float) -> Value:
        """Return the value if it is younger than `max_age_s`, else the result of a fetch.

        The fetch may be one that already runs.
        """
        if self._last is not None:
            began_at, value = self._last
            if self._clock() - began_at < max_age_s:
                return value
        return await self._flight.get("", self._fetch_value)

    async def _fetch_value(self) -> Value:
        began_at = self._clock()
        value = await self._fetch()
        self._last = (began_at, value)
        return value
