"""Single sign-on over HTTP, with a provider that is honest, wrong, forged or unreachable."""

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

from portal.accounts import groups, invitations
from portal.accounts.identities import LIFE_S
from portal.accounts.oidc import KEYS_AGAIN_S, Provider
from portal.database.account_models import Account, Identity, Role, Session, SignOn
from portal.http.cookies import SIGN_ON

LEAVE = "/sign-in/oidc"
CALLBACK = "/sign-in/oidc/callback"
pytestmark = pytest.mark.shared_app


@pytest.fixture
async def provider() -> AsyncIterator[SmallProvider]:
    """Run a provider at which the owner signs in."""
    async with small_provider() as provider:
        provider.person = claims_of("olga")
        yield provider


@pytest.fixture
async def site(app: Quart, provider: SmallProvider) -> AsyncIterator[Quart]:
    """Return the app with the provider."""
    async with with_provider(app, provider.issuer) as app:
        yield app


@asynccontextmanager
async def with_provider(app: Quart, issuer: str) -> AsyncIterator[Quart]:
    """Configure an app with single sign-on by a provider."""
    context = app.extensions["portal"]
    client = {"oidc_client_id": CLIENT_ID, "oidc_client_secret": CLIENT_SECRET}
    config = replace(context.config, oidc_issuer=issuer, **client)
    app.extensions["portal"] = replace(context, config=config, provider=Provider(config))
    try:
        yield app
    finally:
        app.extensions["portal"] = context


class Visitor:
    """Browser that keeps cookies and follows no redirects."""

    def __init__(self, app: Quart, session: str = "") -> None:
        self.app = app
        self.cookies = {"portal_session": session} if session else {}

    async def get(self, path: str) -> Response:
        """Follow a link from another site; return the response and keep its cookies."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {**OWN_PAGE, "Sec-Fetch-Site": "cross-site", "Cookie": cookie}
        answer = await Sender(self.app, headers).get(path)
        for header in answer.headers.getlist("Set-Cookie"):
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        return answer

    async def leave(self, next_path: str = "/") -> str:
        """Sign in at the provider; return the address to which it redirects back."""
        answer = await self.get(f"{LEAVE}?{urlencode({'next': next_path})}")
        assert answer.status_code == 303, await text_of(answer)
        async with httpx.AsyncClient(timeout=60) as http:
            approved = await http.get(answer.headers["Location"])
        address = urlsplit(approved.headers["Location"])
        assert address.path == CALLBACK
        return f"{address.path}?{address.query}"

    async def sign_in(self, next_path: str = "/") -> Response:
        """Sign in at the provider and open the callback."""
        return await self.get(await self.leave(next_path))

    @property
    def sign_on(self) -> str:
        """Return the cookie of the pending sign-on."""
        return self.cookies.get(SIGN_ON.plain_name, "")


def query_of(address: str) -> dict[str, str]:
    return {name: value for name, [value] in parse_qs(urlsplit(address).query).items()}


def claims_of(name: str) -> dict[str, object]:
    return {"sub": name, "email": f"{name}@example.org", "email_verified": True}


def is_signed_in(answer: Response) -> bool:
    return answer.status_code == 303 and bool(session_in(answer))


async def refusal(answer: Response, *, status: int = 403) -> str:
    """Check the page of a refused sign-in; return its text."""
    text = await text_of(answer)
    assert (answer.status_code, session_in(answer)) == (status, "")
    assert "Traceback" not in text
    assert 'action="/sign-in"' in text, "the password form is missing"
    assert f'href="{LEAVE}' in text, "the link to sign in again is missing"
    return text


async def test_single_sign_on_needs_a_provider_and_an_account(
    app: Quart, provider: SmallProvider
) -> None:
    form = "/sign-in?next=/upload"
    sender = Sender(app)
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


async def test_sign_in_begins_a_session_and_opens_the_next_page(
    site: Quart, provider: SmallProvider, edith: Account
) -> None:
    """The browser's earlier session ends, as with a password."""
    earlier = await session_of(edith)
    visitor = Visitor(site, earlier)
    provider.person = claims_of("edith") | {"email": "Edith@Example.org"}

    answer = await visitor.sign_in("/upload?a=1")

    assert answer.headers["Location"] == "/upload?a=1"
    assert not visitor.sign_on
    principal = await person_of(session_in(answer))
    assert (principal.account_id, principal.role) == (edith.id, Role.EDITOR)
    [identity] = await Identity.all()
    assert (identity.issuer, identity.subject) == (provider.issuer, "edith")
    [session] = await Session.all()
    assert session.address == "198.51.100.7"
    assert session_in(answer) != earlier


