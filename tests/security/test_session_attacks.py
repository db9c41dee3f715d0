"""Attacks on the cookie of a session: fixation, and reading it from elsewhere."""

from quart import Quart, Response
from signed_in import (
    OWN_PAGE,
    Sender,
    browser,
    person_of,
    session_in,
    session_of,
    try_to_sign_in,
)

from portal.database.account_models import Account
from portal.web.cookies import PLAIN_COOKIE


async def is_in(app: Quart, session: str) -> bool:
    """Whether a cookie opens the page of its account."""
    return (await browser(app, session).get("/account")).status_code == 200


async def sign_in(app: Quart, session: str = "") -> Response:
    sender = browser(app, session) if session else Sender(app, OWN_PAGE)
    return await try_to_sign_in(sender, "olga@example.org")


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
