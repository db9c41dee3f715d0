"""Values kept for a while: fetched once for all, not older than asked for, failures never."""

import asyncio

import pytest

from portal.concurrency import CachedValue


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Source:
    """Counts what is fetched; a fetch takes a second, and is as good as the moment it begins."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.count = 0
        self.is_away = False

    async def fetch(self) -> int | None:
        self.count += 1
        found = self.count
        await asyncio.sleep(0)
        self.clock.now_s += 1
        if self.is_away:
            raise ConnectionError
        return found if found > 1 else None


async def test_value_is_fetched_once_for_all_and_again_when_it_is_old() -> None:
    source = Source()
    cached = CachedValue(source.fetch, clock=source.clock)
    assert await asyncio.gather(*(cached.get(max_age_s=2) for _ in range(50))) == [None] * 50
    assert await cached.get(max_age_s=2) is None
    assert source.count == 1, "nothing is a value, too"
    source.clock.now_s += 1
    assert await asyncio.gather(*(cached.get(max_age_s=2) for _ in range(50))) == [2] * 50
    assert await cached.get(max_age_s=3600) == 2
    assert await cached.get(max_age_s=0) == 3


async def test_failure_is_told_and_not_kept() -> None:
    source = Source()
    cached = CachedValue(source.fetch, clock=source.clock)
    source.is_away = True
    with pytest.raises(ConnectionError):
        await cached.get(max_age_s=3600)
    source.is_away = False
    assert await cached.get(max_age_s=3600) == 2
