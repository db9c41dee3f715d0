"""Limits on requests: concurrent ones, those per minute, and the size of bodies."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from ipaddress import ip_network

import pytest
from api_client import UNKNOWN_VIDEO_ID, app_client, problem
from quart import Quart
from signed_in import ADDRESS, OWN_PAGE, Sender, make_account, program, signed_in, token_of

from portal.config import Config
from portal.database.account_models import Role
from portal.errors import TooManyRequests
from portal.features.posters.pages import MAX_PICTURE_BYTES
from portal.http.auth import declaration_of
from portal.http.server import limits
from portal.http.server.limits import Rate, RateLimit
from portal.transcoding.captions.faults import MAX_FILE_BYTES
from portal.web.app import create_app

PRESIGN = {"fileName": "a.mp4", "contentType": "video/mp4"}


@asynccontextmanager
async def limited(config: Config, **limits: int) -> AsyncIterator[Quart]:
    """Yield an app with rate limits and a stopped clock."""
    app = create_app(replace(config, trusted_proxies=(ip_network(ADDRESS),), **limits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("portal.http.server.limits.time", lambda: 1000.0)
        async with app.test_app():
            yield app


async def changes(sender: Sender, count: int) -> list[int]:
    """Return the statuses of `count` requests for an upload address."""
    return [
        (await sender.post("/api/videos/presign", json=PRESIGN)).status_code for _ in range(count)
    ]


def test_routes_declare_limits_that_differ_from_the_defaults(config: Config) -> None:
    app = create_app(config)
    declared = {
        f"{method} {rule.rule}": declaration
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if (declaration := declaration_of(app, rule.endpoint))
    }
    files = {name: declaration.body.max_file_bytes for name, declaration in declared.items()}
    assert {name: size for name, size in files.items() if size} == {
        "POST /videos/<video_id>/poster/picture": MAX_PICTURE_BYTES,
        "POST /videos/<video_id>/poster/picture/panel": MAX_PICTURE_BYTES,
        "POST /videos/<video_id>/captions": MAX_FILE_BYTES * 4 // 3,
        "POST /api/videos/<string:id>/captions": MAX_FILE_BYTES,
        "PUT /api/videos/<string:id>/captions/<language:language>": MAX_FILE_BYTES,
        "PUT /api/videos/<id>/chapters": MAX_FILE_BYTES,
        "PUT /api/groups/<id>/members": 2 * 1024**2,
    }
    rates = {name: declaration.rate for name, declaration in declared.items() if declaration.rate}
    assert rates == {
        "GET /": Rate.LISTING,
        "GET /api/videos": Rate.SEARCH,
        "GET /sign-in/oidc": Rate.SIGN_IN,
        "POST /videos/<video_id>/unlock": Rate.SIGN_IN,
        "POST /series/<series_id>/unlock": Rate.SIGN_IN,
        "POST /welcome/guest/<secret>": Rate.SIGN_IN,
        "GET /statistics": Rate.LISTING,
        "GET /statistics.csv": Rate.LISTING,
        "GET /api/statistics": Rate.LISTING,
        "GET /feeds/library.xml": Rate.LISTING,
        "GET /feeds/videos/<video_id>.<suffix>": Rate.DOWNLOADS,
        "POST /api/playback": Rate.REPORTS,
        "GET /videos/<uuid:video_id>/downloads/<file>": Rate.DOWNLOADS,
        "POST /videos/<video_id>/downloads/<file>": Rate.DOWNLOADS,
        "POST /api/videos/<id>/downloads/<file>": Rate.DOWNLOADS,
    }


async def test_requests_beyond_the_concurrency_limit_get_503_at_once(config: Config) -> None:
    async with app_client(config, max_concurrent_requests=2) as client, AsyncExitStack() as stack:
        headers = {"Content-Type": "application/json", "Content-Length": "50"}
        unfinished = [
            client.request("/api/videos/presign", method="POST", headers=headers) for _ in range(2)
        ]
        for request in unfinished:
            await stack.enter_async_context(request)
            await request.send(b"{")
        answer = await client.get("/api/categories")
        await problem(answer, 503, "overloaded")
        assert answer.headers["Retry-After"]
        page = await client.get("/")
        assert (page.status_code, page.mimetype) == (503, "text/html")
        assert (await client.get("/healthz")).status_code == 200
        for request in unfinished:
            await request.disconnect()
        await stack.aclose()
        assert (await client.get("/api/categories")).status_code == 200


async def test_accounts_behind_one_address_have_a_rate_limit_each(config: Config) -> None:
    async with limited(config, rate_limit_changes=2) as app:
        olga = await make_account("olga")
        edith = await make_account("edith", Role.EDITOR)
        first, other = [program(app, await token_of(olga)) for _ in range(2)]
        assert await changes(first, 3) == [200, 200, 429]
        # All tokens and sessions of an account count as the same client.
        assert await changes(replace(other, address="203.0.113.9"), 1) == [429]
        assert await changes(await signed_in(app, edith), 3) == [200, 200, 429]
        refusal = await first.post("/api/videos/presign", json=PRESIGN)
        assert "from your account" in (await problem(refusal, 429, "too_many_requests"))["detail"]
        assert refusal.headers["Retry-After"] == "20"
        assert (await first.get("/api/categories")).status_code == 200


async def test_searches_sign_in_attempts_and_downloads_have_separate_limits_per_address(
    config: Config,
) -> None:
    limits = {f"rate_limit_{name}": 1 for name in ("searches", "sign_ins", "downloads")}
    file = f"/videos/{UNKNOWN_VIDEO_ID}/downloads/original"
    async with limited(config, **limits) as app:
        for address in ("192.0.2.1", "192.0.2.2"):
            sender = Sender(app, {**OWN_PAGE, "X-Forwarded-For": address})
            for method, path in (("GET", "/?q=harbour"), ("POST", "/sign-in"), ("GET", file)):
                answers = [(await sender.ask(method, path)) for _ in range(2)]
                assert [answer.status_code == 429 for answer in answers] == [False, True], path
                assert answers[1].mimetype == "text/html"
            assert (await sender.get("/")).status_code == 200
            assert await changes(sender, 1) == [200]


async def test_reports_count_by_their_lines(config: Config) -> None:
    report = {"data": "x\n" * 25, "headers": {"Content-Type": "application/cmcd"}}
    async with limited(config, rate_limit_reports=5) as app:
        sender = Sender(app, OWN_PAGE)
        statuses = [(await sender.post("/api/playback", **report)).status_code for _ in range(2)]
        assert statuses == [400, 429]


def test_counts_restart_with_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(limits, "time", lambda: now)
    limit = RateLimit(1)
    unlimited = RateLimit(0)
    limit.count("a")
    with pytest.raises(TooManyRequests) as refused:
        limit.count("a")
    assert refused.value.headers == {"Retry-After": "20"}
    now += 20
    limit.count("a")
    for _ in range(3):
        unlimited.count("a")


def test_networks_that_give_a_client_many_addresses_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "time", lambda: 1000.0)
    limit = RateLimit(2)

    def allowed(clients: Iterator[str]) -> int:
        """Return how many clients are counted before one is refused."""
        for number, client in enumerate(clients):
            try:
                limit.count(client)
            except TooManyRequests:
                return number
        raise AssertionError("no client is refused")

    # In one /56 each, then in a /48 whose limit has 16 requests left.
    assert allowed(f"2001:db8:1:1{number:02x}::/64" for number in range(256)) == 8
    assert allowed(f"2001:db8:1:2{number:02x}::/64" for number in range(256)) == 8
    assert allowed(f"2001:db8:1:{number:x}00::/64" for number in range(3, 256)) == 16
    limit.count("2001:db8:2::/64")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [(b" " * 70_000, 413, "request_entity_too_large"), (b"{", 408, "request_timeout")],
    ids=["too large", "stops arriving"],
)
async def test_body_is_refused(app: Quart, body: bytes, status: int, code: str) -> None:
    app.config["BODY_TIMEOUT"] = 0.1
    headers = {"Content-Type": "application/json"}
    request = app.test_client().request("/api/videos/presign", method="POST", headers=headers)
    async with request as connection:
        await connection.send(body)
    await problem(await connection.as_response(), status, code)
