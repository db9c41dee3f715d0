"""One client may ask for much, and then has to wait; the others do not notice."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from ipaddress import ip_network
from typing import Any

import aiohttp
import pytest
from api_client import Client, app_client, metadata, presign, problem, published
from quart import Quart, Response
from raw_clients import served

from portal.client import calls
from portal.client.calls import Api
from portal.config import Config
from portal.errors import PortalError, TooManyRequests
from portal.retry import Backoff
from portal.web.server import rate_limit
from portal.web.server.asgi import SAFE_METHODS
from portal.web.server.rate_limit import MAX_CLIENTS, Budget, TokenBuckets, budget_of

PRESIGN = {"fileName": "a.mp4", "contentType": "video/mp4"}
PROXY = "10.0.0.1"


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_bucket_gives_what_it_holds_then_what_flows_in() -> None:
    clock = Clock()
    buckets = TokenBuckets(60, clock=clock)
    assert [buckets.take("a") for _ in range(60)] == [0] * 60
    assert buckets.take("a") == pytest.approx(1)
    clock.now_s += 0.75
    # To ask again costs nothing and gains nothing.
    assert [buckets.take("a") for _ in range(5)] == [pytest.approx(0.25)] * 5
    clock.now_s += 0.26
    assert buckets.take("a") == 0
    assert buckets.take("a") > 0


def test_client_that_waits_as_told_gets_through() -> None:
    clock = Clock()
    buckets = TokenBuckets(7, clock=clock)
    for _ in range(100):
        if wait_s := buckets.take("a"):
            clock.now_s += wait_s
            assert buckets.take("a") == 0


def test_bucket_never_holds_more_than_a_minutes_worth() -> None:
    clock = Clock()
    buckets = TokenBuckets(3, clock=clock)
    assert buckets.take("a") == 0
    clock.now_s += 86_400
    assert [buckets.take("a") > 0 for _ in range(4)] == [False, False, False, True]


def test_one_clients_bucket_is_no_others() -> None:
    buckets = TokenBuckets(1, clock=Clock())
    assert buckets.take("a") == 0
    assert buckets.take("a") > 0
    assert buckets.take("b") == 0


def test_memory_is_bounded_however_many_clients_there_are() -> None:
    buckets = TokenBuckets(1, clock=Clock())
    for number in range(MAX_CLIENTS + 500):
        buckets.take(f"client {number}")
    assert len(buckets) == MAX_CLIENTS


def test_taking_costs_next_to_nothing() -> None:
    """A poll takes some 250 µs in all; this guards against a slip, not against a slow machine."""
    buckets = TokenBuckets(10**8)
    begun_at = time.process_time()
    for _ in range(20_000):
        buckets.take("198.51.100.1")
    assert (time.process_time() - begun_at) / 20_000 < 50e-6


@asynccontextmanager
async def limited(config: Config, **limits: int) -> AsyncIterator[Client]:
    """An app in which nothing is given back, for the limits' clock stands still."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rate_limit, "TokenBuckets", partial(TokenBuckets, clock=Clock()))
        async with app_client(config, trusted_proxies=(ip_network(PROXY),), **limits) as client:
            yield client


def of(client: str) -> dict[str, object]:
    """Arguments for a request of this client, which comes through the proxy."""
    return {"headers": {"X-Forwarded-For": client}, "scope_base": {"client": (PROXY, 4711)}}


async def expect_refusal(response: Response) -> None:
    await problem(response, 429, "too_many_requests")
    assert 1 <= int(response.headers["Retry-After"]) <= 60


async def test_changes_beyond_the_limit_get_429_and_nothing_else_does(config: Config) -> None:
    async with limited(config, rate_limit_changes=6) as client:
        record = await published(client)  # presigns and creates
        for _ in range(4):
            await presign(client)
        body = metadata(record["storageKey"])
        await expect_refusal(await client.post("/api/videos/presign", json=PRESIGN))
        await expect_refusal(await client.post("/api/videos", json=body))
        await expect_refusal(await client.post("/api/uploads", json={}))
        await expect_refusal(await client.post(f"/api/videos/{record['id']}/deletion"))
        await expect_refusal(await client.put(f"/api/videos/{record['id']}/metadata", json=body))
        page = await client.post(f"/videos/{record['id']}/delete")
        assert (page.status_code, page.mimetype) == (429, "text/html")
        assert page.headers["Retry-After"]
        for path in (f"/api/videos/{record['id']}", "/", "/healthz", f"/videos/{record['id']}"):
            assert (await client.get(path)).status_code == 200, path
        elsewhere = await client.post("/api/videos/presign", json=PRESIGN, **of("192.0.2.1"))
        assert elsewhere.status_code == 200


