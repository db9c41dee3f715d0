"""Attacks with credentials: tokens in other places, beside a session, and planted sessions."""

from typing import Any

from quart import Quart
from signed_in import (
    Sender,
    browser,
    person_of,
    session_in,
    session_of,
    signed_in,
    token_of,
    try_to_sign_in,
)

from portal.accounts.permissions import ANYONE
from portal.accounts.tokens import TOKEN_PREFIX
from portal.database.account_models import Account, Scope

UPLOAD = {"fileName": "a.mp4", "contentType": "video/mp4"}


async def presign(sender: Sender, **more: Any) -> int:
    return (await sender.post("/api/videos/presign", json=UPLOAD, **more)).status_code


async def test_token_counts_in_its_own_header_alone(app: Quart, olga: Account) -> None:
    """A token as a cookie, in the address, in the body, and by seven other schemes and headers."""
    token = await token_of(olga)
    assert (await browser(app, token).get("/account")).status_code == 303
    nobody = Sender(app)
    for name in ("token", "access_token", "api_key", "Authorization"):
        path = f"/api/videos/presign?{name}={token}"
        assert (await nobody.post(path, json=UPLOAD)).status_code == 401
        form = {name: token}
        assert (await nobody.post("/api/videos/presign", form=form)).status_code == 401
    for value in (f"Basic {token}", f"Token {token}", token, f"Bearer{token}", f"Digest {token}"):
        assert await presign(Sender(app, {"Authorization": value})) == 401, value
    for name in ("X-API-Key", "X-Authorization"):
        assert await presign(Sender(app, {name: f"Bearer {token}"})) == 401, name


async def test_wrong_token_is_not_made_good_by_a_session(app: Quart, olga: Account) -> None:
    """Both sent at once, twice: a token counts, and a session does not stand in for it."""
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
