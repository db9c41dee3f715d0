"""Attacks on sessions: fixation, replay, and cookies made of something else."""

from collections.abc import Awaitable, Callable

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
    try_to_sign_in,
)

from portal.accounts import invitations, people
from portal.accounts.permissions import ANYONE
from portal.database.account_models import Account
from portal.database.states import Role
from portal.web.cookies import PLAIN_COOKIE

NEW_PASSWORD = "five brown little geese"


async def is_in(app: Quart, session: str) -> bool:
    """Whether a cookie opens the page of its account."""
    return (await browser(app, session).get("/account")).status_code == 200


async def sign_in(app: Quart, session: str = "") -> Response:
    sender = browser(app, session) if session else Sender(app, OWN_PAGE)
    return await try_to_sign_in(sender, "olga@example.org")


async def use_link(app: Quart, account: Account, session: str, email: str = "") -> Response:
    secret = await invitations.offer_password(account.id, by=person(account))
    form = {"email": email, "password": NEW_PASSWORD}
    return await browser(app, session).post(f"/welcome/{secret}", form=form)


async def change_password(app: Quart, account: Account, session: str) -> Response:
    form = {"current": PASSWORD, "password": NEW_PASSWORD}
    return await browser(app, session).post("/account/password", form=form)


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
