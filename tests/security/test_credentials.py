"""Attacks that aim at more power: by tokens and sessions, by being quicker than a change, by
setting up a portal, and over what is another's (IDOR).
"""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from api_client import answered, metadata, problem, put
from quart import Quart
from signed_in import (
    PASSWORD,
    Sender,
    browser,
    make_account,
    person,
    person_of,
    program,
    program_of,
    session_in,
    session_of,
    signed_in,
    token_of,
    try_to_sign_in,
)

from portal.accounts import people
from portal.accounts.permissions import ANYONE
from portal.accounts.tokens import TOKEN_PREFIX
from portal.database.account_models import Account, ApiToken, Role, Scope
from portal.database.models import Video
from portal.storage.objects import upload_id

UPLOAD = {"fileName": "a.mp4", "contentType": "video/mp4"}


@pytest.fixture
async def mallory(olga: Account) -> Account:
    """Another editor, who attacks."""
    return await make_account("mallory", Role.EDITOR)


async def presign(sender: Sender, **more: Any) -> int:
    return (await sender.post("/api/videos/presign", json=UPLOAD, **more)).status_code


async def test_token_counts_in_its_own_header_alone(app: Quart, olga: Account) -> None:
    """Not as a cookie, in the address, in the body, or by other schemes and headers."""
    token = await token_of(olga)
    assert (await browser(app, token).get("/account")).status_code == 303
    for name in ("token", "access_token", "Authorization"):
        path = f"/api/videos/presign?{name}={token}"
        assert (await Sender(app).post(path, json=UPLOAD)).status_code == 401
        answer = await Sender(app).post("/api/videos/presign", form={name: token})
        assert answer.status_code == 401
    for value in (f"Basic {token}", f"Token {token}", token, f"Bearer{token}"):
        assert await presign(Sender(app, {"Authorization": value})) == 401, value
    assert await presign(Sender(app, {"X-API-Key": token})) == 401


async def test_wrong_token_is_not_made_good_by_a_session(app: Quart, olga: Account) -> None:
    sender = await signed_in(app, olga)
    wrong = {"Authorization": f"Bearer {TOKEN_PREFIX}wrong"}
    assert await presign(sender, headers=wrong) == 401
    reading = {"Authorization": f"Bearer {await token_of(olga, [Scope.READ])}"}
    assert await presign(sender, headers=reading) == 403
    assert await presign(sender) == 200


async def test_cookie_from_before_signing_in_is_void_after_it(
    app: Quart, olga: Account, mallory: Account
) -> None:
    """Fixation with a session that works: the attacker's own, and the victim's earlier one."""
    for account in (mallory, olga):
        before = await session_of(account)
        after = session_in(await try_to_sign_in(browser(app, before), olga.email))
        assert after not in ("", before)
        assert await person_of(before) == ANYONE
        assert (await person_of(after)).account_id == olga.id


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("198.51.100.7", {"Host": "localhost"}),
        ("198.51.100.7", {"Host": "127.0.0.1:8000", "X-Forwarded-For": "127.0.0.1"}),
        ("127.0.0.1", {"Host": "portal.local"}),
        *(
            ("127.0.0.1", {"Host": "localhost", name: value})
            for name, value in (
                ("X-Forwarded-For", ""),
                ("Forwarded", "for=198.51.100.7"),
                ("X-Real-IP", "198.51.100.7"),
                ("X-Forwarded-Host", "portal.example"),
            )
        ),
    ],
)
async def test_portal_is_set_up_from_the_machine_itself_alone(
    app: Quart, address: str, headers: dict[str, str]
) -> None:
    form = {"email": "mallory@example.org", "password": PASSWORD}
    sender = Sender(app, headers, address)
    assert (await sender.post("/set-up", form=form)).status_code == 404
    assert not await Account.exists()


async def test_no_request_is_let_through_that_begins_after_the_change(
    app: Quart, olga: Account, edith: Account
) -> None:
    """Of browsers and programs that ask without a pause, before and after it."""
    senders = [browser(app, await session_of(edith)), program(app, await token_of(edith))] * 2
    enough, is_taken = asyncio.Event(), asyncio.Event()
    early, late = list[int](), list[int]()

    async def ask(sender: Sender) -> None:
        while not is_taken.is_set():
            early.append(await presign(sender))
            if len(early) >= 20:
                enough.set()
        late.append(await presign(sender))

    async with asyncio.TaskGroup() as group:
        for sender in senders:
            group.create_task(ask(sender))
        await enough.wait()
        await people.change_role(edith.id, Role.VIEWER, by=person(olga))
        is_taken.set()
    assert 200 in early
    assert late == [403] * 4


async def test_anothers_uploaded_file_can_not_be_published(
    app: Quart, edith: Account, mallory: Account
) -> None:
    owner, attacker = program(app, await token_of(edith)), program(app, await token_of(mallory))
    upload = await answered(await owner.post("/api/videos/presign", json=UPLOAD))
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
    begun = [
        await attacker.post("/api/uploads", json={"key": key, "sizeBytes": 10_000_000})
        for key in (upload["key"], f"videos/{uuid4().hex}.mp4")
    ]
    told, other = [await problem(it, 404, "upload_not_issued") for it in begun]
    assert told == other


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
