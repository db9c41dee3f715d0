"""A data loader: reads by key, batched where many clients poll at once.

What is asked for while a query is under way is fetched together by the next one. A read never sees
less than what was committed before it was asked for. A hundred polls cost one query.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from portal.database.pool import refuse_if_away

Key = TypeVar("Key")
Value = TypeVar("Value")


class DataLoader(Generic[Key, Value]):
    """One for each kind of value in a process.

    `fetch` reads what there is of some keys, at most once at a time. Values are shared by all who
    asked for them, who must not change them.
    """

    def __init__(self, fetch: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]]) -> None:
        self._fetch = fetch
        self._asked: dict[Key, asyncio.Future[Value | None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def load(self, key: Key) -> Value | None:
        """The value of this key; None if there is none."""
        refuse_if_away()
        if key not in self._asked:
            self._asked[key] = asyncio.get_running_loop().create_future()
        answer = self._asked[key]
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all())
        # An asker that is cancelled must not cancel it for the others.
        return await asyncio.shield(answer)

    async def _read_all(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, {}
            try:
                found = await self._fetch(list(asked))
            except Exception as exc:  # noqa: BLE001  # it is the askers' to handle
                for answer in asked.values():
                    answer.set_exception(exc)
                    answer.exception()  # seen, even if all who asked have gone
            else:
                for key, answer in asked.items():
                    answer.set_result(found.get(key))
        self._reading = None
