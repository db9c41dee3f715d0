"""Work that many ask for at once, done once for all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


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
