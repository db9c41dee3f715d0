"""Single sign-on over HTTP, with a provider that is honest, mistaken, forged or away."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.cookies import SimpleCookie
from time import monotonic
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from api_client import run_sql
from quart import Quart, Response
from running_portal import free_port
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    make_account,
    person,
    person_of,
    session_in,
    session_of,
    text_of,
    try_to_sign_in,
)
from single_sign_on import CLIENT_ID, CLIENT_SECRET, SmallProvider, new_key, small_provider

from portal.accounts import invitations
from portal.accounts.identities import LIFE_S
from portal.accounts.oidc import KEYS_AGAIN_S, Provider
from portal.database.account_models import Account, Identity, Role, Session, SignOn
from portal.web.cookies import SIGN_ON

LEAVE, CALLBACK = "/sign-in/oidc", "/sign-in/oidc/callback"
pytestmark = pytest.mark.shared_app


@pytest.fixture
async def provider() -> AsyncIterator[SmallProvider]:
    """One at which the owner signs in."""
    async with small_provider() as provider:
        provider.person = claims_of("olga")
        yield provider


@pytest.fixture
async def site(app: Quart, provider: SmallProvider) -> AsyncIterator[Quart]:
    """The app with that provider."""
    async with with_provider(app, provider.issuer) as app:
        yield app


@asynccontextmanager
async def with_provider(app: Quart, issuer: str) -> AsyncIterator[Quart]:
    """That app with single sign-on by this provider."""
    context = app.extensions["portal"]
    client = {"oidc_client_id": CLIENT_ID, "oidc_client_secret": CLIENT_SECRET}
    config = replace(context.config, oidc_issuer=issuer, **client)
    app.extensions["portal"] = replace(context, config=config, provider=Provider(config))
    try:
        yield app
    finally:
        app.extensions["portal"] = context


class Visitor:
    """A browser that follows no link by itself, but keeps the cookie of a sign-in under way."""

    def __init__(self, app: Quart, session: str = "") -> None:
        self.app = app
        self.cookies = {"portal_session": session} if session else {}

    async def get(self, path: str) -> Response:
        """The answer; its cookies are kept."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        # By a link from the provider's page.
        headers = {**OWN_PAGE, "Sec-Fetch-Site": "cross-site", "Cookie": cookie}
        answer = await Sender(self.app, headers).get(path)
        for header in answer.headers.getlist("Set-Cookie"):
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        return answer

    async def leave(self, next_path: str = "/") -> str:
        """The address that the provider leads back to, once the person has signed in there."""
        answer = await self.get(f"{LEAVE}?{urlencode({'next': next_path})}")
        assert answer.status_code == 303, await text_of(answer)
        async with httpx.AsyncClient(timeout=60) as http:
            approved = await http.get(answer.headers["Location"])
        address = urlsplit(approved.headers["Location"])
        assert address.path == CALLBACK
        return f"{address.path}?{address.query}"

    async def sign_in(self, next_path: str = "/") -> Response:
        """Go there, sign in, and come back."""
        return await self.get(await self.leave(next_path))

    @property
    def sign_on(self) -> str:
        """What the cookie of the sign-in under way holds."""
        return self.cookies.get(SIGN_ON.plain_name, "")


def query_of(address: str) -> dict[str, str]:
    """What an address says after its question mark."""
    return {name: value for name, [value] in parse_qs(urlsplit(address).query).items()}


def claims_of(name: str) -> dict[str, object]:
    return {"sub": name, "email": f"{name}@example.org", "email_verified": True}


def is_signed_in(answer: Response) -> bool:
    return answer.status_code == 303 and bool(session_in(answer))


async def refusal(answer: Response, *, status: int = 403) -> str:
    """Why nobody was signed in, by a page that leads on and has no trace of a program."""
    text = await text_of(answer)
    assert (answer.status_code, session_in(answer)) == (status, "")
    assert "Traceback" not in text
    assert 'action="/sign-in"' in text, "a way back to the password"
    assert f'href="{LEAVE}' in text, "and to another try"
    return text


