"""Readings that are done together are never older than the question."""

import asyncio
from collections.abc import Sequence

from portal.http.composition import DataLoader


async def test_read_that_is_requested_during_a_query_belongs_to_the_next_query() -> None:
    is_running = asyncio.Event()
    may_end = asyncio.Event()
    queries: list[Sequence[str]] = []

    async def fetch(names: Sequence[str]) -> dict[str, int]:
        queries.append(names)
        number = len(queries)
        is_running.set()
        await may_end.wait()
        return dict.fromkeys(names, number)

    loader = DataLoader(fetch)
    early = asyncio.create_task(loader.load("a"))
    await is_running.wait()
    late = [asyncio.create_task(loader.load(name)) for name in ("a", "b", "a")]
    may_end.set()
    assert await early == 1
    assert await asyncio.gather(*late) == [2, 2, 2]
    assert [sorted(set(names)) for names in queries] == [["a"], ["a", "b"]]
