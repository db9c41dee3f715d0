"""Attacks on single sign-on: forged tokens, mixed-up browsers, replays, redirects, and a provider
that is away or lies. Each has a control: the same way without the attack lets in.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from quart import Quart, Response
from running_portal import free_port
from signed_in import (
    Sender,
    session_in,
    text_of,
    try_to_sign_in,
)
from single_sign_on import (
    CALLBACK,
    LEAVE,
    Visitor,
    approved,
    is_signed_in,
    query_of,
    with_provider,
)
from small_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    SmallProvider,
    new_key,
    small_provider,
    unsigned,
)

from portal.accounts.oidc import KEYS_AGAIN_S
from portal.database.account_models import Account
from portal.web.cookies import SIGN_ON

CLIENT: dict[str, Any] = {"oidc_client_id": CLIENT_ID, "oidc_client_secret": CLIENT_SECRET}


@pytest.fixture
async def provider(olga: Account) -> AsyncIterator[SmallProvider]:
    """One at which the owner signs in."""
    async with small_provider() as provider:
        provider.person = {"sub": "olga", "email": olga.email, "email_verified": True}
        yield provider


@pytest.fixture
async def site(app: Quart, provider: SmallProvider) -> AsyncIterator[Quart]:
    """The app with that provider."""
    async with with_provider(app, provider.issuer, **CLIENT) as app:
        yield app


def clock_of(site: Quart, *, ahead_s: float = 0) -> None:
    """Set the time for what is kept of the provider; it stands still."""
    provider, now_s = site.extensions["portal"].provider, monotonic() + ahead_s
    for kept in (provider._metadata, provider._keys):
        kept._clock = lambda: now_s


async def is_refused(answer: Response, *, status: int = 403) -> bool:
    """Whether nobody was signed in, by a page that leads on and has no trace of a program."""
    text = await text_of(answer)
    assert "Traceback" not in text
    assert 'action="/sign-in"' in text
    return answer.status_code == status and not session_in(answer)


async def test_state_has_to_be_of_this_browser(site: Quart, provider: SmallProvider) -> None:
    """Login CSRF: the attacker's own answer, opened in a victim's browser that has begun nothing,
    or something else; and eight states that are none.
    """
    mallory, victim, idle = Visitor(site), Visitor(site), Visitor(site)
    back = await approved(await mallory.leave())
    own = await approved(await victim.leave())
    assert await is_refused(await idle.come_back(back), status=400)
    assert await is_refused(await victim.come_back(back), status=400)
    code = query_of(own)["code"]
    state = query_of(own)["state"]
    for wrong in ("", "x", state[:-1], state + "x", state.swapcase(), "\0", "é", state[::-1]):
        query = urlencode({"state": wrong, "code": code})
        assert await is_refused(await victim.get(f"{CALLBACK}?{query}"), status=400), wrong
    assert await is_refused(await victim.get(f"{CALLBACK}?code={code}"), status=400)
    # None of that has used up what the two have begun, nor asked the provider for anything.
    assert provider.asked["token"] == 0
    assert is_signed_in(await victim.come_back(own))
    assert is_signed_in(await mallory.come_back(back))


async def test_answer_works_once(site: Quart, provider: SmallProvider) -> None:
    """Sent again with and without the cookie, with a new code, and twenty times at once."""
    visitor = Visitor(site)
    back = await approved(await visitor.leave())
    cookie = visitor.sign_on
    assert is_signed_in(await visitor.come_back(back))
    for _ in range(2):
        assert await is_refused(await visitor.come_back(back), status=400)
        visitor.cookies[SIGN_ON.plain_name] = cookie
    again = await approved(await Visitor(site).leave())
    mixed = urlencode({"state": query_of(back)["state"], "code": query_of(again)["code"]})
    assert await is_refused(await visitor.get(f"{CALLBACK}?{mixed}"), status=400)
    assert provider.asked["token"] == 1

    other = Visitor(site)
    back = await approved(await other.leave())
    cookies = dict(other.cookies)
    crowd = [Visitor(site) for _ in range(20)]
    for each in crowd:
        each.cookies = dict(cookies)
    answers = await asyncio.gather(*(it.come_back(back) for it in crowd))
    assert sorted(it.status_code for it in answers) == [303] + [400] * 19
    assert provider.asked["token"] == 2


async def test_nothing_leads_to_another_site(site: Quart) -> None:
    """As at the form of the portal, whose test has all spellings."""
    for path in ("https://evil.example/", "//evil.example", "/\\evil.example"):
        answer = await Visitor(site).sign_in(next_path=path)
        assert answer.headers.getlist("Location") == ["/"], path


async def test_answer_goes_to_the_portals_own_address_whatever_the_request_says(
    site: Quart,
) -> None:
    """Four headers and six parameters that would have the code sent elsewhere."""
    evil = "https://evil.example/sign-in/oidc/callback"
    headers = {
        "X-Forwarded-Host": "evil.example",
        "Forwarded": "host=evil.example",
        "X-Original-URL": evil,
        "Referer": evil,
    }
    names = ("redirect_uri", "state", "client_id", "nonce", "scope", "response_mode")
    query = urlencode(dict.fromkeys(names, evil))
    answer = await Sender(site, headers).get(f"{LEAVE}?{query}")
    assert "evil" not in answer.headers["Location"]
    sent = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert sent["redirect_uri"] == [site.extensions["portal"].config.public_url + CALLBACK]


async def test_userinfo_of_someone_else_is_refused(site: Quart, provider: SmallProvider) -> None:
    """Where the ID token is short the rest comes from there: of the same person alone."""
    provider.in_token = False
    provider.userinfo_subject = "mallory"
    assert await is_refused(await Visitor(site).sign_in())
    provider.userinfo_subject = ""
    assert is_signed_in(await Visitor(site).sign_in())
    assert provider.asked["userinfo"] == 2


async def test_keys_that_change_are_asked_for_again_but_not_all_the_time(
    site: Quart, provider: SmallProvider
) -> None:
    """A rotation lets in; ten tokens of unknown keys ask twice at most."""
    assert is_signed_in(await Visitor(site).sign_in())
    provider.key = new_key("second")
    assert await is_refused(await Visitor(site).sign_in()), "the keys are seconds old"
    clock_of(site, ahead_s=KEYS_AGAIN_S + 1)
    assert is_signed_in(await Visitor(site).sign_in())
    assert provider.asked["keys"] == 2

    stranger = new_key("unknown")
    provider.forge = lambda it, claims: it.signed(claims, stranger)
    clock_of(site, ahead_s=2 * KEYS_AGAIN_S + 2)
    for _ in range(10):
        assert await is_refused(await Visitor(site).sign_in())
    assert provider.asked["keys"] == 3
    provider.forge = None
    assert is_signed_in(await Visitor(site).sign_in())


async def test_provider_that_is_away_leaves_the_password(
    app: Quart, olga: Account, caplog: pytest.LogCaptureFixture
) -> None:
    async with with_provider(app, f"http://127.0.0.1:{free_port()}", **CLIENT) as site:
        answer = await Visitor(site).get(f"{LEAVE}?next=/upload")
        assert await is_refused(answer, status=503)
        text = await text_of(answer)
        assert "Single sign-on is not reachable at the moment" in text
        assert 'value="/upload"' in text, "and goes on from there"
        assert answer.headers["Retry-After"] == "5"
        assert session_in(await try_to_sign_in(Sender(site), olga.email))
    assert "provider_unavailable" in {getattr(it, "action", "") for it in caplog.records}


async def test_secrets_are_told_nowhere(
    site: Quart, provider: SmallProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """Codes, states, nonces, cookies, tokens and the client's secret, at the most talkative level
    of logging, with and without success; and no cache may keep an answer.
    """
    caplog.set_level(logging.DEBUG)
    hidden = {CLIENT_SECRET, "refused-5ec7e7"}
    visitor = Visitor(site)
    left = await visitor.get(LEAVE)
    sent = query_of(left.headers["Location"])
    hidden |= {sent["state"], sent["nonce"], visitor.sign_on}
    back = await approved(left.headers["Location"])
    hidden.add(query_of(back)["code"])
    answers = [await visitor.come_back(back), await visitor.come_back(back)]
    answers.append(await Visitor(site).get(f"{CALLBACK}?state=refused-5ec7e7&code=refused-5ec7e7"))
    hidden |= {session_in(answers[0]), *provider.tokens, provider.sent[0]["code_verifier"]}
    provider.forge = lambda it, claims: unsigned({"alg": "none"}, claims)
    answers.append(await Visitor(site).sign_in())
    hidden |= {it["code_verifier"] for it in provider.sent} | set(provider.tokens)
    assert [it.status_code for it in answers] == [303, 400, 400, 403]
    own = "portal", "aiohttp.client", "quart"
    own_log = [it for it in caplog.records if it.name.startswith(own)]
    told = "".join(f"{it.getMessage()}{it.__dict__}" for it in own_log)
    assert CALLBACK in told
    pages = "".join([await text_of(it) for it in answers])
    for secret in hidden - {""}:
        assert secret not in told
        assert secret not in pages
    for answer in (left, *answers):
        assert "no-store" in answer.headers["Cache-Control"]
