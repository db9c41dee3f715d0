"""Attacks that aim at more power: by setting up a portal, by being quicker
than a change, and over what is another's (IDOR).
"""

import asyncio
from uuid import uuid4

import pytest
from api_client import answered, metadata, problem, put
from quart import Quart
from signed_in import (
    Sender,
    browser,
    person,
    person_of,
    program,
    program_of,
    session_of,
    signed_in,
    token_of,
)

from portal.accounts import people
from portal.accounts.permissions import ANYONE
from portal.database.account_models import Account, ApiToken, Role
from portal.database.models import Video
from portal.storage.objects import upload_id

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


async def test_anothers_uploaded_file_can_not_be_published(
    app: Quart, edith: Account, mallory: Account
) -> None:
    """A file that lies in storage; the call is sent with its key, and with its key and video."""
    owner, attacker = program(app, await token_of(edith)), program(app, await token_of(mallory))
    upload = await answered(
        await owner.post(
            "/api/videos/presign", json={"fileName": "a.mp4", "contentType": "video/mp4"}
        )
    )
    assert await put(upload["uploadUrl"], b"a video") == 200
    body = metadata(upload["key"])
    stolen = await attacker.post("/api/videos", json=body)
    told = await problem(stolen, 422, "validation_failed")
    assert [it["pointer"] for it in told["errors"]] == ["/key"]
    record = await answered(await owner.post("/api/videos", json=body), 201)
    # Not even what a repetition would be told.
    await problem(await attacker.post("/api/videos", json=body), 422, "validation_failed")
    assert (await Video.get(id=record["id"])).owner_id == edith.id
    own = f"/api/uploads/{upload_id(upload['key'])}"
    await problem(await attacker.get(own), 404, "upload_not_issued")
    # Word for word as to a key that was never given out.
    told = []
    for key in (upload["key"], f"videos/{uuid4().hex}.mp4"):
        begun = await attacker.post("/api/uploads", json={"key": key, "sizeBytes": 10_000_000})
        told.append(await problem(begun, 404, "upload_not_issued"))
    assert told[0] == told[1]


async def test_anothers_sessions_and_tokens_can_not_be_ended(
    app: Quart, edith: Account, mallory: Account
) -> None:
    """By the forms with their ids; one's own are ended by the same."""
    session, token = await session_of(edith), await token_of(edith)
    session_id, token_id = (await person_of(session)).session_id, (await ApiToken.get()).id
    for account, is_ended in ((mallory, False), (edith, True)):
        sender = await signed_in(app, account)
        for path in (f"sessions/{session_id}/end", f"tokens/{token_id}/revoke"):
            assert (await sender.post(f"/account/{path}")).status_code == 303
        assert (await person_of(session) == ANYONE) is is_ended
        assert (await program_of(token) == ANYONE) is is_ended
