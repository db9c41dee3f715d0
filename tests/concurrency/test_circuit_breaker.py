"""A database that takes connections and never answers: nobody waits twice for it."""

import asyncio
from time import monotonic
from uuid import uuid4

import pytest
from api_client import app_client, metadata, problem, published
from bad_network import network_to_database
from running_portal import until

from portal.concurrency import OPEN_S, CircuitBreaker, State
from portal.config import Config
from portal.database import connection
from portal.errors import DatabaseUnavailable

# Each would wait for a second or more if it were not told at once: for more than a minute.
MANY = 40
SOON_S = 30


async def test_open_breaker_refuses_until_one_probe_has_succeeded() -> None:
    now_s = 50.0
    breaker = CircuitBreaker(DatabaseUnavailable, clock=lambda: now_s)
    breaker.check()
    breaker.record_failure()
    assert breaker.state is State.OPEN
    with pytest.raises(DatabaseUnavailable):
        breaker.check()
    now_s += OPEN_S
    assert breaker.state is State.HALF_OPEN
    async with breaker.call() as is_probe:
        assert is_probe
        with pytest.raises(DatabaseUnavailable):
            breaker.check()
    # That probe recorded nothing, so the next call is one.
    async with breaker.call() as is_probe:
        assert is_probe
        breaker.record_success()
    assert breaker.state is State.CLOSED
    async with breaker.call() as is_probe:
        assert not is_probe
        breaker.check()


async def test_database_that_stops_answering_is_not_waited_for_by_everyone(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.WEB_ANSWER_TIMEOUT_S < 20
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 1)
    monkeypatch.setattr(connection, "WEB_ANSWER_TIMEOUT_S", 2.0)
    async with (
        network_to_database(config.database_url) as (proxy, address),
        app_client(config, database_url=address) as client,
    ):
        record = await published(client)
        paths = [f"/api/videos/{record['id']}", f"/api/videos/{uuid4()}/transcode"]
        proxy.stall()
        begun_at = monotonic()
        body = metadata(record["storageKey"])
        caught = [client.get(paths[number % 2]) for number in range(MANY)]
        caught += [client.post("/api/videos", json=body) for _ in range(20)]
        for response in await asyncio.gather(*caught):
            await problem(response, 503, "database_unavailable")
        # One after the other: each of them would wait its time out.
        for number in range(MANY):
            response = await client.get(paths[number % 2])
            await problem(response, 503, "database_unavailable")
            assert 1 <= int(response.headers["Retry-After"]) <= 60
        page = await client.get("/")
        assert (page.status_code, page.mimetype) == (503, "text/html")
        assert monotonic() - begun_at < SOON_S
        for path in ("/healthz", "/api/categories", "/api/docs"):
            assert (await client.get(path)).status_code == 200, path
        assert (await (await client.get("/readyz")).get_json())["database"] == "unreachable"
        proxy.flow()

        async def are_answered() -> bool:
            answers = await asyncio.gather(*(client.get(paths[0]) for _ in range(16)))
            return {answer.status_code for answer in answers} == {200}

        await until(are_answered, timeout_s=30)