async def test_it_is_offered_where_it_is_set_up_and_there_are_accounts(
    app: Quart, provider: SmallProvider
) -> None:
    form, sender = "/sign-in?next=/upload", Sender(app)
    async with with_provider(app, provider.issuer) as site:
        answer = await Sender(site).get(LEAVE)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/sign-in")
        assert "single sign-on" not in await text_of(await sender.get(form))
        assert await SignOn.all().count() == 0
        await make_account("olga")
        page = await text_of(await sender.get(form))
        assert f'href="{LEAVE}?next=/upload"' in page
        assert 'name="password"' in page
    assert "single sign-on" not in await text_of(await sender.get(form))
    for path in (LEAVE, f"{LEAVE}/callback?state=x&code=y"):
        assert (await sender.get(path)).status_code == 404


async def test_who_has_an_account_signs_in_and_goes_on(
    site: Quart, provider: SmallProvider, edith: Account
) -> None:
    """The session that the browser had ends, as by password."""
    earlier = await session_of(edith)
    visitor = Visitor(site, earlier)
    provider.person = claims_of("edith") | {"email": "Edith@Example.org"}

    answer = await visitor.sign_in("/upload?a=1")

    assert answer.headers["Location"] == "/upload?a=1"
    assert not visitor.sign_on
    found = await person_of(session_in(answer))
    assert (found.account_id, found.role) == (edith.id, Role.EDITOR)
    [identity] = await Identity.all()
    assert (identity.issuer, identity.subject) == (provider.issuer, "edith")
    [session] = await Session.all()
    assert session.address == "198.51.100.7"
    assert session_in(answer) != earlier