async def test_each_kind_of_request_has_its_own_budget(config: Config) -> None:
    limits = {"rate_limit_parts": 2, "rate_limit_searches": 2, "rate_limit_reads": 3}
    async with limited(config, **limits) as client:
        part = "/api/uploads/" + "0" * 32 + "/parts/1"
        assert [(await client.post(part)).status_code for _ in range(3)] == [404, 404, 429]
        search = [(await client.get("/?q=harbour")).status_code for _ in range(3)]
        assert search == [200, 200, 429]
        polls = [(await client.get("/api/categories")).status_code for _ in range(4)]
        assert polls == [200, 200, 200, 429]
        assert (await client.post("/api/videos/presign", json=PRESIGN)).status_code == 200
        for _ in range(10):
            assert (await client.get("/healthz")).status_code == 200


FREE = ("health.healthz", "health.readyz", "static_files.static_file")
PARTS = ("api_uploads.get_upload", "api_uploads.sign_part")


def test_every_route_is_paid_for_from_its_budget(app: Quart) -> None:
    routes = [(rule, method) for rule in app.url_map.iter_rules() for method in rule.methods]
    assert {rule.endpoint for rule, _ in routes} >= {*FREE, *PARTS, "library.index"}
    for rule, method in routes:
        path = re.sub(r"<[^>]+>", "0" * 32, rule.rule)
        for query in (b"", b"q=harbour"):
            scope: Any = {"method": method, "path": path, "query_string": query}
            assert budget_of(scope) is _expected(rule.endpoint, method, query), (method, path)


def _expected(endpoint: str, method: str, query: bytes) -> Budget | None:
    if endpoint in FREE:
        return None
    if endpoint in PARTS and method != "OPTIONS":
        return Budget.PARTS
    if endpoint == "library.index" and query:
        return Budget.SEARCHES
    is_change = endpoint == "single_sign_on.begin" or method not in SAFE_METHODS
    return Budget.CHANGES if is_change else Budget.READS


async def test_clients_behind_a_trusted_proxy_have_a_budget_each(config: Config) -> None:
    async with limited(config, rate_limit_reads=1) as client:
        for address in ("192.0.2.1", "192.0.2.2", "2001:db8:1::1", "2001:db8:2::1"):
            assert (await client.get("/api/categories", **of(address))).status_code == 200
        # A new address of the same network, and one made up by the client.
        for address in ("2001:db8:1::2", "6.6.6.6, 192.0.2.1"):
            await expect_refusal(await client.get("/api/categories", **of(address)))


async def test_zero_lifts_a_limit(config: Config) -> None:
    limits = dict.fromkeys(("changes", "parts", "searches", "reads"), 0)
    async with limited(config, **{f"rate_limit_{it}": 0 for it in limits}) as client:
        answers = await asyncio.gather(*(client.get("/api/categories") for _ in range(50)))
        assert {answer.status_code for answer in answers} == {200}


async def test_office_that_publishes_fifty_large_files_at_once_meets_no_limit(
    app: Quart, config: Config
) -> None:
    """Fifty files of 100 GB in the time that a line of 10 Gbit/s takes for them, the worst minute:
    a part of 16 MiB is signed 75 times a second, and everything else is asked for at once."""
    clock = Clock()
    parts = TokenBuckets(config.rate_limit_parts, clock=clock)
    for _ in range(75 * 600):
        clock.now_s += 1 / 75
        assert parts.take("office") == 0
    changes = TokenBuckets(config.rate_limit_changes, clock=clock)
    # Presign, start, complete, create, edit; all of it repeated four times.
    assert not any(changes.take("office") for _ in range(50 * 5 * 5))
    reads = TokenBuckets(config.rate_limit_reads, clock=clock)
    # 2,000 viewers behind one address who poll every other second, for ten minutes.
    for _ in range(1000 * 600):
        clock.now_s += 1 / 1000
        assert reads.take("audience") == 0


async def test_command_line_waits_as_long_as_it_is_told(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty at once, then one every other second."""
    async with (
        served(replace(config, rate_limit_changes=30), monkeypatch) as server,
        aiohttp.ClientSession() as session,
    ):
        api = Api(session, server.url)
        monkeypatch.setattr(calls, "BACKOFF", Backoff(first_s=0.0))
        begun_at = time.monotonic()
        for _ in range(31):
            assert await api.call("POST", "/api/videos/presign", PRESIGN)
        assert time.monotonic() - begun_at >= 1


def test_every_refusal_names_a_remedy() -> None:
    error: PortalError = TooManyRequests(7)
    assert error.headers == {"Retry-After": "7"}
    assert "7 s" in error.detail