async def test_refusal_gives_the_reason(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """The person has no account, refuses at the provider, or takes more than ten minutes."""
    provider.person = claims_of("new")
    visitor = Visitor(site)
    reason = await refusal(await visitor.sign_in())
    assert "new@example.org has no account" in reason
    assert visitor.sign_on == ""
    state = query_of(await visitor.leave())["state"]
    denied = await visitor.get(f"{CALLBACK}?error=access_denied&state={state}")
    assert "provider did not sign you in" in await refusal(denied)
    back = await visitor.leave()
    url = site.extensions["portal"].config.database_url
    await run_sql(url, f"UPDATE sign_ons SET expires_at = expires_at - interval '{LIFE_S} s'")
    assert "or has expired. Start again" in await refusal(await visitor.get(back), status=400)


async def test_sign_in_enters_and_leaves_groups_by_the_claim(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """Without roles by claim, too, and if only userinfo has the claim."""
    films = await groups.create("Film staff", claim="films")
    sound = await groups.create("Sound", claim="sound")
    provider.person = claims_of("olga") | {"groups": ["films", "other", 7]}
    assert is_signed_in(await Visitor(site).sign_in())
    assert (await groups.group_ids_of([olga.id]))[olga.id] == {films.id}
    provider.person = claims_of("olga")
    provider.userinfo = claims_of("olga") | {"groups": "sound"}
    answer = await Visitor(site).sign_in()
    assert (await person_of(session_in(answer))).group_ids == {sound.id}
    assert (await groups.read_members(films.id)).emails == []


async def test_account_with_an_unverified_address_is_linked_from_its_own_page(
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


async def test_state_must_belong_to_the_browser(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """Login CSRF: a browser with another or no pending sign-on opens an attacker's callback."""
    mallory = Visitor(site)
    victim = Visitor(site)
    idle = Visitor(site)
    back = await mallory.leave()
    own = await victim.leave()
    await refusal(await idle.get(back), status=400)
    await refusal(await victim.get(back), status=400)
    state = query_of(own)["state"]
    code = query_of(own)["code"]
    for wrong in ("", state[:-1], state.swapcase(), "\0", "é"):
        query = urlencode({"state": wrong, "code": code})
        await refusal(await victim.get(f"{CALLBACK}?{query}"), status=400)
    # Both sign-ons are still pending, and the provider received no request for tokens.
    assert provider.request_counts["token"] == 0
    assert is_signed_in(await victim.get(own))
    assert is_signed_in(await mallory.get(back))


async def test_callback_works_once(site: Quart, provider: SmallProvider, olga: Account) -> None:
    """Eight browsers open it at the same time; then it is sent again with another code."""
    first = Visitor(site)
    back = await first.leave()
    crowd = [Visitor(site) for _ in range(8)]
    for visitor in crowd:
        visitor.cookies = dict(first.cookies)
    answers = await asyncio.gather(*(visitor.get(back) for visitor in crowd))
    assert sorted(answer.status_code for answer in answers) == [303] + [400] * 7
    code = query_of(await Visitor(site).leave())["code"]
    mixed = urlencode({"state": query_of(back)["state"], "code": code})
    await refusal(await first.get(f"{CALLBACK}?{mixed}"), status=400)
    assert provider.request_counts["token"] == 1


async def test_requests_cannot_redirect_to_another_site(site: Quart, olga: Account) -> None:
    """Neither the browser after the sign-on, nor the provider with the code."""
    answer = await Visitor(site).sign_in("/\\evil.example")
    assert answer.headers.getlist("Location") == ["/"]
    evil = "https://evil.example/sign-in/oidc/callback"
    headers = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    query = urlencode(dict.fromkeys(("redirect_uri", "state", "client_id", "nonce"), evil))
    answer = await Sender(site, headers).get(f"{LEAVE}?{query}")
    assert "evil" not in answer.headers["Location"]
    parameters = query_of(answer.headers["Location"])
    assert parameters["redirect_uri"] == site.extensions["portal"].config.public_url + CALLBACK


async def test_forged_token_and_userinfo_of_someone_else_are_refused(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """Userinfo completes the claims of a short ID token, for the same subject only."""
    whole = provider.person
    provider.person = whole | {"nonce": "another"}
    await refusal(await Visitor(site).sign_in())
    provider.person = {"sub": "olga"}
    provider.userinfo = whole | {"sub": "mallory"}
    await refusal(await Visitor(site).sign_in())
    provider.userinfo = whole
    assert is_signed_in(await Visitor(site).sign_in())


async def test_keys_are_fetched_again_for_an_unknown_key_with_a_pause(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    """After a rotation people sign in; ten tokens with unknown keys cause one request at most."""
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


async def test_password_works_while_the_provider_is_unreachable(
    app: Quart, olga: Account, caplog: pytest.LogCaptureFixture
) -> None:
    async with with_provider(app, f"http://127.0.0.1:{free_port()}") as site:
        answer = await Visitor(site).get(f"{LEAVE}?next=/upload")
        text = await refusal(answer, status=503)
        assert "Single sign-on is not reachable at the moment" in text
        assert 'value="/upload"' in text, "the next page is lost"
        assert answer.headers["Retry-After"] == "5"
        assert session_in(await try_to_sign_in(Sender(site), olga.email))
    assert "provider_unavailable" in {getattr(line, "action", "") for line in caplog.records}


async def test_logs_and_pages_contain_no_secrets(
    site: Quart, provider: SmallProvider, olga: Account, caplog: pytest.LogCaptureFixture
) -> None:
    """The log level is DEBUG; caches must not store the responses."""
    caplog.set_level(logging.DEBUG)
    visitor = Visitor(site)
    redirect = await visitor.get(LEAVE)
    back = await visitor.leave()
    hidden = {
        visitor.sign_on,
        query_of(redirect.headers["Location"])["nonce"],
        *query_of(back).values(),
    }
    answers = [await visitor.get(back), await visitor.get(back)]
    answers.append(await Visitor(site).get(f"{CALLBACK}?state=made-up-5ec7e7&code=made-up-5ec7e7"))
    hidden |= {session_in(answers[0]), "made-up-5ec7e7"}
    provider.forger = new_key("unknown")
    answers.append(await Visitor(site).sign_in())
    hidden |= {CLIENT_SECRET, *provider.secrets}
    assert [answer.status_code for answer in answers] == [303, 400, 400, 403]
    loggers = ("portal", "aiohttp.client", "quart")
    records = [record for record in caplog.records if record.name.startswith(loggers)]
    text = "".join(f"{record.getMessage()}{record.__dict__}" for record in records)
    assert CALLBACK in text
    text += "".join([await text_of(answer) for answer in answers])
    assert [secret for secret in hidden if secret in text] == []
    for answer in (redirect, *answers):
        assert "no-store" in answer.headers["Cache-Control"]
