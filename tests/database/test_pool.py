"""The pool of connections when the database stops answering, or is restarted."""

import asyncio
import os
import socket
from contextlib import nullcontext
from dataclasses import replace
from time import monotonic
from uuid import uuid4

import psycopg
import pytest
from api_client import app_client, metadata, problem, published
from bad_network import network_to_database
from running_portal import until

from portal.config import Config
from portal.database import connection
from portal.database.pool import extend_transaction, transaction_connection
from portal.web import monitoring

REQUESTS = 40
SOON_S = 30
LONGEST_WAIT_S = 10


async def test_connections_to_a_server_that_vanished_are_ended(config: Config) -> None:
    async with network_to_database(config.database_url) as (_, address):
        own = connection.make_conninfo(address, keepalives_idle=60)
        async with connection.open_database(replace(config, database_url=own)):
            async with connection.transaction():
                descriptor = os.dup(transaction_connection().fileno())
            with socket.socket(fileno=descriptor) as line:
                options = (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPINTVL, socket.TCP_KEEPIDLE)
                values = [line.getsockopt(socket.IPPROTO_TCP, option) for option in options]
    assert values == [30_000, 5, 60]


async def test_transaction_that_computes_for_long_can_be_extended(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "USE_LIMIT_S", 2.0)
    async with connection.open_database(config):
        for may_extend in (True, False):
            with nullcontext() if may_extend else pytest.raises(psycopg.OperationalError):
                async with connection.transaction():
                    for _ in range(4):
                        await asyncio.sleep(0.7)
                        await connection.fetch_rows("SELECT 1")
                        if may_extend:
                            extend_transaction()


async def test_database_that_stops_answering_gives_503_within_seconds_until_it_is_back(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.WEB_POOL_TIMEOUT_S <= 3
    assert connection.WEB_USE_LIMIT_S <= 10
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 1)
    monkeypatch.setattr(connection, "WEB_POOL_TIMEOUT_S", 1.0)
    monkeypatch.setattr(connection, "WEB_USE_LIMIT_S", 2.0)
    monkeypatch.setattr(monitoring, "CHECK_TIMEOUT_S", 0.5)
    async with (
        network_to_database(config.database_url) as (proxy, address),
        app_client(config, database_url=address) as client,
    ):
        record = await published(client)
        paths = [f"/api/videos/{record['id']}", f"/api/videos/{uuid4()}/transcode"]
        proxy.stall()
        began_at = monotonic()
        requests = [client.get(paths[number % 2]) for number in range(REQUESTS)]
        body = metadata(record["storageKey"])
        requests += [client.post("/api/videos", json=body) for _ in range(20)]
        for response in await asyncio.gather(*requests):
            await problem(response, 503, "database_unavailable")
            assert 1 <= int(response.headers["Retry-After"]) <= 60
        assert monotonic() - began_at < SOON_S
        began_at = monotonic()
        page = await client.get("/")
        assert (page.status_code, page.mimetype) == (503, "text/html")
        assert monotonic() - began_at < LONGEST_WAIT_S
        for path in ("/healthz", "/api/categories", "/api/docs"):
            assert (await client.get(path)).status_code == 200, path
        assert (await (await client.get("/readyz")).get_json())["database"] == "unreachable"
        proxy.flow()

        async def all_succeed() -> bool:
            responses = await asyncio.gather(*(client.get(paths[0]) for _ in range(16)))
            return {response.status_code for response in responses} == {200}

        await until(all_succeed, timeout_s=30)


async def test_request_after_a_restart_of_the_database_gets_a_new_connection(
    config: Config,
) -> None:
    async with (
        network_to_database(config.database_url) as (proxy, address),
        app_client(config, database_url=address) as client,
    ):
        record = await published(client)
        proxy.cut()
        assert (await client.get(f"/api/videos/{record['id']}")).status_code == 200
