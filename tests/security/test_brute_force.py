"""Guessing passwords: how many guesses anyone gets."""

import asyncio
from math import log2
from time import monotonic

import pytest
from quart import Quart
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    Sender,
    browser,
    session_of,
    try_to_sign_in,
)

from portal.accounts.passwords import Passwords
from portal.accounts.sessions import FREE_TRIES_OF_ACCOUNT, FREE_TRIES_OF_ADDRESS
from portal.database.account_models import Account

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
