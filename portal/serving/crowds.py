"""Answers a crowd that polls the same fragment with one rendering a second.

To render a fragment takes ten times as long as to send it, and a video that many wait for is the
same for all of them. Who asks alone always gets the newest state; of what is asked for often, an
answer may be as old as `MAX_AGE_S`, half the time until a page asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic

from cachetools import LRUCache

MAX_AGE_S = 1.0
# So many askers in one such time make a crowd in the next one.
CROWD = 3
# Addresses remembered, with a few kilobytes each if there is a crowd before them.
MAX_ANSWERS = 512

Render = Callable[[], Awaitable[str]]


@dataclass(slots=True)
class _Fragment:
    """One address: how many ask for it, the last answer, and the rendering under way."""

    counted_from: float
    asked: int = 0
    asked_before: int = 0
    answer: str = ""
    made_at: float = float("-inf")
    rendering: asyncio.Task[str] | None = None

    def count(self, now: float) -> None:
        age_s = now - self.counted_from
        if age_s >= MAX_AGE_S:
            self.asked_before = self.asked if age_s < 2 * MAX_AGE_S else 0
            self.asked, self.counted_from = 0, now
        self.asked += 1

    @property
    def is_crowded(self) -> bool:
        return self.asked_before >= CROWD


class SharedFragments:
    """One for a process; made in `resources.py`."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._fragments: LRUCache[str, _Fragment] = LRUCache(MAX_ANSWERS)

    def __len__(self) -> int:
        return len(self._fragments)

    async def get(self, address: str, render: Render) -> str:
        """The fragment at this address, rendered now unless it was for someone else just now."""
        now = self._clock()
        fragment = self._fragments.get(address)
        if fragment is None:
            fragment = self._fragments[address] = _Fragment(now)
        fragment.count(now)
        if fragment.is_crowded and now - fragment.made_at < MAX_AGE_S:
            return fragment.answer
        if fragment.rendering is None:
            fragment.rendering = asyncio.create_task(self._render(fragment, render))
        # One asker that goes away must not take the answer from the others.
        return await asyncio.shield(fragment.rendering)

    async def _render(self, fragment: _Fragment, render: Render) -> str:
        begun_at = self._clock()
        try:
            answer = await render()
        finally:
            fragment.rendering = None
        if fragment.is_crowded:
            fragment.answer, fragment.made_at = answer, begun_at
        else:
            fragment.answer, fragment.made_at = "", float("-inf")
        return answer
