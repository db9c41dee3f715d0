"""What changes seldom: fetched once for all who want it, and anew when it is old."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

from portal.concurrency.single_flight import SingleFlight

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """The last value that was fetched. A failure is not kept."""

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
