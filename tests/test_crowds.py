"""A crowd before one fragment costs one rendering a second; who asks alone sees the newest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from portal.serving.crowds import MAX_ANSWERS, SharedFragments


class Page:
    """A fragment whose renderings are counted."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.rendered = 0
        self.fragments = SharedFragments(clock=lambda: self.now_s)
        self.gate: Callable[[], Awaitable[None]] | None = None

    async def ask(self, address: str = "/status") -> str:
        return await self.fragments.get(address, self._render)

    async def _render(self) -> str:
        self.rendered += 1
        answer = f"rendering {self.rendered}"
        if self.gate:
            await self.gate()
        return answer


async def test_who_asks_alone_always_gets_the_newest() -> None:
    page = Page()
    for number in range(1, 30):
        assert await page.ask() == f"rendering {number}"
        page.now_s += 0.5


async def test_crowd_gets_one_rendering_a_second() -> None:
    page = Page()
    for _ in range(1000):
        await page.ask()
        page.now_s += 0.01
    # Ten seconds, and all of those who came in the first before they were a crowd.
    assert page.rendered <= 100 + 11


async def test_crowds_answer_is_never_older_than_a_second() -> None:
    page = Page()
    for _ in range(500):
        page.now_s += 0.01
        number = int((await page.ask()).split()[1])
        if number < page.rendered:
            pytest.fail("an older rendering than the last one was given out")
    before = page.rendered
    page.now_s += 1.0
    assert await page.ask() == f"rendering {before + 1}"


async def test_crowd_that_has_gone_is_forgotten() -> None:
    page = Page()
    for _ in range(300):
        await page.ask()
        page.now_s += 0.01
    page.now_s += 5
    assert await page.ask() == newest(page)
    page.now_s += 0.1
    assert await page.ask() == newest(page)


def newest(page: Page) -> str:
    return f"rendering {page.rendered}"


async def test_askers_at_once_share_and_one_that_leaves_takes_nothing_away() -> None:
    page = Page()
    open_gate = asyncio.Event()

    async def gate() -> None:
        await open_gate.wait()

    page.gate = gate
    first, *others = [asyncio.create_task(page.ask()) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    open_gate.set()
    assert await asyncio.gather(*others) == ["rendering 1"] * 19


async def test_failure_is_everyones_and_not_kept() -> None:
    page = Page()

    async def fail() -> None:
        raise LookupError

    page.gate = fail
    found = await asyncio.gather(*(page.ask() for _ in range(5)), return_exceptions=True)
    assert [type(it) for it in found] == [LookupError] * 5
    page.gate = None
    assert await page.ask() == f"rendering {page.rendered}"


async def test_other_addresses_have_other_answers_and_memory_is_bounded() -> None:
    page = Page()
    answers = {await page.ask(f"/{number}") for number in range(MAX_ANSWERS * 2)}
    assert len(answers) == MAX_ANSWERS * 2
    assert len(page.fragments) == MAX_ANSWERS
