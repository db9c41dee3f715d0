"""Attacks that aim at more power: by scopes, forms, links, and by being quicker than a change."""

import asyncio
from typing import Any

import pytest
from api_client import problem
from quart import Quart, Response
from signed_in import (
    PASSWORD,
    Sender,
    browser,
    make_upload,
    make_video,
    person,
    program,
    program_of,
    send_fields,
    session_of,
    signed_in,
    token_of,
)

from portal.accounts import api_tokens, links, people
from portal.accounts.permissions import ANYONE
from portal.database.account_models import Account, OneTimeLink
from portal.database.models import Video
from portal.database.states import Role, Scope

UPLOAD = {"fileName": "a.mp4", "contentType": "video/mp4"}
NEW_PASSWORD = "five brown little geese"
TO_PEOPLE: dict[str, dict[str, str]] = {
    "role": {"role": "owner"},
    "disable": {},
    "enable": {},
    "reset": {},
    "remove": {},
}


async def dump() -> list[Any]:
    """Everyone's power: accounts with role, state and password, and all links."""
    accounts = (
        await Account.all().order_by("id").values("id", "role", "is_disabled", "password_hash")
    )
    return [*accounts, *await OneTimeLink.all().order_by("id").values("id", "digest", "role")]


async def try_everything_on(sender: Sender, account: Account) -> list[Response]:
    """What the page of people can do to an account, and inviting an owner."""
    answers = [
        await sender.post(f"/people/{account.id}/{change}", form=form)
        for change, form in TO_PEOPLE.items()
    ]
    return [*answers, await sender.post("/people/invitations", form={"role": "owner"})]


async def test_scope_gives_no_role(app: Quart, olga: Account, mallory: Account) -> None:
    """An editor's token with every scope, at six things that admins do and at others' videos."""
    before, video = await dump(), await make_video(olga)
    sender = program(app, await token_of(mallory))
    for answer in await try_everything_on(sender, olga):
        assert answer.status_code == 401
    assert (await sender.get("/people")).headers["Location"].startswith("/sign-in")
    for method, path in (("PUT", "metadata"), ("POST", "transcode"), ("POST", "deletion")):
        answer = await sender.ask(method, f"/api/videos/{video.id}/{path}", json={})
        await problem(answer, 403, "not_allowed")
    assert await dump() == before
    assert await Video.exists(id=video.id)


@pytest.mark.parametrize("role", [Role.EDITOR, Role.VIEWER])
async def test_who_does_not_administer_changes_nobody(
    app: Quart, olga: Account, adam: Account, role: Role
) -> None:
    """Twenty-four forms sent past the page, to an owner, an admin, an editor and to oneself."""
    attacker = await people.add("x@example.org", role)
    victim = await people.add("y@example.org", Role.EDITOR)
    sender, before = await signed_in(app, attacker), await dump()
    for account in (olga, adam, victim, attacker):
        for answer in await try_everything_on(sender, account):
            assert answer.status_code == 403
    assert await dump() == before


async def test_admin_can_not_touch_owners_or_make_any(
    app: Quart, olga: Account, adam: Account, edith: Account
) -> None:
    """Six forms aimed at an owner, and two more that would make one."""
    sender, before = await signed_in(app, adam), await dump()
    for answer in await try_everything_on(sender, olga):
        assert answer.status_code == 403
    for account in (adam, edith):
        answer = await sender.post(f"/people/{account.id}/role", form={"role": "owner"})
        assert answer.status_code == 403
    assert await dump() == before


@pytest.mark.parametrize(
    "role", ["OWNER", "owner ", "owner\0", "Role.OWNER", "", "superuser", "owner,editor", "0", "*"]
)
async def test_role_that_is_none_is_a_fault(
    app: Quart, olga: Account, edith: Account, role: str
) -> None:
    """Nine spellings, for an account and for an invitation."""
    sender, before = await signed_in(app, olga), await dump()
    for path in (f"/people/{edith.id}/role", "/people/invitations"):
        assert (await sender.post(path, form={"role": role})).status_code == 422
    assert await dump() == before


