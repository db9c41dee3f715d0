"""Attacks on single sign-on: forged tokens, mixed-up browsers, replays, redirects, and a provider
that is away or lies. Each has a control: the same way without the attack lets in.
"""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from api_client import rows
from quart import Quart, Response
from running_portal import free_port
from signed_in import (
    Sender,
    person_of,
    session_in,
    session_of,
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
    Claims,
    SmallProvider,
    b64,
    new_key,
    small_provider,
    unsigned,
)
from test_open_redirects import HARMLESS, NASTY, browsers_target, encoded

from portal.accounts.oidc.asking import MAX_ANSWER_BYTES
from portal.accounts.oidc.provider import KEYS_AGAIN_S
from portal.database.account_models import Account, Identity, Session, SignOn
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
    for kept in (provider._endpoints, provider._keys):
        kept._clock = lambda: now_s


async def is_refused(answer: Response, *, status: int = 403) -> bool:
    """Whether nobody was signed in, by a page that leads on and has no trace of a program."""
    text = await text_of(answer)
    assert "Traceback" not in text
    assert 'action="/sign-in"' in text
    return answer.status_code == status and not session_in(answer)


def hmac_token(provider: SmallProvider, claims: Claims, secret: bytes) -> str:
    head = unsigned({"alg": "HS256", "kid": provider.key.kid, "typ": "JWT"}, claims)
    signed = head.rpartition(".")[0]
    return f"{signed}.{b64(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


