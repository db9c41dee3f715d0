"""Attacks on sessions: fixation, replay, and cookies made of something else."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
from quart import Quart, Response
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    person,
    person_of,
    session_in,
    session_of,
    signed_in,
    token_of,
    try_to_sign_in,
)

from portal.accounts import links, people
from portal.accounts.permissions import ANYONE
from portal.accounts.secrets import digest
from portal.database.account_models import Account, Session
from portal.database.states import Role
from portal.web.server.credentials import PLAIN_COOKIE, SECURE_COOKIE

NEW_PASSWORD = "five brown little geese"


async def is_in(app: Quart, session: str) -> bool:
    """Whether a cookie opens the page of its account."""
    return (await browser(app, session).get("/account")).status_code == 200


async def sign_in(app: Quart, session: str = "") -> Response:
    sender = browser(app, session) if session else Sender(app, OWN_PAGE)
    return await try_to_sign_in(sender, "olga@example.org")


async def use_link(app: Quart, account: Account, session: str, email: str = "") -> Response:
    secret = await links.offer_password(account.id, by=person(account))
    form = {"email": email, "password": NEW_PASSWORD}
    return await browser(app, session).post(f"/welcome/{secret}", form=form)


async def change_password(app: Quart, account: Account, session: str) -> Response:
    form = {"current": PASSWORD, "password": NEW_PASSWORD}
    return await browser(app, session).post("/account/password", form=form)


@pytest.mark.parametrize("planted", ["planted", "", "x" * 43, "\t", "a; portal_session=b"])
async def test_planted_cookie_is_never_the_one_after_signing_in(
    app: Quart, olga: Account, planted: str
) -> None:
    """Fixation, with five cookies that an attacker chose: each time another one is set."""
    answer = await sign_in(app, planted)
    given = session_in(answer)
    assert answer.status_code == 303
    assert len(given) == 43
    assert given != planted
    assert await is_in(app, given)
    assert not await is_in(app, planted)


async def test_cookie_from_before_signing_in_is_void_after_it(
    app: Quart, olga: Account, mallory: Account
) -> None:
    """Fixation with a session that works: the attacker's own, and the victim's earlier one."""
    for account in (mallory, olga):
        before = await session_of(account)
        after = session_in(await sign_in(app, before))
        assert after not in ("", before)
        assert not await is_in(app, before)
        assert (await person_of(after)).account_id == olga.id


async def test_failing_to_sign_in_sets_and_ends_nothing(app: Quart, olga: Account) -> None:
    """Once: a session is not taken from who mistypes a password."""
    session = await session_of(olga)
    sender = browser(app, session)
    answer = await try_to_sign_in(sender, "olga@example.org", "wrong")
    assert "Set-Cookie" not in answer.headers
    assert await is_in(app, session)


async def test_another_password_means_another_cookie(app: Quart, olga: Account) -> None:
    """Fixation by the two other ways in: a password that is changed, and a one-time link."""
    session, elsewhere = await session_of(olga), await session_of(olga)
    changed = session_in(await change_password(app, olga, session))
    linked = session_in(await use_link(app, olga, changed))
    assert len({session, elsewhere, changed, linked, ""}) == 5
    works = [await is_in(app, it) for it in (session, elsewhere, changed, linked)]
    assert works == [False, False, False, True]


ENDINGS: dict[str, Callable[[Quart, Account, str], Awaitable[object]]] = {
    "signed out": lambda app, _, session: browser(app, session).post("/sign-out"),
    "signed in anew": lambda app, _, session: sign_in(app, session),
    "password changed": change_password,
    "link used elsewhere": lambda app, account, _: use_link(app, account, "another"),
    "ended from elsewhere": lambda app, account, _: end_others(app, account),
    "ended by its id": lambda app, account, session: end_by_id(app, session),
    "account disabled": lambda _, account, __: set_aside(account),
    "account removed": lambda _, account, __: people.remove(account.id, by=person(account)),
}


async def end_others(app: Quart, account: Account) -> None:
    await (await signed_in(app, account)).post("/account/sessions/end-others")


async def end_by_id(app: Quart, session: str) -> None:
    found = await person_of(session)
    await browser(app, session).post(f"/account/sessions/{found.session_id}/end")


async def set_aside(account: Account) -> None:
    """Disabled, and enabled again."""
    await people.disable(account.id, by=person(account))
    await people.enable(account.id, by=person(account))


@pytest.mark.parametrize("ending", ENDINGS)
async def test_ended_session_can_not_be_replayed(
    app: Quart, olga: Account, adam: Account, ending: str
) -> None:
    """Eight ways to end a session; then its cookie is sent three times to a page and to the API."""
    await people.change_role(adam.id, Role.OWNER, by=person(olga))
    session = await session_of(olga)
    assert await is_in(app, session)
    await ENDINGS[ending](app, olga, session)
    for _ in range(3):
        assert not await is_in(app, session)
        answer = await browser(app, session).post("/api/videos/presign", json={})
        assert answer.status_code == 401
    assert await person_of(session) == ANYONE


async def test_used_and_revoked_links_can_not_be_replayed(app: Quart, olga: Account) -> None:
    """An invitation and a link for a password, used, then sent five times by others at once."""
    invitation = await links.invite(Role.ADMIN, by=person(olga))
    offer = await links.offer_password(olga.id, by=person(olga))
    for number, secret in enumerate((invitation, offer)):
        form = {"email": f"{number}@example.org", "password": NEW_PASSWORD}
        assert (await Sender(app).post(f"/welcome/{secret}", form=form)).status_code == 303
    before = {it.id: it.password_hash for it in await Account.all()}
    for secret in (invitation, offer):
        form = {"email": "mallory@example.org", "password": "six red angry mice"}
        again = (Sender(app).post(f"/welcome/{secret}", form=form) for _ in range(5))
        for answer in await asyncio.gather(*again):
            assert answer.status_code == 404
            assert "Set-Cookie" not in answer.headers
        assert (await Sender(app).get(f"/welcome/{secret}")).status_code == 404
    assert {it.id: it.password_hash for it in await Account.all()} == before


async def test_invitation_sent_by_many_at_once_makes_one_account(app: Quart, olga: Account) -> None:
    """Ten at once over HTTP, each for another address."""
    secret = await links.invite(Role.EDITOR, by=person(olga))
    forms = ({"email": f"{it}@example.org", "password": NEW_PASSWORD} for it in range(10))
    answers = await asyncio.gather(
        *(Sender(app).post(f"/welcome/{secret}", form=form) for form in forms)
    )
    assert sorted(it.status_code for it in answers) == [303, *[404] * 9]
    assert await Account.all().count() == 2


async def test_what_is_like_a_session_opens_nothing(app: Quart, olga: Account) -> None:
    """Fourteen cookies that are nearly a session's: cut, changed, its digest, a token, an id."""
    session = await session_of(olga)
    kept = await Session.get(digest=digest(session))
    link = await links.offer_password(olga.id, by=person(olga))
    forged = [
        *(session[:-1], session[1:], session + "A", session + "=", session.swapcase()),
        *(session.upper(), session[::-1], kept.digest, str(kept.id), str(olga.id), olga.email),
        *(await token_of(olga), link, digest(link)),
    ]
    assert len(forged) == 14
    for cookie in forged:
        assert not await is_in(app, cookie), cookie
        answer = await browser(app, cookie).post("/api/videos/presign", json={})
        assert answer.status_code == 401, cookie
    assert await is_in(app, session)


