"""A database that is away for longer than a lease costs no attempt, and ends no worker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from api_client import Client, published, rows, run_sql
from database_proxy import DatabaseProxy
from passes import published_file
from running_portal import process, until

from portal.config import Config
from portal.database import connection
from portal.database.connection import open_database
from portal.processing import attempts, progress
from portal.processing.attempts import LEASE_S, LeaseLost, OpenAttempt
from portal.processing.progress import Heartbeat
from portal.web.composition import WebContext

SETTLED_S = 120
# Longer than a lease, and than anyone waits for a connection.
LONG_OUTAGE_S = LEASE_S + 15
OUTCOMES = "SELECT outcome::text FROM attempts ORDER BY number"
IS_ENCODED = "SELECT 1 FROM attempts WHERE stage <> 'probing' OR outcome IS NOT NULL"
IS_READY = "SELECT 1 FROM videos WHERE status = 'ready'"
LEASE_END = "SELECT lease_expires_at FROM attempts"


@pytest.fixture
async def proxy(
    proxied: tuple[DatabaseProxy, Config], video_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DatabaseProxy]:
    """The way of this process to its database, with a video there."""
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 1)
    proxy, config = proxied
    async with open_database(config):
        yield proxy


@pytest.fixture
async def video_id(client: Client) -> UUID:
    return UUID((await published(client))["id"])


async def begin_first_pass(video_id: UUID) -> OpenAttempt | None:
    return await attempts.begin(video_id, worker="test")


async def test_lease_that_ran_out_in_an_outage_is_renewed_when_nobody_else_took_it(
    proxy: DatabaseProxy,
    config: Config,
    video_id: UUID,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(attempts, "LEASE_S", 0.1)
    for name in ("RENEWAL_S", "HEARTBEAT_S"):
        monkeypatch.setattr(progress, name, 0.1)
    attempt = await begin_first_pass(video_id)
    assert attempt is not None
    before = await rows(config.database_url, LEASE_END)
    proxy.go_away()
    beating = asyncio.create_task(Heartbeat(attempt).beat_forever())

    async def is_tried_in_vain() -> bool:
        assert not beating.done(), beating.exception()
        return caplog.text.count("Lease not renewed") > 1

    async def is_renewed() -> bool:
        assert not beating.done(), beating.exception()
        return await rows(config.database_url, LEASE_END) != before

    await until(is_tried_in_vain, timeout_s=20)
    proxy.refuses = False
    await until(is_renewed, timeout_s=20)
    await run_sql(config.database_url, "UPDATE attempts SET outcome = 'failed'")
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(beating, 20)


@pytest.mark.parametrize("outage_s", [3, pytest.param(LONG_OUTAGE_S, marks=pytest.mark.soak)])
async def test_worker_lives_through_an_outage_and_publishes_what_it_made(
    outage_s: int,
    proxied: tuple[DatabaseProxy, Config],
    client: Client,
    resources: WebContext,
    environ: dict[str, str],
    short_video: Path,
) -> None:
    proxy, config = proxied
    await published_file(client, resources, short_video)
    async with process("worker", {**environ, "DATABASE_URL": config.database_url}) as worker:

        async def is_true(query: str) -> bool:
            assert worker.returncode is None, "the worker ended"
            return bool(await rows(resources.config.database_url, query))

        await until(partial(is_true, IS_ENCODED), timeout_s=SETTLED_S)
        proxy.go_away()
        with suppress(TimeoutError):
            await asyncio.wait_for(worker.wait(), outage_s)
        proxy.refuses = False
        await until(partial(is_true, IS_READY), timeout_s=SETTLED_S)
    # A storyboard that was begun meanwhile is handed back.
    [first, *_] = await rows(resources.config.database_url, OUTCOMES)
    assert first == ("published",)
