"""A long playlist is signed once for all who watch, and what is kept of them has a limit."""

from __future__ import annotations

import asyncio

import pytest

from portal.errors import NotFound
from portal.signed_playlists import SentPlaylist, SignedPlaylists

KEY = "hls/1/1/low/media.m3u8"


class Signer:
    """Signs when it is let, and counts how often."""

    def __init__(self, size_bytes: int = 10) -> None:
        self.may_sign = asyncio.Event()
        self.signed = 0
        self.size_bytes = size_bytes
        self.error: Exception | None = None

    async def sign(self) -> str:
        self.signed += 1
        await self.may_sign.wait()
        if self.error:
            raise self.error
        return str(self.signed).ljust(self.size_bytes)


def asked(playlists: SignedPlaylists, signer: Signer, count: int) -> list[asyncio.Task[object]]:
    return [asyncio.create_task(playlists.get(KEY, signer.sign)) for _ in range(count)]


async def test_all_who_ask_share_one_answer() -> None:
    playlists, signer = SignedPlaylists(max_bytes=100, ttl_s=60), Signer()
    asking = asked(playlists, signer, 10)
    await asyncio.sleep(0)
    signer.may_sign.set()
    first, *others = await asyncio.gather(*asking)
    assert isinstance(first, SentPlaylist)
    assert first.body == b"1         "
    assert all(other is first for other in others)
    assert await playlists.get(KEY, signer.sign) is first
    assert signer.signed == 1


async def test_one_that_goes_away_takes_it_from_nobody() -> None:
    playlists, signer = SignedPlaylists(max_bytes=100, ttl_s=60), Signer()
    leaving, *staying = asked(playlists, signer, 3)
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    signer.may_sign.set()
    await asyncio.gather(*staying)
    assert signer.signed == 1


async def test_failure_is_told_to_all_who_wait_and_not_kept() -> None:
    playlists, signer = SignedPlaylists(max_bytes=100, ttl_s=60), Signer()
    signer.error = NotFound()
    signer.may_sign.set()
    found = await asyncio.gather(*asked(playlists, signer, 3), return_exceptions=True)
    assert [type(it) for it in found] == [NotFound] * 3
    signer.error = None
    assert (await playlists.get(KEY, signer.sign)).body == b"2         "


async def test_no_more_bytes_are_kept_than_there_is_room_for() -> None:
    playlists, signer = SignedPlaylists(max_bytes=100, ttl_s=60), Signer(size_bytes=30)
    signer.may_sign.set()
    for number in range(20):
        await playlists.get(str(number), signer.sign)
        assert playlists.size_bytes <= 100
    assert playlists.size_bytes == 90
    signer.size_bytes = 101
    assert len((await playlists.get("large", signer.sign)).body) == 101
    assert playlists.size_bytes == 90


async def test_etag_follows_the_text() -> None:
    playlists, signer = SignedPlaylists(max_bytes=100, ttl_s=60), Signer()
    signer.may_sign.set()
    one, two = [await playlists.get(key, signer.sign) for key in ("one", "two")]
    assert one.etag != two.etag
