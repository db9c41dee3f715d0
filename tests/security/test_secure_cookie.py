"""The session cookie behind https, which other hosts can't set (RFC 6265bis, 4.1.3.2)."""

import pytest
from quart import Quart
from signed_in import OWN_PAGE, Sender, person_of, session_of, try_to_sign_in

from portal.database.account_models import Account
from portal.http.cookies import PLAIN_COOKIE, SECURE_COOKIE

AT_HOME = {"Host": "portal.example", **OWN_PAGE}
pytestmark = pytest.mark.shared_app(public_url="https://portal.example")


def with_cookie(app: Quart, cookie: str) -> Sender:
    return Sender(app, {**AT_HOME, "Cookie": cookie})


async def test_cookie_is_limited_to_this_host_and_https(app: Quart, olga: Account) -> None:
    answer = await try_to_sign_in(Sender(app, AT_HOME), olga.email)
    [cookie] = answer.headers.getlist("Set-Cookie")
    pair, *words = (word.strip() for word in cookie.split(";"))
    assert pair.startswith(f"{SECURE_COOKIE}=")
    # The portal ends unused sessions itself, so the cookie lasts longer (400 days).
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax", "Max-Age=34560000"} <= set(words)
    assert not any(word.lower().startswith("domain") for word in words)
    assert (await with_cookie(app, pair).get("/account")).status_code == 200
    out = await with_cookie(app, pair).post("/sign-out")
    [cleared] = out.headers.getlist("Set-Cookie")
    assert cleared.startswith(f"{SECURE_COOKIE}=;")
    assert {"Secure", "Path=/", "Max-Age=0"} <= {word.strip() for word in cleared.split(";")}
    assert (await with_cookie(app, pair).get("/account")).status_code == 303


async def test_cookie_from_plain_http_or_another_host_is_ignored(app: Quart, olga: Account) -> None:
    """A planted valid session signs nobody in, under other names or beside the real cookie."""
    planted = await session_of(olga)
    own = await session_of(olga)
    for name in (PLAIN_COOKIE, "__Secure-portal", SECURE_COOKIE.upper()):
        sender = with_cookie(app, f"{name}={planted}")
        assert (await sender.get("/account")).status_code == 303, name
        both = with_cookie(app, f"{name}=x; {SECURE_COOKIE}={own}")
        assert (await both.get("/account")).status_code == 200, name
    await with_cookie(app, f"{PLAIN_COOKIE}={planted}").post("/sign-out")
    assert (await person_of(planted)).is_signed_in
