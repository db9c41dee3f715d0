"""Guessing passwords, and who has an account: how many guesses anyone gets, and what they tell."""

import re

import pytest
from quart import Quart, Response
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    make_account,
    person,
    renew_failures,
    session_of,
    text_of,
    try_to_sign_in,
)

from portal.accounts import invitations, people
from portal.accounts.sessions import FREE_TRIES_OF_ACCOUNT, FREE_TRIES_OF_ADDRESS
from portal.database.account_models import Account, Role

ATTACKER = "203.0.113.66"
WRONG = "five brown little geese"


async def test_one_client_is_one_address_whatever_it_says(app: Quart, olga: Account) -> None:
    """From one IPv6 network, with as many forged headers: no proxy is trusted."""
    for number in range(FREE_TRIES_OF_ADDRESS + 3):
        headers = {
            **OWN_PAGE,
            "X-Forwarded-For": f"192.0.2.{number}",
            "Forwarded": f"for=192.0.2.{number}",
            "X-Real-IP": f"192.0.2.{number}",
        }
        sender = Sender(app, headers, f"2001:db8:1:2::{number:x}")
        await renew_failures()
        answer = await try_to_sign_in(sender, f"{number}@example.org")
        assert answer.status_code == (422 if number < FREE_TRIES_OF_ADDRESS else 429)


@pytest.mark.parametrize(
    ("address", "free"), [(ADDRESS, FREE_TRIES_OF_ADDRESS), (ATTACKER, FREE_TRIES_OF_ACCOUNT)]
)
async def test_borrowed_browser_is_no_way_to_guess_the_password(
    app: Quart, olga: Account, address: str, free: int
) -> None:
    """At the form that changes it, where its person is signed in, and with a stolen cookie."""
    sender = browser(app, await session_of(olga), address=address)
    for number in range(free + 3):
        form = {"current": f"guess {number} of many", "password": "x"}
        await renew_failures()
        answer = await sender.post("/account/password", form=form)
        assert answer.status_code == (422 if number < free else 429)
    assert (await Account.get(id=olga.id)).password_hash == olga.password_hash


async def anatomy(answer: Response, *told: str) -> tuple[int, list[tuple[str, str]], str]:
    """Status, headers and body of an answer, but for what was sent and the request's own."""
    own = {"x-request-id", "date", "content-length"}
    headers = [it for it in answer.headers if it[0].lower() not in own]
    body = await text_of(answer)
    for text in told:
        body = body.replace(text, "…")
    return answer.status_code, headers, re.sub(r"<code>[0-9a-f]{32}</code>", "", body)


async def test_refusals_to_sign_in_are_all_alike(app: Quart, olga: Account) -> None:
    """Refused five times, then told to wait for as long, whether there is an account or not."""
    kinds = {name: f"{name}@example.org" for name in ("disabled", "invited", "account", "unknown")}
    disabled = await make_account("disabled", Role.EDITOR)
    await people.disable(disabled.id, by=person(olga))
    await make_account("invited", Role.EDITOR, has_password=False)
    await make_account("account", Role.EDITOR)
    for number in range(8):
        found = []
        for kind, email in kinds.items():
            password = WRONG if kind == "account" else PASSWORD
            sender = Sender(app, OWN_PAGE, f"192.0.2.{number}")
            await renew_failures()
            found.append(await anatomy(await try_to_sign_in(sender, email, password), email))
        assert found[0][0] == (422 if number < FREE_TRIES_OF_ACCOUNT else 429)
        assert all(it == found[0] for it in found)


async def test_links_that_are_void_are_all_alike(app: Quart, olga: Account) -> None:
    invited = await people.add("invited@example.org", Role.EDITOR)
    disabled = await invitations.offer_password(invited.id, by=person(olga))
    await people.disable(invited.id, by=person(olga))
    used = await invitations.invite(Role.VIEWER, by=person(olga))
    form = {"email": "new@example.org", "password": WRONG}
    assert (await Sender(app).post(f"/welcome/{used}", form=form)).status_code == 303
    for method in ("GET", "POST"):
        told = [
            await anatomy(await Sender(app).ask(method, f"/welcome/{secret}"), secret)
            for secret in (disabled, used, "x" * 43)
        ]
        assert told[0][0] == 404
        assert all(it == told[0] for it in told)
