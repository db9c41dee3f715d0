"""Requests with valid credentials are counted for their account, all others for their address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from api_client import problem
from hypercorn.typing import HTTPScope
from quart import Quart
from signed_in import (
    OWN_PAGE,
    Sender,
    browser,
    make_account,
    program,
    signed_in,
    text_of,
    token_of,
)

from portal.accounts.secrets import digest, new_secret
from portal.config import Config
from portal.database.account_models import ApiToken
from portal.database.states import Role
from portal.web.app import create_app
from portal.web.server import rate_limit
from portal.web.server.credentials import PLAIN_COOKIE, SECURE_COOKIE, credential_digests
from portal.web.server.rate_limit import IDENTIFIED_S, Accounts, TokenBuckets
from portal.web.server.request_context import state_of

PRESIGN = {"fileName": "a.mp4", "contentType": "video/mp4"}
ELSEWHERE = "203.0.113.9"
LIMIT = 4


@asynccontextmanager
async def limited(config: Config) -> AsyncIterator[Quart]:
    """An app in which each client may change something four times; nothing is given back, for the
    limits' clock stands still.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rate_limit, "TokenBuckets", partial(TokenBuckets, clock=lambda: 0.0))
        app = create_app(replace(config, rate_limit_changes=LIMIT))
        async with app.test_app():
            yield app


async def change(sender: Sender) -> int:
    """Ask for an upload address; returns the status."""
    return (await sender.post("/api/videos/presign", json=PRESIGN)).status_code


async def changes(sender: Sender, count: int) -> list[int]:
    return [await change(sender) for _ in range(count)]


async def used_up(sender: Sender) -> None:
    """Ask as often as an account may, and once more; the first is counted for the address."""
    assert await changes(sender, LIMIT + 1) == [200] * (LIMIT + 1)
    assert await change(sender) == 429


def at(sender: Sender, address: str) -> Sender:
    return replace(sender, address=address)


async def test_accounts_behind_one_address_have_a_budget_each(config: Config) -> None:
    async with limited(config) as app:
        olga, edith = await make_account("olga"), await make_account("edith", Role.EDITOR)
        first, second = program(app, await token_of(olga)), await signed_in(app, edith)
        await used_up(first)
        await used_up(second)
        # Those at the address who sign in to nothing have the rest of its own.
        assert await changes(Sender(app), LIMIT - 1) == [401, 401, 429]


async def test_account_at_many_addresses_is_one_client(config: Config) -> None:
    async with limited(config) as app:
        sender = program(app, await token_of(await make_account("olga")))
        assert await change(sender) == 200
        answers = [await change(at(sender, f"203.0.113.{last}")) for last in range(1, 7)]
        assert answers == [*[200] * LIMIT, 429, 429]


async def test_tokens_and_sessions_of_an_account_are_one_client(config: Config) -> None:
    async with limited(config) as app:
        olga = await make_account("olga")
        senders = [program(app, await token_of(olga)), program(app, await token_of(olga))]
        senders.append(await signed_in(app, olga))
        # The first request with each of them is counted for the address.
        assert [await change(sender) for sender in senders] == [200] * 3
        assert [await change(sender) for sender in senders * 2] == [*[200] * LIMIT, 429, 429]
        assert await change(at(senders[0], ELSEWHERE)) == 429


async def test_made_up_credentials_are_counted_for_the_address(config: Config) -> None:
    async with limited(config) as app:
        await make_account("olga")
        tokens = [program(app, new_secret("portal_")) for _ in range(3)]
        cookies = [browser(app, new_secret()) for _ in range(3)]
        answers = [await change(sender) for sender in (*tokens, *cookies)]
        assert answers == [401, 401, 401, 401, 429, 429]
        assert await change(at(tokens[0], ELSEWHERE)) == 401


async def test_neighbour_with_made_up_tokens_does_not_slow_an_account_down(config: Config) -> None:
    async with limited(config) as app:
        sender = program(app, await token_of(await make_account("olga")))
        assert await change(sender) == 200
        made_up = [await change(program(app, new_secret("portal_"))) for _ in range(LIMIT)]
        assert made_up == [401, 401, 401, 429]
        assert await changes(sender, LIMIT) == [200] * LIMIT


async def test_revoked_token_is_counted_for_its_account_for_a_minute_at_most(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    known = Accounts(clock=lambda: now)
    monkeypatch.setattr(rate_limit, "Accounts", lambda: known)
    async with limited(config) as app:
        sender = program(app, await token_of(await make_account("olga")))
        await used_up(sender)
        await ApiToken.all().delete()
        assert await change(sender) == 429
        now += IDENTIFIED_S + 1
        # The address has three left: one was taken by the first request.
        assert await changes(sender, LIMIT) == [401, 401, 401, 429]


async def test_refusal_says_whose_requests_were_too_many(config: Config) -> None:
    async with limited(config) as app:
        sender = program(app, await token_of(await make_account("olga")))
        await used_up(sender)
        refusal = await problem(
            await sender.post("/api/videos/presign", json=PRESIGN), 429, "too_many_requests"
        )
        assert "from your account" in refusal["detail"]
        assert await changes(Sender(app), LIMIT) == [401, 401, 401, 429]
        page = await text_of(await Sender(app).post("/sign-out", headers=OWN_PAGE))
        assert "from your address" in page


def scope_with(*headers: tuple[bytes, bytes]) -> HTTPScope:
    scope: Any = {"type": "http", "headers": list(headers), "path": "/"}
    return scope


def test_credentials_are_read_as_the_app_reads_them() -> None:
    def digests(*headers: tuple[bytes, bytes]) -> list[str]:
        return list(credential_digests(scope_with(*headers)))

    cookie = f"a=b; {PLAIN_COOKIE}=one; {SECURE_COOKIE}=two; {PLAIN_COOKIE}=three".encode()
    assert digests() == digests((b"authorization", b"Basic abc")) == []
    assert digests((b"cookie", cookie)) == [digest("one"), digest("two")]
    split = ((b"cookie", b"a=b"), (b"cookie", f"{PLAIN_COOKIE}=one".encode()))
    assert digests(*split) == [digest("one")]
    bearer = (b"authorization", b"bearer  portal_x ")
    assert digests(bearer, (b"cookie", cookie)) == [digest("portal_x")]
    assert digests((b"cookie", f"not_{PLAIN_COOKIE}=one".encode())) == []


def test_only_what_the_app_found_valid_is_remembered() -> None:
    known = Accounts()
    scope = scope_with((b"authorization", b"Bearer one"))
    known.note(scope)
    assert known.of(scope) == ""
    state_of(scope).identified = (digest("one"), "olga")
    known.note(scope)
    assert known.of(scope) == "olga"
    assert known.of(scope_with((b"authorization", b"Bearer two"))) == ""
