"""Work that many ask for at once, done once for all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class SingleFlight(Generic[Value]):
    """Nothing is kept: whoever asks after the work was done has it done again."""

    def __init__(self) -> None:
        self._coming: dict[str, asyncio.Task[Value]] = {}

    async def get(self, key: str, work: Callable[[], Awaitable[Value]]) -> Value:
        """What this work gives, or the same that is under way for others; a failure, too."""
        if key not in self._coming:
            self._coming[key] = asyncio.create_task(self._do(key, work))
        # One that goes away must not take it from the others.
        return await asyncio.shield(self._coming[key])

    async def _do(self, key: str, work: Callable[[], Awaitable[Value]]) -> Value:
        try:
            return await work()
        finally:
            del self._coming[key]
