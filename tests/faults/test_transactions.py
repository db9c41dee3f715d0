"""Transactions that fail or are cancelled at any moment, BEGIN included, leave nothing behind."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from database_proxy import DatabaseProxy, database_proxy

from portal.config import Config
from portal.database.connection import fetch_rows, open_database, transaction

POOL_SIZE = 2
# More turns of the loop than it takes to get a connection and begin.
TURNS = 40


@pytest.fixture
async def proxy(config: Config) -> AsyncIterator[DatabaseProxy]:
    async with database_proxy(config.database_url) as (proxy, address):
        few = replace(config, database_url=address, database_pool_size=POOL_SIZE)
        async with open_database(few):
            yield proxy


async def ask() -> int:
    async with transaction():
        [row] = await fetch_rows("SELECT 7 AS answer")
    answer: int = row["answer"]
    return answer


async def ask_all_at_once() -> list[int]:
    """Use every connection of the pool at the same time."""
    everyone = asyncio.Barrier(POOL_SIZE)

    async def ask_together() -> int:
        async with transaction():
            async with asyncio.timeout(60):
                await everyone.wait()
            return 7

    return await asyncio.gather(*(ask_together() for _ in range(POOL_SIZE)))


@pytest.mark.usefixtures("proxy")
async def test_transaction_cancelled_at_any_moment_gives_its_connection_back() -> None:
    assert await ask() == 7
    for turns in range(TURNS):
        task = asyncio.create_task(ask())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    assert await ask_all_at_once() == [7] * POOL_SIZE