async def test_who_is_not_let_in_is_told_why_and_led_on(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """Without an account, where one refuses there, and after more than ten minutes."""
    provider.person = claims_of("new")
    visitor = Visitor(site)
    told = await refusal(await visitor.sign_in())
    assert "new@example.org has no account" in told
    assert visitor.sign_on == ""
    state = query_of(await visitor.leave())["state"]
    denied = await visitor.get(f"{CALLBACK}?error=access_denied&state={state}")
    assert "provider did not sign you in" in await refusal(denied)
    back = await visitor.leave()
    url = site.extensions["portal"].config.database_url
    await run_sql(url, f"UPDATE sign_ons SET expires_at = expires_at - interval '{LIFE_S} s'")
    assert "or has expired. Start again" in await refusal(await visitor.get(back), status=400)


async def test_account_with_an_address_that_nobody_checked_is_bound_from_its_own_page(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    link = await invitations.invite(Role.VIEWER, by=person(olga))
    hasher = site.extensions["portal"].passwords
    vi = await invitations.accept(link, email="vi@example.org", password=PASSWORD, passwords=hasher)
    provider.person = claims_of("vi")
    page = await text_of(await Visitor(site, await session_of(vi)).get("/account"))
    assert f'href="{LEAVE}?next=/account">Connect single sign-on' in page
    answer = await Visitor(site, await session_of(vi)).sign_in("/account")
    assert (await person_of(session_in(answer))).account_id == vi.id
    page = await text_of(await Visitor(site, session_in(answer)).get("/account"))
    assert "Your account is connected" in page


async def test_state_has_to_be_of_this_browser(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """Login CSRF: the attacker's own answer, opened in a victim's browser that has begun nothing,
    or something else; and states that are none.
    """
    mallory, victim, idle = Visitor(site), Visitor(site), Visitor(site)
    back, own = await mallory.leave(), await victim.leave()
    await refusal(await idle.get(back), status=400)
    await refusal(await victim.get(back), status=400)
    state, code = query_of(own)["state"], query_of(own)["code"]
    for wrong in ("", state[:-1], state.swapcase(), "\0", "é"):
        query = urlencode({"state": wrong, "code": code})
        await refusal(await victim.get(f"{CALLBACK}?{query}"), status=400)
    # None of that has used up what the two have begun, nor asked the provider for anything.
    assert provider.request_counts["token"] == 0
    assert is_signed_in(await victim.get(own))
    assert is_signed_in(await mallory.get(back))


async def test_answer_works_once(site: Quart, provider: SmallProvider, olga: Account) -> None:
    """Of eight at once, and sent again with another code."""
    first = Visitor(site)
    back = await first.leave()
    crowd = [Visitor(site) for _ in range(8)]
    for each in crowd:
        each.cookies = dict(first.cookies)
    answers = await asyncio.gather(*(it.get(back) for it in crowd))
    assert sorted(it.status_code for it in answers) == [303] + [400] * 7
    code = query_of(await Visitor(site).leave())["code"]
    mixed = urlencode({"state": query_of(back)["state"], "code": code})
    await refusal(await first.get(f"{CALLBACK}?{mixed}"), status=400)
    assert provider.request_counts["token"] == 1


async def test_nothing_leads_to_another_site(site: Quart, olga: Account) -> None:
    """Neither who comes back nor the code, whatever the request says."""
    answer = await Visitor(site).sign_in("/\\evil.example")
    assert answer.headers.getlist("Location") == ["/"]
    evil = "https://evil.example/sign-in/oidc/callback"
    headers = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    query = urlencode(dict.fromkeys(("redirect_uri", "state", "client_id", "nonce"), evil))
    answer = await Sender(site, headers).get(f"{LEAVE}?{query}")
    assert "evil" not in answer.headers["Location"]
    sent = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert sent["redirect_uri"] == [site.extensions["portal"].config.public_url + CALLBACK]


async def test_forged_token_and_userinfo_of_someone_else_are_refused(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """Where the ID token is short the rest comes from there: of the same person alone."""
    whole = provider.person
    provider.person = whole | {"nonce": "another"}
    await refusal(await Visitor(site).sign_in())
    provider.person = {"sub": "olga"}
    provider.userinfo = whole | {"sub": "mallory"}
    await refusal(await Visitor(site).sign_in())
    provider.userinfo = whole
    assert is_signed_in(await Visitor(site).sign_in())


async def test_keys_that_change_are_asked_for_again_but_not_all_the_time(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """A rotation lets in; ten tokens of unknown keys ask once at most."""
    now_s = monotonic()
    site.extensions["portal"].provider._keys._clock = lambda: now_s
    assert is_signed_in(await Visitor(site).sign_in())
    provider.key = new_key("second")
    await refusal(await Visitor(site).sign_in())
    now_s += KEYS_AGAIN_S + 1
    assert is_signed_in(await Visitor(site).sign_in())
    assert provider.request_counts["keys"] == 2

    provider.forger = new_key("unknown")
    now_s += KEYS_AGAIN_S + 1
    for _ in range(10):
        await refusal(await Visitor(site).sign_in())
    assert provider.request_counts["keys"] == 3


async def test_provider_that_is_away_leaves_the_password(
    app: Quart, olga: Account, caplog: pytest.LogCaptureFixture
) -> None:
    async with with_provider(app, f"http://127.0.0.1:{free_port()}") as site:
        answer = await Visitor(site).get(f"{LEAVE}?next=/upload")
        text = await refusal(answer, status=503)
        assert "Single sign-on is not reachable at the moment" in text
        assert 'value="/upload"' in text, "and goes on from there"
        assert answer.headers["Retry-After"] == "5"
        assert session_in(await try_to_sign_in(Sender(site), olga.email))
    assert "provider_unavailable" in {getattr(it, "action", "") for it in caplog.records}


async def test_secrets_are_told_nowhere(
    site: Quart, provider: SmallProvider, olga: Account, caplog: pytest.LogCaptureFixture
) -> None:
    """At the most talkative level of logging; and no cache may keep an answer."""
    caplog.set_level(logging.DEBUG)
    visitor = Visitor(site)
    left = await visitor.get(LEAVE)
    back = await visitor.leave()
    hidden = {
        visitor.sign_on,
        query_of(left.headers["Location"])["nonce"],
        *query_of(back).values(),
    }
    answers = [await visitor.get(back), await visitor.get(back)]
    answers.append(await Visitor(site).get(f"{CALLBACK}?state=made-up-5ec7e7&code=made-up-5ec7e7"))
    hidden |= {session_in(answers[0]), "made-up-5ec7e7"}
    provider.forger = new_key("unknown")
    answers.append(await Visitor(site).sign_in())
    hidden |= {CLIENT_SECRET, *provider.secrets}
    assert [it.status_code for it in answers] == [303, 400, 400, 403]
    own = ("portal", "aiohttp.client", "quart")
    own_log = [it for it in caplog.records if it.name.startswith(own)]
    told = "".join(f"{it.getMessage()}{it.__dict__}" for it in own_log)
    assert CALLBACK in told
    told += "".join([await text_of(it) for it in answers])
    assert [it for it in hidden if it in told] == []
    assert all("no-store" in it.headers["Cache-Control"] for it in (left, *answers))
