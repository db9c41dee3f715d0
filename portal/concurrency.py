"""For many callers of one dependency: circuit breaker, shared and cached fetches, task group.

Knows no database, no storage and no HTTP.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from time import monotonic
from typing import Generic, TypeVar

Value = TypeVar("Value")

# How long an open circuit breaker refuses all calls.
OPEN_S = 1.0


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


class State(StrEnum):
    """Whether calls pass a circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class CircuitBreaker:
    """In front of one dependency: while it is known to be down, calls fail at once with `error`.

    Closed, calls pass. A failure opens it: calls are refused for `OPEN_S`. Then it is half-open:
    one call passes as a probe, while the others are still refused, until an answer closes it again.
    Used by the web only; workers wait and retry instead.
    """

    def __init__(
        self, error: Callable[[], Exception], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._error = error
        self._clock = clock
        self._open_until: float | None = None
        self._is_probing = False

    @property
    def state(self) -> State:
        """The state at this moment."""
        if self._open_until is None:
            return State.CLOSED
        return State.OPEN if self._clock() < self._open_until else State.HALF_OPEN

    def check(self) -> None:
        """Raise the error unless a call would pass."""
        state = self.state
        if state is State.OPEN or (state is State.HALF_OPEN and self._is_probing):
            raise self._error()

    def record_failure(self) -> None:
        """The dependency did not answer."""
        self._open_until = self._clock() + OPEN_S

    def record_success(self) -> None:
        """The dependency answered."""
        self._open_until = None

    @asynccontextmanager
    async def call(self) -> AsyncIterator[bool]:
        """Around a call, unless it is refused; yields whether the call is the probe."""
        self.check()
        is_probe = self.state is State.HALF_OPEN
        self._is_probing = self._is_probing or is_probe
        try:
            yield is_probe
        finally:
            if is_probe:
                self._is_probing = False
