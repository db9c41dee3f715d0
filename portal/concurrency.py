"""For many callers of one dependency: shared and cached fetches, task group.

Knows no database, no storage and no HTTP.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Generic, TypeVar

Value = TypeVar("Value")


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """As `asyncio.TaskGroup`, but its first error is raised alone, with its cause."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from error.__cause__


class SingleFlight(Generic[Value]):
    """Work is shared while it is under way; its result is not kept afterwards."""

    def __init__(self) -> None:
        self._coming: dict[str, asyncio.Task[Value]] = {}

    async def get(self, key: str, work: Callable[[], Awaitable[Value]]) -> Value:
        """Do this work, or wait for the one with this key; all get its result or error."""
        if key not in self._coming:
            self._coming[key] = asyncio.create_task(self._do(key, work))
        # A caller that is cancelled must not cancel it for the others.
        return await asyncio.shield(self._coming[key])

    async def _do(self, key: str, work: Callable[[], Awaitable[Value]]) -> Value:
        try:
            return await work()
        finally:
            del self._coming[key]


class CachedValue(Generic[Value]):
    """The last value that was fetched, once for all who ask meanwhile. Failures are not cached."""

    def __init__(
        self, fetch: Callable[[], Awaitable[Value]], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._flight: SingleFlight[Value] = SingleFlight()
        # With the time at which it was asked for: what changes from then on may be missing.
        self._last: tuple[float, Value] | None = None

    async def get(self, *, max_age_s: float) -> Value:
        """The value, not older than this; 0 fetches it, or waits for the fetch under way."""
        if self._last is not None:
            begun, found = self._last
            if self._clock() - begun < max_age_s:
                return found
        return await self._flight.get("", self._fetch_anew)

    async def _fetch_anew(self) -> Value:
        begun = self._clock()
        found = await self._fetch()
        self._last = begun, found
        return found