async def test_invitation_gives_its_own_role_whatever_is_sent(app: Quart, olga: Account) -> None:
    """Five fields that the form does not have, with a link for editors."""
    for number, field in enumerate(("role", "Role", "is_admin", "account_id", "id")):
        secret = await links.invite(Role.EDITOR, by=person(olga))
        value = "owner" if "ole" in field else str(olga.id)
        form = {"email": f"{number}@example.org", "password": NEW_PASSWORD, field: value}
        assert (await Sender(app).post(f"/welcome/{secret}", form=form)).status_code == 303
        made = await people.get(form["email"])
        assert made.role is Role.EDITOR
        assert made.id != olga.id


async def test_link_chooses_nobody_elses_password(
    app: Quart, olga: Account, mallory: Account
) -> None:
    """One's own link with an owner's address in four spellings."""
    for email in (olga.email, olga.email.upper(), f" {olga.email}", f"{olga.email}\0"):
        secret = await links.offer_password(mallory.id, by=person(olga))
        form = {"email": email, "password": NEW_PASSWORD}
        assert (await Sender(app).post(f"/welcome/{secret}", form=form)).status_code == 303
        assert (await Account.get(id=olga.id)).password_hash == olga.password_hash
    invitation = await links.invite(Role.EDITOR, by=person(olga))
    form = {"email": f" {olga.email.upper()} ", "password": NEW_PASSWORD}
    assert (await Sender(app).post(f"/welcome/{invitation}", form=form)).status_code == 422
    assert (await Account.get(id=olga.id)).password_hash == olga.password_hash


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
async def test_power_that_is_taken_is_gone_at_the_next_request(
    app: Quart, olga: Account, edith: Account, change: str
) -> None:
    """A session, a token and an upload under way; five requests with each, before and after."""
    session, token = await session_of(edith), await token_of(edith)
    video, upload = await make_video(edith), await make_upload(edith)
    requests = [
        ("POST", "/api/videos/presign"),
        ("GET", f"/api/uploads/{upload}"),
        ("POST", f"/api/uploads/{upload}/parts/1"),
        ("POST", f"/api/uploads/{upload}/complete"),
        ("POST", f"/api/videos/{video.id}/transcode"),
    ]
    senders = (browser(app, session), program(app, token))
    for sender in senders:
        for method, path in requests:
            answer = await sender.ask(method, path)
            assert answer.status_code in (200, 409, 415), path
    await CHANGES[change](edith, person(olga))
    for sender in senders:
        for method, path in requests:
            assert (await sender.ask(method, path)).status_code in (401, 403), path
        assert (await sender.ask("DELETE", f"/api/uploads/{upload}")).status_code in (401, 403)


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


@pytest.mark.parametrize("scopes", [["admin", "owner"], ["*"], [], ["videos:read,admin"]])
async def test_token_form_makes_no_scope_that_is_none(
    app: Quart, mallory: Account, scopes: list[str]
) -> None:
    """Four choices that the form does not offer."""
    sender = await signed_in(app, mallory)
    answer = await send_fields(sender, "/account/tokens", name="x", scopes=scopes)
    assert answer.status_code == 422
    assert await api_tokens.list_tokens(mallory.id) == []


async def test_token_of_a_removed_account_is_nobodys(
    app: Quart, olga: Account, mallory: Account
) -> None:
    """Once, and an account of the same address afterwards does not get it back."""
    token = await token_of(mallory, [Scope.WRITE])
    await people.remove(mallory.id, by=person(olga))
    await people.add(mallory.email, Role.OWNER)
    assert await program_of(token) == ANYONE
    assert (await program(app, token).post("/api/videos/presign", json=UPLOAD)).status_code == 401
