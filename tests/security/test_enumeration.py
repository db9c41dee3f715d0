"""Attacks that ask who has an account: by what is answered, and by how long that takes."""

import re

from quart import Quart, Response
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    make_account,
    person,
    renew_failures,
    text_of,
    try_to_sign_in,
)

from portal.accounts import invitations, people
from portal.database.account_models import Account
from portal.database.states import Role

WRONG = "five brown little geese"
# Of each request, whoever asks.
OF_REQUESTS = {"x-request-id", "date"}


async def anatomy(answer: Response, *told: str) -> tuple[int, list[tuple[str, str]], str]:
    """Status, headers and body of an answer, but for what was sent and the request's id."""
    headers = [(name, value) for name, value in answer.headers if name.lower() not in OF_REQUESTS]
    body = await text_of(answer)
    for text in told:
        body = body.replace(text, "…")
    length = [
        (name, "…") if name.lower() == "content-length" else (name, value)
        for name, value in headers
    ]
    return answer.status_code, length, re.sub(r"<code>[0-9a-f]{32}</code>", "", body)


async def make_kinds(olga: Account, suffix: str = "") -> dict[str, str]:
    """Addresses of the four kinds whose answers must be alike."""
    disabled = await make_account(f"disabled{suffix}", Role.EDITOR)
    await people.disable(disabled.id, by=person(olga))
    await make_account(f"invited{suffix}", Role.EDITOR, has_password=False)
    await make_account(f"account{suffix}", Role.EDITOR)
    return {
        name: f"{name}{suffix}@example.org"
        for name in ("disabled", "invited", "account", "unknown")
    }


async def test_refusals_to_sign_in_are_all_alike(app: Quart, olga: Account) -> None:
    """Eight tries of each of four kinds: refused five times, then told to wait for as long."""
    kinds = await make_kinds(olga)
    found: dict[str, list[object]] = {name: [] for name in kinds}
    for number in range(8):
        for kind, email in kinds.items():
            password = WRONG if kind == "account" else PASSWORD
            sender = Sender(app, OWN_PAGE, f"192.0.2.{number}")
            await renew_failures()
            answer = await try_to_sign_in(sender, email, password)
            found[kind].append(await anatomy(answer, email))
    first, *rest = found.values()
    assert [it[0] for it in first] == [*[422] * 5, *[429] * 3]  # type: ignore[index]
    assert all(it == first for it in rest)


async def test_nothing_else_tells_who_has_an_account(app: Quart, olga: Account) -> None:
    """Links that are void for four reasons, with each method; all are alike."""
    invited = await people.add("invited@example.org", Role.EDITOR)
    disabled = await invitations.offer_password(invited.id, by=person(olga))
    await people.disable(invited.id, by=person(olga))
    replaced = await invitations.offer_password(olga.id, by=person(olga))
    await invitations.offer_password(olga.id, by=person(olga))
    used = await invitations.invite(Role.VIEWER, by=person(olga))
    form = {"email": "new@example.org", "password": WRONG}
    assert (await Sender(app).post(f"/welcome/{used}", form=form)).status_code == 303
    for method in ("GET", "POST"):
        told = [
            await anatomy(await Sender(app).ask(method, f"/welcome/{secret}"), secret)
            for secret in (disabled, replaced, used, "x" * 43)
        ]
        assert told[0][0] == 404
        assert all(it == told[0] for it in told)
