"""Attacks that aim at more power: by setting up a portal, and by being quicker than a change."""

import asyncio

import pytest
from quart import Quart
from signed_in import (
    Sender,
    browser,
    person,
    program,
    session_of,
    token_of,
)

from portal.accounts import people
from portal.database.account_models import Account
from portal.database.states import Role

UPLOAD = {"fileName": "a.mp4", "contentType": "video/mp4"}
NEW_PASSWORD = "five brown little geese"


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


async def test_no_request_is_let_through_that_begins_after_the_change(
    app: Quart, olga: Account, edith: Account
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
        await people.change_role(edith.id, Role.VIEWER, by=person(olga))
        is_taken.set()
    assert len(late) == 8 * 5
    assert set(late) <= {401, 403}
