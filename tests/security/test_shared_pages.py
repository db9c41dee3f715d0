"""Attacks on the response cache: one person's page is never given to another."""

import asyncio

import pytest
from quart import Quart
from signed_in import (
    Sender,
    browser,
    make_video,
    program,
    session_of,
    text_of,
    token_of,
)

from portal.database.account_models import Account
from portal.database.models import Video
from portal.web.server.credentials import PLAIN_COOKIE, SECURE_COOKIE
from portal.web.server.response_cache import MAX_AGE_S


class Clock:
    """Time as the cache sees it."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


CLOCK = Clock()


@pytest.fixture
async def video(olga: Account) -> Video:
    return await make_video(olga)


def stranger(app: Quart, number: int = 0) -> Sender:
    """Someone without credentials, from an address of their own."""
    return Sender(app, {}, f"192.0.2.{number % 250}")


def paths_of(video: Video) -> list[str]:
    """Addresses whose answers are shared."""
    return [
        "/",
        f"/videos/{video.id}",
        f"/videos/{video.id}/status",
        f"/library/progress?id={video.id}",
    ]


async def become_popular(app: Quart, *paths: str) -> None:
    """Three seconds of requests of strangers."""
    for number in range(20):
        for path in paths:
            await stranger(app, number).get(path)
        CLOCK.now_s += 0.15


def marks(page: str) -> set[str]:
    """What a page shows to someone alone."""
    return {
        it for it in ("olga@example.org", "edith@example.org", "/edit", "/delete") if it in page
    }


async def test_signed_in_and_anonymous_requests_by_turns(
    app: Quart, olga: Account, edith: Account, video: Video
) -> None:
    """Four popular addresses, eighty requests each, of two people, a program and strangers, one
    after the other and at once.
    """
    senders: dict[str, Sender] = {
        "olga": browser(app, await session_of(olga)),
        "edith": browser(app, await session_of(edith)),
        "program": program(app, await token_of(olga)),
        "stranger": stranger(app),
    }
    paths = paths_of(video)
    await become_popular(app, *paths)
    expected: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        for name, sender in senders.items():
            expected[name, path] = marks(await text_of(await sender.get(path)))
    assert expected["stranger", "/"] == set()
    assert "olga@example.org" in expected["olga", "/"]
    assert "/edit" in expected["olga", paths[1]]
    assert "/edit" not in expected["edith", paths[1]]
    for number in range(10):
        CLOCK.now_s += MAX_AGE_S / 3
        names = list(senders)[number % 4 :] + list(senders)[: number % 4]
        asked = [(name, path) for path in paths for name in names]
        at_once = await asyncio.gather(*(senders[name].get(path) for name, path in asked))
        in_turn = [await senders[name].get(path) for name, path in asked]
        for answers in (at_once, in_turn):
            for (name, path), answer in zip(asked, answers, strict=True):
                assert marks(await text_of(answer)) == expected[name, path], (name, path)
                is_private = answer.headers.get("Cache-Control") == "private, no-store"
                assert is_private is (name != "stranger"), (name, path)


async def test_page_of_someone_is_not_planted_for_all(
    app: Quart, olga: Account, video: Video
) -> None:
    """Poisoning: seven spellings of a cookie that a session may hide in and three more headers,
    each at four popular addresses, when a new answer is due.
    """
    session, paths = await session_of(olga), paths_of(video)
    cookies = [
        f"{PLAIN_COOKIE}={session}",
        f"{PLAIN_COOKIE} = {session}",
        f"{PLAIN_COOKIE}\t={session}",
        f'{PLAIN_COOKIE}="{session}"',
        f"{SECURE_COOKIE}=x; {PLAIN_COOKIE} ={session}",
        f'theme="; {PLAIN_COOKIE} ={session}',
        f"theme; {PLAIN_COOKIE}={session}",
    ]
    more = (
        {"X-Forwarded-User": olga.email},
        {"Authorization": ""},
        {"Authorization": "Basic b2w="},
    )
    await become_popular(app, *paths)
    planted = 0
    for headers in (
        *({"Cookie": it} for it in cookies),
        *({"Cookie": cookies[1], **it} for it in more),
    ):
        for path in paths:
            CLOCK.now_s += MAX_AGE_S
            own, *others = await asyncio.gather(
                Sender(app, headers).get(path), *(stranger(app, it).get(path) for it in range(2))
            )
            planted += bool(marks(await text_of(own)))
            for answer in (*others, await stranger(app).get(path)):
                assert marks(await text_of(answer)) == set(), (headers, path)
    # At least where the spelling is right there was something to plant.
    assert planted > 10
