"""Signing keys: one comes first, a new one signs once all know it, old ones go when unused."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from playback_links import Clock, age_keys, age_links, kids, ready_video
from quart import Quart

from portal.accounts.permissions import EVERYONES
from portal.config import Config
from portal.database.connection import migrate, open_database
from portal.errors import PlaybackTokenRefused
from portal.videos import playback_links, signing_keys
from portal.videos.playback_tokens import PlaybackToken, header_of
from portal.videos.signing_keys import (
    KEEP_RETIRED_S,
    MAX_AGE_S,
    ROTATED_AFTER_S,
    SETTLE_S,
    SigningKeys,
    rotate,
)

VIDEO_ID = uuid4()


@pytest.fixture
async def database(config: Config) -> AsyncIterator[Config]:
    """A database without keys."""
    await migrate(config)
    async with open_database(config):
        yield config


def a_token(life_s: float = 3600) -> PlaybackToken:
    ends = (datetime.now(UTC) + timedelta(seconds=life_s)).replace(microsecond=0)
    return PlaybackToken(VIDEO_ID, ends, account_id=uuid4())


def kid_of(text: str, found: list[str]) -> str:
    """Which of these keys signed a token."""
    [kid] = [kid for kid in found if text.startswith(f"{header_of(kid)}.")]
    return kid


async def is_good(keys: SigningKeys, text: str) -> bool:
    try:
        await keys.verify(text, video_id=VIDEO_ID)
    except PlaybackTokenRefused:
        return False
    return True


async def test_twenty_rotations_at_once_leave_one_that_is_not_retired(database: Config) -> None:
    old = await SigningKeys().sign(a_token())
    made = await asyncio.gather(*(rotate() for _ in range(20)))
    listed = await signing_keys.list_keys()
    assert len(listed) == 21
    assert {key["kid"] for key in listed} > set(made)
    [newest] = [key["kid"] for key in listed if key["retired_at"] is None]
    assert newest == listed[0]["kid"]
    keys = SigningKeys()
    assert await is_good(keys, old)
    await age_keys(database, SETTLE_S)
    text = await SigningKeys().sign(a_token())
    assert kid_of(text, await kids(database)) == newest


async def test_rotation_is_seen_by_another_process_before_it_counts(database: Config) -> None:
    """The clock of the second process stands still: it has just read the keys."""
    clock = Clock()
    first, second = SigningKeys(), SigningKeys(clock=clock)
    old = await second.sign(a_token())
    [before] = await kids(database)
    after = await rotate()
    await age_keys(database, -3600)
    # Nobody signs with it while there may be someone who does not know it.
    assert kid_of(await SigningKeys().sign(a_token()), [before, after]) == before
    assert await is_good(second, await SigningKeys().sign(a_token()))
    await age_keys(database, 3600 + SETTLE_S)
    clock.now_s += MAX_AGE_S
    text = await second.sign(a_token())
    assert kid_of(text, [before, after]) == after
    assert await is_good(first, text)
    assert await is_good(first, old)
    assert await is_good(second, old)
    assert ROTATED_AFTER_S == SETTLE_S + MAX_AGE_S == 7


async def test_revoked_keys_verify_nothing_two_seconds_later(database: Config) -> None:
    clock = Clock()
    keys = SigningKeys(clock=clock)
    video = await ready_video()
    link = await playback_links.make(video.id, life_s=60, by=EVERYONES)
    old = await keys.sign(a_token())
    assert await is_good(keys, old)
    kid = await rotate(revoke=True)
    assert await kids(database) == [kid]
    clock.now_s += 1.99
    assert await is_good(keys, old), "the process asks no earlier"
    clock.now_s += 0.02
    assert not await is_good(keys, old)
    # The new key has nobody to wait for.
    assert kid_of(await keys.sign(a_token()), [kid]) == kid
    assert await playback_links.fetch_live_links([link.id]) == {}
    with pytest.raises(PlaybackTokenRefused):
        await link.token(keys)


async def test_link_is_signed_by_its_own_key_whatever_came_after(database: Config) -> None:
    video, keys = await ready_video(), SigningKeys()
    link = await playback_links.make(video.id, life_s=3600, by=EVERYONES)
    token = await link.token(keys)
    await rotate()
    await age_keys(database, 3600)
    [listed] = await playback_links.list_links(video.id)
    assert await listed.token(SigningKeys()) == token
    another = await playback_links.make(video.id, life_s=3600, by=EVERYONES)
    assert another.kid != link.kid
    # Even where the process has just read keys of which this was none.
    assert kid_of(await another.token(keys), await kids(database)) == another.kid


async def test_keys_that_nothing_needs_go_and_others_stay(database: Config) -> None:
    video = await ready_video()
    link = await playback_links.make(video.id, life_s=playback_links.MAX_LIFE_S, by=EVERYONES)
    await rotate()
    unused = await rotate()
    last = await rotate()
    await age_keys(database, KEEP_RETIRED_S - 60)
    await signing_keys.forget_unused()
    assert len(await kids(database)) == 4, "tokens of accounts may still live"
    await age_keys(database, 120)
    await signing_keys.forget_unused()
    assert set(await kids(database)) == {link.kid, last}
    assert unused not in await kids(database)
    assert await playback_links.fetch_live_links([link.id]) == {link.id: video.id}
    await age_links(database, playback_links.MAX_LIFE_S + 1)
    await signing_keys.forget_unused()
    assert await kids(database) == [last]
    await age_keys(database, 10 * KEEP_RETIRED_S)
    await signing_keys.forget_unused()
    assert await kids(database) == [last], "the one that signs never goes"


async def test_worker_and_web_share_the_keys_of_the_database(app: Quart, config: Config) -> None:
    """The keys of the started app, and those that a process beside it reads."""
    keys = app.extensions["portal"].signing_keys
    text = await keys.sign(a_token())
    assert await is_good(SigningKeys(), text)
