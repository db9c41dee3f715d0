"""Playback tokens: what is signed opens one video for a while; keys come and go."""

import asyncio
import json
import string
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from api_client import rows, run_sql
from command_line import portal
from itsdangerous import URLSafeSerializer
from playable_videos import age_links, ready_video

from portal.accounts.permissions import EVERYONES
from portal.config import Config
from portal.database.connection import open_database
from portal.database.schema import migrate
from portal.errors import PlaybackTokenRefused
from portal.videos import playback_links
from portal.videos.playback_links import PlaybackToken, SigningKeys, Viewer, rotate

VIDEO_ID = uuid4()
LINK_ID = uuid4()


@pytest.fixture
async def database(config: Config) -> AsyncIterator[Config]:
    """A database without keys."""
    await migrate(config)
    async with open_database(config):
        yield config


def a_token(life_s: float = 3600, **changes: Any) -> PlaybackToken:
    ends = (datetime.now(UTC) + timedelta(seconds=life_s)).replace(microsecond=0)
    return PlaybackToken(**{"video_id": VIDEO_ID, "expires_at": ends, "link_id": LINK_ID} | changes)


async def is_good(keys: SigningKeys, text: str, video_id: UUID = VIDEO_ID) -> bool:
    try:
        await keys.verify(text, video_id=video_id)
    except PlaybackTokenRefused:
        return False
    return True


async def age_keys(config: Config, seconds: float) -> None:
    await run_sql(
        config.database_url,
        f"UPDATE signing_keys SET created_at = created_at - interval '{seconds} s'",
    )


async def kids() -> list[str]:
    return [key["kid"] for key in await playback_links.list_keys()]


async def test_token_says_what_was_signed_and_nothing_else_is_one(database: Config) -> None:
    keys = SigningKeys()
    viewer = Viewer("4711", "Lena")
    for token in (a_token(viewer=viewer), a_token(), a_token(link_id=None, account_id=uuid4())):
        text = await keys.sign(token)
        assert len(text) < 220
        assert await keys.verify(text, video_id=VIDEO_ID) == token
        assert await keys.sign(token) == text
        assert await is_good(SigningKeys(), text), "the keys are the database's"
    claims, _, signature = text.rpartition(".")
    named, _, seal = (await keys.sign(a_token(viewer=viewer))).rpartition(".")
    forger = URLSafeSerializer(b"k" * 32, salt="playback")
    content = forger.load_payload(named.encode()) | {"n": ["4711", "Lars"]}
    renamed = f"{forger.dump_payload(content).decode()}.{seal}"
    expired = await keys.sign(a_token(life_s=-1))
    own = forger.dumps({"v": "x", "exp": 10**10})
    later = urlsafe_b64encode(json.dumps({"v": "", "exp": 10**10}).encode()).decode()
    changed = [text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :] for at in range(100)]
    assert not await is_good(keys, text, uuid4())
    malformed = ["", ".", "a.b.c", "\0", "é.é", "\udcff", "x" * 100_000, "." * 100_000]
    unsigned = [f"{later}.{signature}", claims, f"{claims}."]
    for wrong in (expired, own, renamed, *unsigned, *changed, *malformed):
        assert not await is_good(keys, wrong), ascii(wrong[:200])


async def test_token_has_one_spelling(database: Config) -> None:
    """Base64 would also be read with padding, and with other last bits, which encode nothing."""
    keys = SigningKeys()
    text = await keys.sign(a_token())
    letters = string.ascii_letters + string.digits + "-_"
    spellings = {text[:-1] + letter for letter in letters} - {text}
    for other in (*spellings, f"{text}=", f"{text}===", f"{text}\n", f"{text} ", f"{text}%3D"):
        assert not await is_good(keys, other), ascii(other)


async def test_new_key_signs_once_every_process_knows_it(database: Config) -> None:
    """The clock of the second process stands still: it has just read the keys."""
    first = SigningKeys()
    now_s = [1000.0]
    second = SigningKeys(clock=lambda: now_s[0])
    old = await second.sign(token := a_token())
    await age_keys(database, 6)
    await asyncio.gather(*(rotate() for _ in range(5)))
    assert len(await kids()) == 6
    assert await first.sign(token) == old, "the second could not verify another"
    await age_keys(database, 6)
    new = await SigningKeys().sign(token)
    assert new != old
    now_s[0] += playback_links.MAX_AGE_S
    assert await second.sign(token) == new
    assert await is_good(second, old)


async def test_revoked_keys_verify_nothing_and_their_links_are_gone(database: Config) -> None:
    video = await ready_video()
    keys = SigningKeys()
    link = await playback_links.make(video.id, life_s=60, by=EVERYONES)
    old = await keys.sign(a_token())
    kid = await rotate(revoke=True)
    fresh = SigningKeys()
    assert not await is_good(fresh, old)
    assert await is_good(fresh, await fresh.sign(a_token()))
    assert await kids() == [kid]
    assert await playback_links.fetch_live_links([link.id]) == {}


async def test_keys_and_links_go_once_nothing_needs_them(database: Config) -> None:
    video = await ready_video()
    await playback_links.make(video.id, life_s=playback_links.MAX_LIFE_S, by=EVERYONES)
    await SigningKeys().sign(a_token())
    last = await rotate()
    for days, keys, links in ((360, 2, 1), (7, 1, 0), (1000, 1, 0)):
        await age_keys(database, days * 24 * 3600)
        await age_links(database, days * 24 * 3600)
        await playback_links.forget_unused()
        links_left = await rows(database.database_url, "SELECT FROM playback_links")
        assert (len(await kids()), len(links_left)) == (keys, links), days
    assert await kids() == [last]


async def test_operator_lists_and_rotates_keys(database: Config, environ: dict[str, str]) -> None:
    assert "No keys yet" in (await portal(environ, "keys", "list")).out
    assert (await portal(environ, "keys", "rotate")).code == 0
    [old] = await kids()
    refused = await portal(environ, "keys", "rotate", "--revoke", typed="n\n")
    assert (refused.code, await kids()) == (1, [old])
    assert (await portal(environ, "keys", "rotate", "--revoke", "--yes")).code == 0
    listed = await portal(environ, "keys", "list", "--json")
    assert [key["kid"] for key in json.loads(listed.out)["keys"]] == await kids() != [old]