FORGERIES = {
    "no algorithm": lambda it, claims: unsigned({"alg": "none"}, claims),
    "no algorithm, with the key's name": lambda it, claims: unsigned(
        {"alg": "none", "kid": it.key.kid}, claims
    ),
    "None": lambda it, claims: unsigned({"alg": "None", "kid": it.key.kid}, claims),
    "the public key as a secret": lambda it, claims: hmac_token(
        it, claims, it.key.as_pem(private=False)
    ),
    "the public key's DER as a secret": lambda it, claims: hmac_token(
        it, claims, it.key.as_der(private=False)
    ),
    "the client's secret as a secret": lambda it, claims: hmac_token(
        it, claims, CLIENT_SECRET.encode()
    ),
    "an empty secret": lambda it, claims: hmac_token(it, claims, b""),
    "another key of this name": lambda it, claims: it.signed(claims, new_key("first")),
    "another key of another name": lambda it, claims: it.signed(claims, new_key("second")),
    "a key in its header": lambda it, claims: it.signed(
        claims, (key := new_key("first")), jwk=key.as_dict(private=False)
    ),
    "no signature": lambda it, claims: it.signed(claims).rpartition(".")[0] + ".",
    "no token": lambda it, claims: "x",
    "an empty token": lambda it, claims: "",
}
CHANGES: dict[str, Claims] = {
    "another audience": {"aud": "another"},
    "more audiences": {"aud": [CLIENT_ID, "another"]},
    "another authorized party": {"azp": "another"},
    "another issuer": {"iss": "https://evil.example"},
    "this issuer, with a slash": {"iss": "SLASH"},
    "expired": {"exp": 1_700_000_000},
    "not yet good": {"nbf": 4_000_000_000},
    "from the future": {"iat": 4_000_000_000},
    "another nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "no subject": {"sub": None},
    "no expiry": {"exp": None},
    "another access token's": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


async def test_same_way_without_an_attack_lets_in(
    site: Quart, provider: SmallProvider, olga: Account
) -> None:
    answer = await Visitor(site).sign_in(next_path="/account")
    assert is_signed_in(answer)
    assert answer.headers["Location"] == "/account"
    assert (await person_of(session_in(answer))).account_id == olga.id
    assert provider.asked == {"discovery": 1, "token": 1, "keys": 1}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_forged_token_is_refused(site: Quart, provider: SmallProvider, forgery: str) -> None:
    """Thirteen that someone without the provider's private key can make."""
    provider.forge = FORGERIES[forgery]
    assert await is_refused(await Visitor(site).sign_in())
    assert await Session.all().count() == await Identity.all().count() == 0
    provider.forge = None
    assert is_signed_in(await Visitor(site).sign_in())


@pytest.mark.parametrize("change", CHANGES)
async def test_token_for_something_else_is_refused(
    site: Quart, provider: SmallProvider, change: str
) -> None:
    """Thirteen that the provider has signed: for others, at other times, for another sign-in."""
    slash = {"SLASH": f"{provider.issuer}/"}

    def changed(claims: Claims) -> Claims:
        more = {name: slash.get(str(it), it) for name, it in CHANGES[change].items()}
        return {name: it for name, it in {**claims, **more}.items() if it is not None}

    provider.change_claims = changed
    assert await is_refused(await Visitor(site).sign_in())
    assert await Session.all().count() == 0


async def test_token_of_another_sign_in_is_refused(site: Quart, provider: SmallProvider) -> None:
    """A real ID token of the victim's, served again to the attacker's code."""
    seen: list[str] = []

    def remember(it: SmallProvider, claims: Claims) -> str:
        seen.append(it.signed(claims))
        return seen[0]

    provider.forge = remember
    assert is_signed_in(await Visitor(site).sign_in())
    assert await is_refused(await Visitor(site).sign_in())


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


async def test_two_browsers_that_swap_answers_get_nowhere(
    site: Quart, provider: SmallProvider
) -> None:
    """Also with the other's code put beside the own state: PKCE and the nonce bind it."""
    one, other = Visitor(site), Visitor(site)
    of_one, of_other = await approved(await one.leave()), await approved(await other.leave())
    assert await is_refused(await one.come_back(of_other), status=400)
    injected = urlencode({"state": query_of(of_one)["state"], "code": query_of(of_other)["code"]})
    assert await is_refused(await one.get(f"{CALLBACK}?{injected}"))
    assert provider.asked["token"] == 1, "the code of the other was tried, with the own verifier"
    assert await Session.all().count() == 0


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


async def test_code_works_once(site: Quart, provider: SmallProvider) -> None:
    """Someone who has read it in an address can't redeem it: with a state of their own, neither
    afterwards nor first.
    """
    for first in (True, False):
        visitor, mallory = Visitor(site), Visitor(site)
        back = await approved(await visitor.leave())
        if first:
            assert is_signed_in(await visitor.come_back(back))
        state = query_of(await mallory.leave())["state"]
        stolen = urlencode({"state": state, "code": query_of(back)["code"]})
        assert await is_refused(await mallory.get(f"{CALLBACK}?{stolen}"))


async def test_what_the_provider_is_told_tells_no_more(site: Quart) -> None:
    """State and challenge are in many logs: the cookie, the nonce and the verifier aren't in the
    state, and no two sign-ins have anything in common.
    """
    seen = set[str]()
    for _ in range(20):
        visitor = Visitor(site)
        sent = query_of(await visitor.leave())
        own = {visitor.sign_on, sent["state"], sent["nonce"], sent["code_challenge"]}
        assert len(own) == 4
        assert not own & seen
        seen |= own
        assert all(len(it) == 43 for it in own)
        assert sent["code_challenge_method"] == "S256"
        assert sent["response_type"] == "code"
        assert "openid" in sent["scope"].split()
        assert CLIENT_SECRET not in str(sent)


async def test_database_has_nothing_to_go_on_with(site: Quart, provider: SmallProvider) -> None:
    """Who reads every row of it has neither cookie, state, nonce nor verifier."""
    visitor = Visitor(site)
    sent = query_of(await visitor.leave())
    kept = str(await rows(site.extensions["portal"].config.database_url, "SELECT * FROM sign_ons"))
    for secret in (visitor.sign_on, sent["state"], sent["nonce"]):
        assert secret not in kept
    assert kept.count("/") >= 1


async def test_nothing_leads_to_another_site(site: Quart, provider: SmallProvider) -> None:
    """Thirty-eight spellings of `next`; and one's own paths are led on to."""
    for path in NASTY:
        visitor = Visitor(site)
        left = await visitor.get(f"{LEAVE}?next={encoded(path)}")
        assert left.headers["Location"].startswith(f"{provider.issuer}/authorize?"), path
        answer = await visitor.come_back(await approved(left.headers["Location"]))
        assert answer.headers.getlist("Location") == ["/"], path
    for path in HARMLESS:
        visitor = Visitor(site)
        left = await visitor.get(f"{LEAVE}?next={encoded(path)}")
        answer = await visitor.come_back(await approved(left.headers["Location"]))
        assert browsers_target(answer.headers["Location"]) == "localhost", path


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


async def test_answer_of_another_provider_is_refused(site: Quart, provider: SmallProvider) -> None:
    """RFC 9207: it names itself. Nothing is redeemed."""
    visitor = Visitor(site)
    back = await approved(await visitor.leave())
    wrong = {**query_of(back), "iss": "https://evil.example"}
    assert await is_refused(await visitor.get(f"{CALLBACK}?{urlencode(wrong)}"))
    assert provider.asked["token"] == 0


async def test_words_of_an_error_are_not_repeated(
    site: Quart, provider: SmallProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither on the page nor in the log, whatever they are."""
    for error in ("<script>alert(1)</script>", "evil\r\nSet-Cookie: a=b", "x" * 5000, "EVIL"):
        visitor = Visitor(site)
        state = query_of(await visitor.leave())["state"]
        query = urlencode({"state": state, "error": error, "error_description": "evil words"})
        answer = await visitor.get(f"{CALLBACK}?{query}")
        assert await is_refused(answer)
        told = await text_of(answer) + caplog.text + str(answer.headers)
        assert error not in told
        assert "evil" not in told.lower()


async def test_userinfo_of_someone_else_is_refused(site: Quart, provider: SmallProvider) -> None:
    """Where the ID token is short the rest comes from there: of the same person alone."""
    provider.in_token = False
    provider.userinfo_subject = "mallory"
    assert await is_refused(await Visitor(site).sign_in())
    provider.userinfo_subject = ""
    assert is_signed_in(await Visitor(site).sign_in())
    assert provider.asked["userinfo"] == 2


async def test_userinfo_changes_nothing_that_was_signed(
    site: Quart, provider: SmallProvider, edith: Account
) -> None:
    """A signed address counts, also if roles have to be asked for."""
    context = site.extensions["portal"]
    async with with_provider(
        site, provider.issuer, **CLIENT, oidc_roles=(("staff", "editor"),)
    ) as app:
        provider.change_claims = lambda it: {**it, "email": edith.email}
        answer = await Visitor(app).sign_in()
    assert site.extensions["portal"] is context
    assert provider.asked["userinfo"] == 1
    assert (await person_of(session_in(answer))).account_id == edith.id


async def test_wrong_client_is_told_and_the_secret_is_not(
    site: Quart, provider: SmallProvider, caplog: pytest.LogCaptureFixture
) -> None:
    async with with_provider(
        site, provider.issuer, oidc_client_id=CLIENT_ID, oidc_client_secret="wrong-5ecret7"
    ) as app:
        answer = await Visitor(app).sign_in()
    assert await is_refused(answer, status=503)
    assert "does not accept this portal" in await text_of(answer)
    assert "5ecret7" not in await text_of(answer) + caplog.text


@pytest.mark.parametrize("methods", [["client_secret_post"], ["client_secret_basic", "x"], []])
async def test_secret_is_sent_as_the_provider_wants_it(
    site: Quart, provider: SmallProvider, methods: list[str]
) -> None:
    provider.change_discovery = lambda it: {**it, "token_endpoint_auth_methods_supported": methods}
    assert is_signed_in(await Visitor(site).sign_in())
    [sent] = provider.sent
    is_post = methods == ["client_secret_post"]
    assert ("client_secret" in sent) is is_post
    assert bool(sent["authorization"]) is not is_post


async def test_keys_that_change_are_asked_for_again_but_not_all_the_time(
    site: Quart, provider: SmallProvider
) -> None:
    """A rotation lets in; fifty tokens of unknown keys ask twice at most."""
    assert is_signed_in(await Visitor(site).sign_in())
    provider.key = new_key("second")
    assert await is_refused(await Visitor(site).sign_in()), "the keys are seconds old"
    clock_of(site, ahead_s=KEYS_AGAIN_S + 1)
    assert is_signed_in(await Visitor(site).sign_in())
    assert provider.asked["keys"] == 2

    stranger = new_key("unknown")
    provider.forge = lambda it, claims: it.signed(claims, stranger)
    clock_of(site, ahead_s=2 * KEYS_AGAIN_S + 2)
    for _ in range(50):
        assert await is_refused(await Visitor(site).sign_in())
    assert provider.asked["keys"] == 3
    provider.forge = None
    assert is_signed_in(await Visitor(site).sign_in())


async def test_many_at_once_ask_for_what_is_kept_once(site: Quart, provider: SmallProvider) -> None:
    visitors = [Visitor(site) for _ in range(30)]
    answers = await asyncio.gather(*(it.sign_in() for it in visitors))
    assert all(map(is_signed_in, answers))
    assert (provider.asked["discovery"], provider.asked["keys"]) == (1, 1)
    assert await Identity.all().count() == 1


LIES: dict[str, Claims] = {
    "another issuer": {"issuer": "https://evil.example"},
    "no issuer": {"issuer": None},
    "its issuer with a slash": {"issuer": "SLASH"},
    "a script": {"authorization_endpoint": "javascript:alert(1)"},
    "a file": {"jwks_uri": "file:///etc/passwd"},
    "no keys": {"jwks_uri": None},
    "no token endpoint": {"token_endpoint": ""},
}


@pytest.mark.parametrize("lie", LIES)
async def test_discovery_of_something_else_is_not_used(
    site: Quart, provider: SmallProvider, lie: str
) -> None:
    slash = {"SLASH": f"{provider.issuer}/"}
    more = {name: slash.get(str(it), it) for name, it in LIES[lie].items()}
    provider.change_discovery = lambda it: {**it, **more}
    answer = await Visitor(site).get(LEAVE)
    assert await is_refused(answer, status=503)
    assert await SignOn.all().count() == 0
    provider.change_discovery = dict
    assert is_signed_in(await Visitor(site).sign_in()), "a failure is not kept"


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


async def test_provider_that_does_not_answer_is_waited_for_some_seconds(
    site: Quart, provider: SmallProvider
) -> None:
    provider.delay_s = 30
    began = monotonic()
    answers = await asyncio.gather(*(Visitor(site).get(LEAVE) for _ in range(5)))
    assert monotonic() - began < 15
    assert [await is_refused(it, status=503) for it in answers] == [True] * 5
    provider.delay_s = 0
    assert is_signed_in(await Visitor(site).sign_in())


async def test_provider_that_goes_away_on_the_way_leaves_the_password(
    site: Quart, provider: SmallProvider
) -> None:
    """Nothing answers where the code is to be redeemed."""
    nowhere = f"http://127.0.0.1:{free_port()}/token"
    provider.change_discovery = lambda it: {**it, "token_endpoint": nowhere}
    visitor = Visitor(site)
    answer = await visitor.sign_in()
    assert await is_refused(answer, status=503)
    assert not visitor.sign_on


@pytest.mark.parametrize(
    "body",
    [b"", b"no JSON", b"[]", b"5", b'{"issuer":', b"\xff\xfe", b" " * (MAX_ANSWER_BYTES + 1)],
    ids=lambda it: repr(it[:10]),
)
async def test_provider_that_talks_nonsense_is_unavailable(
    app: Quart, olga: Account, body: bytes
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, with_provider(app, f"http://127.0.0.1:{port}", **CLIENT) as site:
        assert await is_refused(await Visitor(site).get(LEAVE), status=503)


async def test_provider_that_drips_is_not_waited_for(app: Quart, olga: Account) -> None:
    """A byte a second is within every limit of a single step."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(60):
            writer.write(b" ")
            await asyncio.sleep(1)

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    began = monotonic()
    async with with_provider(app, f"http://127.0.0.1:{port}", **CLIENT) as site:
        assert await is_refused(await Visitor(site).get(LEAVE), status=503)
    assert monotonic() - began < 15
    server.close()


async def test_no_redirect_of_the_provider_is_followed(app: Quart, olga: Account) -> None:
    """Its addresses are its own; a redirect could be to the portal's own network."""
    asked = list[bytes]()

    async def lead_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        head = b"HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /elsewhere\r\n\r\n{}"
        writer.write(head)
        writer.close()

    server = await asyncio.start_server(lead_away, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, with_provider(app, f"http://127.0.0.1:{port}", **CLIENT) as site:
        assert await is_refused(await Visitor(site).get(LEAVE), status=503)
    assert len(asked) == 1


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
    own_log = [it for it in caplog.records if it.name.startswith(("portal", "http", "quart"))]
    told = "".join(f"{it.getMessage()}{it.__dict__}" for it in own_log)
    assert CALLBACK in told
    pages = "".join([await text_of(it) for it in answers])
    for secret in hidden - {""}:
        assert secret not in told
        assert secret not in pages
    for answer in (left, *answers):
        assert "no-store" in answer.headers["Cache-Control"]


async def test_cookie_is_for_this_host_and_out_of_reach_of_scripts(site: Quart) -> None:
    answer = await Sender(site).get(LEAVE)
    [cookie] = answer.headers.getlist("Set-Cookie")
    words = {word.strip() for word in cookie.split(";")}
    assert cookie.startswith(f"{SIGN_ON.plain_name}=")
    assert {"HttpOnly", "Path=/", "SameSite=Lax", "Max-Age=600"} <= words
    assert not any(word.lower().startswith("domain") for word in words)


async def test_behind_https_nobody_else_can_plant_the_cookie(
    app: Quart, provider: SmallProvider
) -> None:
    """Login CSRF from a neighbour's host: one planted under other names is not looked at."""
    async with with_provider(
        app, provider.issuer, **CLIENT, public_url="https://portal.example"
    ) as site:
        answer = await Sender(site).get(LEAVE)
        [cookie] = answer.headers.getlist("Set-Cookie")
        assert cookie.startswith(f"{SIGN_ON.secure_name}=")
        assert SIGN_ON.secure_name.startswith("__Host-")
        assert "Secure" in {word.strip() for word in cookie.split(";")}
        back = urlsplit(await approved(answer.headers["Location"]))
        value = cookie.partition(";")[0].partition("=")[2]
        for name in (SIGN_ON.plain_name, "__Secure-portal-sign-on", "portal-sign-on"):
            planted = {"Cookie": f"{name}={value}"}
            refused = await Sender(site, planted).get(f"{CALLBACK}?{back.query}")
            assert refused.status_code == 400
        own = {"Cookie": f"{SIGN_ON.secure_name}={value}"}
        assert (await Sender(site, own).get(f"{CALLBACK}?{back.query}")).status_code == 303


async def test_session_is_not_fixed(site: Quart, olga: Account, edith: Account) -> None:
    """A session planted before signing in is not the one afterwards, and ends."""
    planted = await session_of(edith)
    answer = await Visitor(site, planted).sign_in()
    assert session_in(answer) not in ("", planted)
    assert not (await person_of(planted)).is_signed_in
    assert (await person_of(session_in(answer))).account_id == olga.id


async def test_neither_form_nor_other_methods_get_in(site: Quart, provider: SmallProvider) -> None:
    """`response_mode=form_post` is not asked for; a POST changes nothing."""
    visitor = Visitor(site)
    back = urlsplit(await approved(await visitor.leave()))
    cookie = {"Cookie": f"{SIGN_ON.plain_name}={visitor.sign_on}"}
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = await Sender(site, cookie).ask(method, f"{CALLBACK}?{back.query}")
        assert answer.status_code in (403, 405), method
    assert is_signed_in(await visitor.get(f"{CALLBACK}?{back.query}"))


async def test_removed_while_away_is_refused(
    site: Quart, provider: SmallProvider, edith: Account
) -> None:
    """Disabled, or removed, between leaving and coming back."""
    provider.person = {"sub": "edith", "email": edith.email, "email_verified": True}
    back, visitor = "", Visitor(site)
    for fate in ({"is_disabled": True}, None):
        back = await approved(await visitor.leave())
        if fate:
            await Account.filter(id=edith.id).update(**fate)
        else:
            await Account.filter(id=edith.id).delete()
        assert await is_refused(await visitor.come_back(back))
    assert await Session.all().count() == 0
