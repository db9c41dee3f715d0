"""Attacks on API tokens: forged, cut, and swapped with other secrets."""

from typing import Any

import pytest
from api_client import problem
from quart import Quart
from signed_in import (
    OWN_PAGE,
    Sender,
    browser,
    person,
    program,
    quick_hash,
    session_of,
    signed_in,
    token_of,
)

from portal.accounts import links
from portal.accounts.secrets import TOKEN_PREFIX, digest
from portal.database.account_models import Account, ApiToken
from portal.database.states import Role, Scope

UPLOAD = {"fileName": "a.mp4", "contentType": "video/mp4"}


async def presign(sender: Sender, **more: Any) -> int:
    return (await sender.post("/api/videos/presign", json=UPLOAD, **more)).status_code


async def test_what_is_like_a_token_is_refused(app: Quart, olga: Account) -> None:
    """Twenty-one bearers that are nearly a token: cut, changed, its digest, other secrets."""
    token, session = await token_of(olga), await session_of(olga)
    bare = token.removeprefix(TOKEN_PREFIX)
    link = await links.invite(Role.OWNER, by=person(olga))
    kept = await ApiToken.get(digest=digest(token))
    forged = [
        *(token[:-1], token + "A", token + "=", token.swapcase(), token.upper(), bare),
        *(TOKEN_PREFIX, TOKEN_PREFIX + TOKEN_PREFIX + bare, TOKEN_PREFIX.upper() + bare),
        *(kept.digest, TOKEN_PREFIX + kept.digest, str(kept.id), TOKEN_PREFIX + str(kept.id)),
        *(session, TOKEN_PREFIX + session, digest(session), link, TOKEN_PREFIX + link),
        *(quick_hash(), "null", token + "," + token),
    ]
    assert len(forged) == 21
    for bearer in forged:
        answer = await program(app, bearer).post("/api/videos/presign", json=UPLOAD)
        await problem(answer, 401, "invalid_token")
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    assert await presign(program(app, token)) == 200


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


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer ", "Bearer  "])
async def test_scheme_may_be_written_in_any_letters(app: Quart, olga: Account, scheme: str) -> None:
    """RFC 9110, section 11.1; six spellings."""
    token = await token_of(olga)
    assert await presign(Sender(app, {"Authorization": f"{scheme} {token}"})) == 200


@pytest.mark.parametrize(
    "value",
    ["", " ", "Bearer", "Bearer ", "Bearer \x80\xff", "Bearer " + "x" * 60_000, "Bearer a b c"],
)
async def test_malformed_header_is_a_refusal_and_no_fault(
    app: Quart, olga: Account, value: str
) -> None:
    """Seven of them, each at a page, a call, and what anyone may see."""
    sender = Sender(app, {"Authorization": value})
    assert await presign(sender) == 401
    for path in ("/", "/upload", "/api/videos/none", "/sign-in", "/healthz"):
        assert (await sender.get(path)).status_code < 500, path


async def test_wrong_token_is_not_made_good_by_a_session(app: Quart, olga: Account) -> None:
    """Both sent at once, twice: a token counts, and a session does not stand in for it."""
    sender = await signed_in(app, olga)
    wrong = {"Authorization": f"Bearer {TOKEN_PREFIX}wrong"}
    assert await presign(sender, headers=wrong) == 401
    reading = {"Authorization": f"Bearer {await token_of(olga, [Scope.READ])}"}
    assert await presign(sender, headers=reading) == 403
    assert await presign(sender) == 200


async def test_token_is_no_person(app: Quart, olga: Account) -> None:
    """An owner's token with every scope, at each page that is for people."""
    sender = Sender(app, {**program(app, await token_of(olga)).headers, **OWN_PAGE})
    rules = [it for it in app.url_map.iter_rules() if it.rule.startswith(("/account", "/people"))]
    assert len(rules) > 12
    for rule in rules:
        path = rule.rule
        for name in rule.arguments:
            path = path.replace(f"<uuid:{name}>", str(olga.id))
        for method in (rule.methods or set()) & {"GET", "POST"}:
            answer = await sender.ask(
                method, path, form={"role": "viewer"} if method == "POST" else {}
            )
            assert answer.status_code in (303, 401), path
            if answer.status_code == 303:
                assert answer.headers["Location"].startswith("/sign-in?"), path
    assert (await Account.get(id=olga.id)).role is Role.OWNER


async def test_revoked_token_stops_at_once(app: Quart, olga: Account) -> None:
    """Revoked in the browser, then sent three times."""
    token = await token_of(olga)
    assert await presign(program(app, token)) == 200
    kept = await ApiToken.get(digest=digest(token))
    await (await signed_in(app, olga)).post(f"/account/tokens/{kept.id}/revoke")
    assert [await presign(program(app, token)) for _ in range(3)] == [401] * 3
