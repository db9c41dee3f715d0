"""Guessing passwords, links and tokens: how many guesses anyone gets."""

import asyncio
from math import log2
from time import monotonic
from typing import Any

import pytest
from quart import Quart
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    make_account,
    pass_time,
    person,
    program,
    renew_failures,
    session_in,
    session_of,
    try_to_sign_in,
)

from portal.accounts import links
from portal.accounts.passwords import Passwords
from portal.accounts.signing_in import FREE_TRIES_OF_ACCOUNT, FREE_TRIES_OF_ADDRESS
from portal.database.account_models import Account, SignInFailure
from portal.database.states import Role

GUESSES = 200
ATTACKER = "203.0.113.66"


class Guessed:
    """How many passwords were compared."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        is_right = Passwords.is_right

        async def counted(passwords: Passwords, password: str, kept: str | None) -> bool:
            self.count += 1
            return await is_right(passwords, password, kept)

        patch.setattr(Passwords, "is_right", counted)


@pytest.fixture
def guessed(monkeypatch: pytest.MonkeyPatch) -> Guessed:
    return Guessed(monkeypatch)


def allowed(free: int, began_at: float) -> int:
    """How many tries there may be since then, with waits of one second, of two and so on."""
    return free + int(log2(monotonic() - began_at + 1))


async def attack(app: Quart, tries: list[dict[str, Any]]) -> list[int]:
    """The statuses of tries sent all at once."""
    sent = (
        try_to_sign_in(Sender(app, OWN_PAGE, it["address"]), it["email"], it["password"])
        for it in tries
    )
    return [answer.status_code for answer in await asyncio.gather(*sent)]


async def test_guesses_at_once_are_no_more_guesses(
    app: Quart, olga: Account, guessed: Guessed
) -> None:
    """Two hundred at once at one account from as many addresses, with the right one among them."""
    began_at = monotonic()
    tries = [
        {"address": f"192.0.2.{it}", "email": olga.email, "password": f"guess {it} of many"}
        for it in range(GUESSES)
    ]
    tries[GUESSES // 2]["password"] = PASSWORD
    statuses = await attack(app, tries)
    assert FREE_TRIES_OF_ACCOUNT <= guessed.count <= allowed(FREE_TRIES_OF_ACCOUNT, began_at)
    assert statuses.count(429) == GUESSES - guessed.count
    assert await SignInFailure.all().count() <= guessed.count


async def test_one_address_gets_no_more_by_trying_many_accounts(
    app: Quart, olga: Account, guessed: Guessed
) -> None:
    """Two hundred at once from one address, each at another account."""
    began_at = monotonic()
    tries = [
        {"address": ATTACKER, "email": f"{it}@example.org", "password": PASSWORD}
        for it in range(GUESSES)
    ]
    statuses = await attack(app, tries)
    assert FREE_TRIES_OF_ADDRESS <= guessed.count <= allowed(FREE_TRIES_OF_ADDRESS, began_at)
    assert statuses.count(429) == GUESSES - guessed.count


async def test_one_client_is_one_address_whatever_it_says(
    app: Quart, olga: Account, guessed: Guessed
) -> None:
    """Two hundred from one IPv6 network and with as many forged headers: no proxy is trusted."""
    began_at = monotonic()

    async def guess(number: int) -> int:
        headers = {
            **OWN_PAGE,
            "X-Forwarded-For": f"192.0.2.{number}",
            "Forwarded": f"for=192.0.2.{number}",
            "X-Real-IP": f"192.0.2.{number}",
            "User-Agent": str(number),
        }
        sender = Sender(app, headers, f"2001:db8:1:2::{number:x}")
        return (await try_to_sign_in(sender, f"{number}@example.org")).status_code

    statuses = await asyncio.gather(*map(guess, range(GUESSES)))
    assert FREE_TRIES_OF_ADDRESS <= guessed.count <= allowed(FREE_TRIES_OF_ADDRESS, began_at)
    assert statuses.count(429) == GUESSES - guessed.count


async def test_person_gets_in_where_they_are_known_during_an_attack(
    app: Quart, olga: Account
) -> None:
    """Two hundred guesses from a hundred addresses, and ten times the right password at home."""
    await session_of(olga, address=ADDRESS)

    async def come_home() -> list[str]:
        home = Sender(app, OWN_PAGE, ADDRESS)
        return [session_in(await try_to_sign_in(home, olga.email)) for _ in range(10)]

    tries = [
        {"address": f"192.0.2.{it % 100}", "email": olga.email, "password": "a guess"}
        for it in range(GUESSES)
    ]
    statuses, cookies = await asyncio.gather(attack(app, tries), come_home())
    assert set(statuses) == {422, 429}
    assert all(cookies)


async def test_other_accounts_are_not_slowed_down_by_an_attack(app: Quart, olga: Account) -> None:
    """Two hundred guesses at one account; another one signs in from elsewhere at the first try."""
    other = await make_account("other", Role.EDITOR)
    tries = [
        {"address": ATTACKER, "email": olga.email, "password": "a guess"} for _ in range(GUESSES)
    ]
    _, answer = await asyncio.gather(
        attack(app, tries), try_to_sign_in(Sender(app, OWN_PAGE, ADDRESS), other.email)
    )
    assert answer.status_code == 303


async def test_waiting_is_told_and_worth_it(app: Quart, olga: Account) -> None:
    """Six guesses; the seventh try, after what Retry-After says, is looked at."""
    sender = Sender(app, OWN_PAGE, ATTACKER)
    for _ in range(6):
        await renew_failures()
        answer = await try_to_sign_in(sender, olga.email, "a guess")
    assert answer.status_code == 429
    wait_s = int(answer.headers["Retry-After"])
    assert wait_s == 1
    await pass_time(wait_s)
    assert (await try_to_sign_in(sender, olga.email)).status_code == 303


@pytest.mark.parametrize("is_known", [True, False])
async def test_borrowed_browser_is_no_way_to_guess_the_password(
    app: Quart, olga: Account, guessed: Guessed, is_known: bool
) -> None:
    """Two hundred at once at the form that changes a password, where its person is signed in, and
    with a stolen cookie elsewhere.
    """
    sender = browser(app, await session_of(olga), address=ADDRESS if is_known else ATTACKER)
    began_at = monotonic()
    forms = ({"current": f"guess {it} of many", "password": "x"} for it in range(GUESSES))
    answers = await asyncio.gather(*(sender.post("/account/password", form=it) for it in forms))
    free = FREE_TRIES_OF_ADDRESS if is_known else FREE_TRIES_OF_ACCOUNT
    assert free <= guessed.count <= allowed(free, began_at)
    assert [it.status_code for it in answers].count(429) == GUESSES - guessed.count
    assert (await Account.get(id=olga.id)).password_hash == olga.password_hash


async def test_links_and_tokens_are_not_found_by_guessing(app: Quart, olga: Account) -> None:
    """Two hundred guesses of each that differ from a real one in a single letter."""
    invitation = await links.invite(Role.OWNER, by=person(olga))
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    guesses = [
        invitation[:place] + letter + invitation[place + 1 :]
        for place in range(len(invitation))
        for letter in letters
        if letter != invitation[place]
    ][:: len(invitation) * len(letters) // GUESSES]
    assert len(guesses) >= GUESSES
    form = {"email": "x@example.org", "password": PASSWORD}
    pages = await asyncio.gather(*(Sender(app).post(f"/welcome/{it}", form=form) for it in guesses))
    assert {it.status_code for it in pages} == {404}
    calls = await asyncio.gather(
        *(program(app, f"portal_{it}").get("/api/uploads/none") for it in guesses)
    )
    assert {it.status_code for it in calls} == {401}
    assert await Account.all().count() == 1
