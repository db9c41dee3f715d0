"""Values kept for a while: fetched once for all, not older than asked for, failures never."""

import asyncio

import pytest

from portal.concurrency import CachedValue


async def test_value_is_fetched_once_for_all_again_when_it_is_old_and_failures_never() -> None:
    now_s, fetched, is_away = 1000.0, 0, False

    async def fetch() -> int | None:
        """Takes a second, and is as good as the moment in which it begins."""
        nonlocal now_s, fetched
        fetched += 1
        found = fetched
        await asyncio.sleep(0)
        now_s += 1
        if is_away:
            raise ConnectionError
        return found if found > 1 else None

    cached = CachedValue(fetch, clock=lambda: now_s)
    assert await asyncio.gather(*(cached.get(max_age_s=2) for _ in range(50))) == [None] * 50
    assert await cached.get(max_age_s=2) is None
    assert fetched == 1, "nothing is a value, too"
    now_s += 1
    assert await asyncio.gather(*(cached.get(max_age_s=2) for _ in range(50))) == [2] * 50
    assert await cached.get(max_age_s=3600) == 2
    is_away = True
    with pytest.raises(ConnectionError):
        await cached.get(max_age_s=0)
    is_away = False
    assert await cached.get(max_age_s=0) == 4
