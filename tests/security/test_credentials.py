"""Escalation of privileges by tokens, sessions, the set-up form and other accounts' objects (IDOR).

Also guesses of passwords and of addresses that have an account.
"""

import re
from typing import Any
from uuid import uuid4

import pytest
from api_client import answered, metadata, problem, put
from quart import Quart, Response
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    make_account,
    person,
    person_of,
    program,
    renew_failures,
    session_in,
    session_of,
    signed_in,
    text_of,
    token_of,
    try_to_sign_in,
)

from portal.accounts import invitations, people
from portal.accounts.permissions import ANYONE
from portal.accounts.sessions import FREE_TRIES_OF_ACCOUNT
from portal.accounts.tokens import TOKEN_PREFIX
from portal.accounts.tries import FREE_TRIES_OF_ADDRESS
from portal.database.account_models import Account, Role, Scope
from portal.database.models import Video

ATTACKER = "203.0.113.66"
WRONG = "five brown little geese"
UPLOAD = {"fileName": "a.mp4", "contentType": "video/mp4"}


@pytest.fixture
async def mallory(olga: Account) -> Account:
    """Insert another editor, the attacker."""
    return await make_account("mallory", Role.EDITOR)


async def presign(sender: Sender, **more: Any) -> int:
    return (await sender.post("/api/videos/presign", json=UPLOAD, **more)).status_code


async def test_token_counts_in_the_authorization_header_only(app: Quart, olga: Account) -> None:
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


async def test_session_does_not_replace_a_refused_token(app: Quart, olga: Account) -> None:
    sender = await signed_in(app, olga)
    wrong = {"Authorization": f"Bearer {TOKEN_PREFIX}wrong"}
    assert await presign(sender, headers=wrong) == 401
    reading = {"Authorization": f"Bearer {await token_of(olga, [Scope.READ])}"}
    assert await presign(sender, headers=reading) == 403
    assert await presign(sender) == 200


async def test_signing_in_ends_the_session_of_the_earlier_cookie(
    app: Quart, olga: Account, mallory: Account
) -> None:
    """Session fixation with a valid session: the attacker's own, and the victim's earlier one."""
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
async def test_portal_is_set_up_from_the_local_machine_only(
    app: Quart, address: str, headers: dict[str, str]
) -> None:
    form = {"email": "mallory@example.org", "password": PASSWORD}
    sender = Sender(app, headers, address)
    assert (await sender.post("/set-up", form=form)).status_code == 404
    assert not await Account.exists()


async def test_uploaded_file_of_another_account_can_not_be_published(
    app: Quart, edith: Account, mallory: Account
) -> None:
    owner = program(app, await token_of(edith))
    attacker = program(app, await token_of(mallory))
    upload = await answered(await owner.post("/api/videos/presign", json=UPLOAD))
    assert await put(upload["uploadUrl"], b"a video") == 200
    body = metadata(upload["key"])
    stolen = await attacker.post("/api/videos", json=body)
    refusal = await problem(stolen, 422, "validation_failed")
    assert [fault["pointer"] for fault in refusal["errors"]] == ["/key"]
    record = await answered(await owner.post("/api/videos", json=body), 201)
    # The response to a repetition is for the owner only.
    await problem(await attacker.post("/api/videos", json=body), 422, "validation_failed")
    assert (await Video.get(id=record["id"])).owner_id == edith.id
    address = f"/api/uploads/{upload['key'][7:39]}"
    await problem(await attacker.get(address), 404, "upload_not_issued")
    # The refusal is the same as for a key that was never issued.
    responses = [
        await attacker.post("/api/uploads", json={"key": key, "sizeBytes": 10_000_000})
        for key in (upload["key"], f"videos/{uuid4().hex}.mp4")
    ]
    existing, unknown = [
        await problem(response, 404, "upload_not_issued") for response in responses
    ]
    assert existing == unknown


@pytest.mark.parametrize(
    ("address", "free"), [(ADDRESS, FREE_TRIES_OF_ADDRESS), (ATTACKER, FREE_TRIES_OF_ACCOUNT)]
)
async def test_guesses_in_a_signed_in_browser_are_limited(
    app: Quart, olga: Account, address: str, free: int
) -> None:
    """The attacker has a borrowed browser, or a stolen cookie, and uses the password form."""
    sender = browser(app, await session_of(olga), address=address)
    for number in range(free + 3):
        form = {"current": f"guess {number} of many", "password": "x"}
        await renew_failures()
        answer = await sender.post("/account/password", form=form)
        assert answer.status_code == (422 if number < free else 429)
    assert (await Account.get(id=olga.id)).password_hash == olga.password_hash


async def anatomy(answer: Response, *sent_texts: str) -> tuple[int, list[tuple[str, str]], str]:
    """Return status, headers and body of a response, without values of the single request."""
    varying = {"x-request-id", "date", "content-length"}
    headers = [pair for pair in answer.headers if pair[0].lower() not in varying]
    body = await text_of(answer)
    for text in sent_texts:
        body = body.replace(text, "…")
    return answer.status_code, headers, re.sub(r"<code>[0-9a-f]{32}</code>", "", body)


async def test_refusals_to_sign_in_are_all_alike(app: Quart, olga: Account) -> None:
    """Refusals and waiting times don't depend on whether the account exists."""
    kinds = {name: f"{name}@example.org" for name in ("disabled", "invited", "account", "unknown")}
    disabled = await make_account("disabled", Role.EDITOR)
    await people.disable(disabled.id, by=person(olga))
    await make_account("invited", Role.EDITOR, has_password=False)
    await make_account("account", Role.EDITOR)
    for number in range(8):
        refusals = []
        for kind, email in kinds.items():
            password = WRONG if kind == "account" else PASSWORD
            sender = Sender(app, OWN_PAGE, f"192.0.2.{number}")
            await renew_failures()
            response = await try_to_sign_in(sender, email, password)
            refusals.append(await anatomy(response, email))
        assert refusals[0][0] == (422 if number < FREE_TRIES_OF_ACCOUNT else 429)
        assert all(refusal == refusals[0] for refusal in refusals)


async def test_refusals_of_void_links_are_all_alike(app: Quart, olga: Account) -> None:
    invited = await people.add("invited@example.org", Role.EDITOR)
    disabled = await invitations.offer_password(invited.id, by=person(olga))
    await people.disable(invited.id, by=person(olga))
    used = await invitations.invite(Role.VIEWER, by=person(olga))
    form = {"email": "new@example.org", "password": WRONG}
    assert (await Sender(app).post(f"/welcome/{used}", form=form)).status_code == 303
    for method in ("GET", "POST"):
        refusals = [
            await anatomy(await Sender(app).ask(method, f"/welcome/{secret}"), secret)
            for secret in (disabled, used, "x" * 43)
        ]
        assert refusals[0][0] == 404
        assert all(refusal == refusals[0] for refusal in refusals)
