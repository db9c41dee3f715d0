"""Forged requests (CSRF): another site's page has a signed-in browser send something."""

import pytest
from guarded_routes import routes
from quart import Quart
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    make_upload,
    make_video,
    person_of,
    session_in,
    session_of,
    token_of,
    try_to_sign_in,
)

from portal.accounts.permissions import ANYONE
from portal.database.account_models import Account, ApiToken, Role
from portal.database.models import Video
from portal.web.cookies import PLAIN_COOKIE
from portal.web.server.context import SAFE_METHODS

EVIL = "https://evil.example"
# What a browser tells of another site's page, or, an old one, of none.
SENDERS: dict[str, dict[str, str]] = {
    "another site": {"Sec-Fetch-Site": "cross-site", "Origin": EVIL},
    "another host of the site": {"Sec-Fetch-Site": "same-site"},
    "a forged origin": {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    "an odd word": {"Sec-Fetch-Site": "same-origin, cross-site"},
    "an empty word": {"Sec-Fetch-Site": ""},
    "an old browser": {"Origin": EVIL},
    "a sandboxed frame": {"Origin": "null"},
    "another port": {"Origin": "http://localhost:8001"},
    "a name like ours": {"Origin": "http://localhost.evil.example"},
}
# No browser sends a form of another site like these, but neither do they say that it is our own.
SILENT = {"a very old browser": {}, "with a referrer": {"Referer": "http://localhost/"}}


@pytest.mark.parametrize("headers", (SENDERS | SILENT).values(), ids=SENDERS | SILENT)
async def test_signed_in_browser_is_no_tool_of_other_sites(
    app: Quart, olga: Account, edith: Account, headers: dict[str, str]
) -> None:
    """At every one of over thirty unsafe addresses, of things that there are."""
    session = await session_of(olga)
    await token_of(olga)
    video_id, upload = str((await make_video(olga)).id), await make_upload(olga)
    sender = Sender(app, {"Cookie": f"{PLAIN_COOKIE}={session}", **headers})
    unsafe = [it for it in routes(app) if it.method not in SAFE_METHODS]
    assert len(unsafe) > 30
    for route in unsafe:
        thing = upload if route.is_about_upload else video_id
        path = route.path(thing, account_id=str(edith.id))
        answer = await sender.ask(route.method, path, form={"role": "owner"})
        assert answer.status_code == 403, path
        assert "Set-Cookie" not in answer.headers, path
    assert (await person_of(session)).account_id == olga.id
    assert {it.role for it in await Account.all()} == {Role.OWNER, Role.EDITOR}
    assert await Video.all().count() == await ApiToken.all().count() == 1


async def test_nobody_is_signed_in_by_another_site(app: Quart, olga: Account) -> None:
    """Login forgery: an attacker's own password or link, sent by a victim's browser."""
    for headers in SENDERS.values():
        sender = Sender(app, headers)
        for answer in (
            await try_to_sign_in(sender, olga.email),
            await sender.post("/welcome/none", form={"password": PASSWORD}),
            await sender.post("/set-up", form={"email": "x@example.org", "password": PASSWORD}),
        ):
            assert answer.status_code == 403
            assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [OWN_PAGE, {"Sec-Fetch-Site": "none"}, {"Origin": "HTTP://LOCALHOST"}],
    ids=str,
)
async def test_own_pages_work_in_new_and_old_browsers(
    app: Quart, olga: Account, headers: dict[str, str]
) -> None:
    sender = Sender(app, headers)
    session = session_in(await try_to_sign_in(sender, olga.email))
    assert (await person_of(session)).account_id == olga.id
    out = await sender.post("/sign-out", headers={"Cookie": f"{PLAIN_COOKIE}={session}"})
    assert out.status_code == 303
    assert await person_of(session) == ANYONE