async def test_cookie_under_another_name_is_none(app: Quart, olga: Account) -> None:
    """A session's secret under six other names, that of a portal behind https among them."""
    session = await session_of(olga)
    names = [
        *(SECURE_COOKIE, PLAIN_COOKIE.upper(), PLAIN_COOKIE + "s", f"x{PLAIN_COOKIE}"),
        *("session", f"__Secure-{PLAIN_COOKIE}"),
    ]
    for name in names:
        sender = Sender(app, {"Cookie": f"{name}={session}", **OWN_PAGE})
        assert (await sender.get("/account")).status_code == 303, name


async def test_cookie_is_out_of_reach_of_scripts_and_other_sites(app: Quart, olga: Account) -> None:
    """Once: what is set, and what takes it away again."""
    answer = await sign_in(app)
    [cookie] = answer.headers.getlist("Set-Cookie")
    words = {word.strip() for word in cookie.split(";")}
    assert {"HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=2592000"} <= words
    assert not any(word.lower().startswith("domain") for word in words)
    out = await browser(app, session_in(answer)).post("/sign-out")
    [cookie] = out.headers.getlist("Set-Cookie")
    assert f"{PLAIN_COOKIE}=;" in cookie
    assert "Max-Age=0" in cookie


async def test_sessions_id_is_no_secret_and_opens_nothing(app: Quart, olga: Account) -> None:
    """The id that the page shows, in five spellings, as a cookie and as a token."""
    session = await session_of(olga)
    found: UUID | None = (await person_of(session)).session_id
    assert found
    for spelling in (str(found), found.hex, found.urn, str(found).upper(), f"{{{found}}}"):
        assert not await is_in(app, spelling)
        bearer = Sender(app, {"Authorization": f"Bearer {spelling}"})
        assert (await bearer.get("/api/uploads/none")).status_code == 401
