"""A circuit breaker: calls to a dependency that is known to be down fail at once.

Closed, calls pass. A failure opens it: calls are refused for `OPEN_S`. Then it is half-open: one
call passes as a probe, while the others are still refused, until an answer closes it again.
Used by the web only; workers wait and retry instead.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from time import monotonic

OPEN_S = 1.0


class State(StrEnum):
    """Whether calls pass."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class CircuitBreaker:
    """In front of one dependency; `error` is raised for calls that it refuses."""

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
