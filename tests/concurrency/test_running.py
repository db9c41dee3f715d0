"""Work that runs beside a block ends with it."""

import asyncio

import pytest

from portal import concurrency
from portal.concurrency import running


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
