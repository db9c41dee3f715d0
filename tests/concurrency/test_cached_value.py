"""Cached values are fetched once for all callers, up to a requested age, without failures."""

import asyncio

import pytest

from portal.concurrency import CachedValue


async def test_value_is_fetched_once_for_all_again_when_it_is_old_and_failures_never() -> None:
    now_s = 1000.0
    fetched = 0
    is_failing = False

    async def fetch() -> int | None:
        """Return the state at the beginning of the fetch, which takes a second."""
        nonlocal now_s, fetched
        fetched += 1
        value = fetched
        await asyncio.sleep(0)
        now_s += 1
        if is_failing:
            raise ConnectionError
        return value if value > 1 else None

    cached = CachedValue(fetch, clock=lambda: now_s)
    assert await asyncio.gather(*(cached.get(max_age_s=2) for _ in range(50))) == [None] * 50
    assert await cached.get(max_age_s=2) is None
    assert fetched == 1, "None is a value, too"
    now_s += 1
    assert await asyncio.gather(*(cached.get(max_age_s=2) for _ in range(50))) == [2] * 50
    assert await cached.get(max_age_s=3600) == 2
    is_failing = True
    with pytest.raises(ConnectionError):
        await cached.get(max_age_s=0)
    is_failing = False
    assert await cached.get(max_age_s=0) == 4
