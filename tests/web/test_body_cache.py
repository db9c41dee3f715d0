"""A body is made once for all who ask, and what is kept of bodies has a limit."""

import asyncio

import pytest

from portal.errors import NotFound
from portal.web.body_cache import BodyCache, CachedBody

KEY = "hls/1/1/low/media.m3u8"


class Maker:
    """Makes bodies when it is let, and counts how often."""

    def __init__(self, size_bytes: int = 10) -> None:
        self.may_make = asyncio.Event()
        self.made = 0
        self.size_bytes = size_bytes
        self.error: Exception | None = None

    async def make(self) -> str:
        self.made += 1
        await self.may_make.wait()
        if self.error:
            raise self.error
        return str(self.made).ljust(self.size_bytes)


def asked(bodies: BodyCache, maker: Maker, count: int) -> list[asyncio.Task[object]]:
    return [asyncio.create_task(bodies.get(KEY, maker.make)) for _ in range(count)]


async def test_all_who_ask_share_one_answer() -> None:
    bodies, maker = BodyCache(max_bytes=100, ttl_s=60), Maker()
    asking = asked(bodies, maker, 10)
    await asyncio.sleep(0)
    maker.may_make.set()
    first, *others = await asyncio.gather(*asking)
    assert isinstance(first, CachedBody)
    assert first.body == b"1         "
    assert all(other is first for other in others)
    assert await bodies.get(KEY, maker.make) is first
    assert maker.made == 1


async def test_one_that_goes_away_takes_it_from_nobody() -> None:
    bodies, maker = BodyCache(max_bytes=100, ttl_s=60), Maker()
    leaving, *staying = asked(bodies, maker, 3)
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    maker.may_make.set()
    await asyncio.gather(*staying)
    assert maker.made == 1


async def test_failure_is_told_to_all_who_wait_and_not_kept() -> None:
    bodies, maker = BodyCache(max_bytes=100, ttl_s=60), Maker()
    maker.error = NotFound()
    maker.may_make.set()
    found = await asyncio.gather(*asked(bodies, maker, 3), return_exceptions=True)
    assert [type(it) for it in found] == [NotFound] * 3
    maker.error = None
    assert (await bodies.get(KEY, maker.make)).body == b"2         "


async def test_no_more_bytes_are_kept_than_there_is_room_for() -> None:
    bodies, maker = BodyCache(max_bytes=100, ttl_s=60), Maker(size_bytes=30)
    maker.may_make.set()
    for number in range(20):
        await bodies.get(str(number), maker.make)
        assert bodies.size_bytes <= 100
    assert bodies.size_bytes == 90
    maker.size_bytes = 101
    assert len((await bodies.get("large", maker.make)).body) == 101
    assert bodies.size_bytes == 90


async def test_etag_follows_the_text() -> None:
    bodies, maker = BodyCache(max_bytes=100, ttl_s=60), Maker()
    maker.may_make.set()
    one, two = [await bodies.get(key, maker.make) for key in ("one", "two")]
    assert one.etag != two.etag
