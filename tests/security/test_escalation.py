"""Attacks that aim at more power: by scopes, forms, links, and by being quicker than a change."""

import asyncio
from typing import Any

import pytest
from quart import Quart
from signed_in import (
    PASSWORD,
    Sender,
    browser,
    person,
    program,
    session_of,
    signed_in,
    token_of,
)

from portal.accounts import people
from portal.database.account_models import Account
from portal.database.states import Role

UPLOAD = {"fileName": "a.mp4", "contentType": "video/mp4"}
NEW_PASSWORD = "five brown little geese"


async def test_portal_is_set_up_once(app: Quart) -> None:
    """Eight at once from the machine itself on an open portal, then twice on the closed one."""
    here = Sender(app, {"Host": "localhost"}, "127.0.0.1")
    forms = [{"email": f"{it}@example.org", "password": NEW_PASSWORD} for it in range(8)]
    answers = await asyncio.gather(*(here.post("/set-up", form=form) for form in forms))
    assert sorted(it.status_code for it in answers)[0] == 303
    assert sum(it.status_code == 303 for it in answers) == 1
    assert await Account.all().count() == 1
    assert (await here.get("/set-up")).status_code == 404
    assert (await here.post("/set-up", form=forms[0])).status_code == 404
    assert await Account.all().count() == 1


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("198.51.100.7", {"Host": "localhost"}),
        ("198.51.100.7", {"Host": "127.0.0.1:8000", "X-Forwarded-For": "127.0.0.1"}),
        ("127.0.0.1", {"Host": "portal.local"}),
        ("127.0.0.1", {"Host": "localhost", "X-Forwarded-For": "198.51.100.7"}),
        ("127.0.0.1", {"Host": "localhost", "X-Forwarded-For": ""}),
        ("127.0.0.1", {"Host": "localhost", "Forwarded": "for=198.51.100.7"}),
        ("127.0.0.1", {"Host": "localhost", "X-Real-IP": "198.51.100.7"}),
        ("127.0.0.1", {"Host": "localhost", "X-Forwarded-Host": "portal.example"}),
    ],
)
async def test_portal_is_set_up_from_the_machine_itself_alone(
    app: Quart, address: str, headers: dict[str, str]
) -> None:
    """Eight ways to look as if one were there."""
    form = {"email": "mallory@example.org", "password": NEW_PASSWORD}
    sender = Sender(app, headers, address)
    assert (await sender.post("/set-up", form=form)).status_code == 404
    assert not await Account.exists()


CHANGES: dict[str, Any] = {
    "made a viewer": lambda account, by: people.change_role(account.id, Role.VIEWER, by=by),
    "disabled": lambda account, by: people.disable(account.id, by=by),
    "removed": lambda account, by: people.remove(account.id, by=by),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_no_request_is_let_through_that_begins_after_the_change(
    app: Quart, olga: Account, edith: Account, change: str
) -> None:
    """Eight senders that ask without a pause, forty times before it, five times each after."""
    senders = [browser(app, await session_of(edith)) for _ in range(4)]
    senders += [program(app, await token_of(edith)) for _ in range(4)]
    is_taken, late, early = asyncio.Event(), [], 0
    enough = asyncio.Event()

    async def ask(sender: Sender) -> None:
        nonlocal early
        asked_late = 0
        while asked_late < 5:
            begins_late = is_taken.is_set()
            answer = await sender.post("/api/videos/presign", json=UPLOAD)
            if begins_late:
                asked_late += 1
                late.append(answer.status_code)
            else:
                assert answer.status_code in (200, 401, 403)
                early += answer.status_code == 200
                if early > 40:
                    enough.set()

    async with asyncio.TaskGroup() as group:
        for sender in senders:
            group.create_task(ask(sender))
        await enough.wait()
        await CHANGES[change](edith, person(olga))
        is_taken.set()
    assert len(late) == 8 * 5
    assert set(late) <= {401, 403}


async def test_password_alone_does_not_change_a_password(
    app: Quart, olga: Account, mallory: Account
) -> None:
    """A borrowed browser without the password, four times: nothing is changed."""
    sender = await signed_in(app, olga)
    for current in ("", NEW_PASSWORD, PASSWORD.upper(), "four calm green boat"):
        form = {"current": current, "password": NEW_PASSWORD}
        assert (await sender.post("/account/password", form=form)).status_code == 422
    assert (await Account.get(id=olga.id)).password_hash == olga.password_hash
