"""Cached values are fetched once for all callers, and work beside a block ends with it."""

import asyncio

import pytest

from portal import concurrency
from portal.concurrency import CachedValue, running


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


async def test_work_ends_with_the_block_though_a_cancellation_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(concurrency, "CANCEL_AGAIN_S", 0.01)
    cancellations = 0

    async def work() -> None:
        nonlocal cancellations
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancellations += 1
                if cancellations > 2:
                    raise

    async with asyncio.timeout(20):
        async with running(work()):
            await asyncio.sleep(0)
    assert cancellations == 3


async def test_error_of_the_work_ends_the_block_and_is_raised() -> None:
    async def work() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        async with asyncio.timeout(20), running(work()):
            await asyncio.sleep(60)
