"""Uploads and transcodes are neither lost nor doubled by outages of the database."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from time import monotonic
from uuid import UUID

import pytest
from api_client import Client, metadata, problem, published, rows, run_sql, uploaded
from bad_network import Network, network_to_database
from passes import make_playable, published_file
from running_portal import make_video, process, until

from portal.config import Config
from portal.database import connection
from portal.database.connection import fetch_rows, open_database, transaction
from portal.database.models import Attempt, VideoStatus
from portal.films import attempts, progress
from portal.films.attempts import LeaseLost
from portal.films.progress import Progress, attempt_heartbeat
from portal.http.composition import WebContext
from portal.web.app import create_app

CONFIRMED_WITHIN_S = 80
CREATIONS = 10
# Approximate size of the requests and responses of one creation.
CREATION_BYTES = 3_000
MISCOUNTED = """
SELECT (SELECT count(*) FROM videos),
       (SELECT count(*) FROM procrastinate_jobs WHERE task_name LIKE '%%transcode'),
       (SELECT count(*) FROM videos v JOIN procrastinate_jobs j ON j.id = v.transcode_job_id)
"""
# Ends the connection at the first two writes of such a row.
AWAY = """
CREATE SEQUENCE tries;
CREATE FUNCTION go_away() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('tries') <= 2 THEN
    PERFORM pg_terminate_backend(pg_backend_pid());
    PERFORM pg_sleep(1);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER away BEFORE {} FOR EACH ROW WHEN ({}) EXECUTE FUNCTION go_away();
"""
OUTCOME = AWAY.format("UPDATE ON attempts", "NEW.outcome = '{}'")
ENQUEUED = AWAY.format("INSERT ON procrastinate_jobs", "NEW.task_name = 'portal:complete'")
OUTAGE_S = 1
SETTLED_S = 120
OUTCOMES = "SELECT outcome::text FROM attempts ORDER BY number"
IS_ENCODED = "SELECT FROM attempts WHERE stage <> 'probing' OR outcome IS NOT NULL"
IS_READY = "SELECT FROM videos WHERE status = 'ready'"
LEASE_END = "SELECT lease_expires_at FROM attempts"
POOL_SIZE = 2
# More turns of the loop than it takes to get a connection and begin.
TURNS = 40


@pytest.fixture
async def proxied(config: Config) -> AsyncIterator[tuple[Network, Config]]:
    """A bad network to the test's database, and the settings by which it is gone through."""
    async with network_to_database(config.database_url) as (network, address):
        yield network, replace(config, database_url=address)


async def confirmed(client: Client, key: str, answers: Counter[int]) -> None:
    """Repeat a creation as clients do, until it is confirmed."""
    deadline = monotonic() + CONFIRMED_WITHIN_S
    while monotonic() < deadline:
        response = await client.post("/api/videos", json=metadata(key))
        answers[response.status_code] += 1
        if response.status_code in (200, 201):
            return
        await problem(response, 503, "database_unavailable")
        assert 1 <= int(response.headers["Retry-After"]) <= 60
        await asyncio.sleep(0.05)
    pytest.fail(f"not confirmed: {answers}")


async def test_creation_over_a_line_cut_at_any_byte_makes_one_video_with_one_job(
    rng: Random, config: Config, proxied: tuple[Network, Config]
) -> None:
    proxy, config_through = proxied
    app = create_app(config_through)
    answers: Counter[int] = Counter()
    async with app.test_app():
        client = app.test_client()
        for key in [await uploaded(client) for _ in range(CREATIONS)]:
            proxy.cut_at([rng.randrange(CREATION_BYTES)])
            await confirmed(client, key, answers)
    assert await rows(config.database_url, MISCOUNTED) == [(CREATIONS,) * 3]
    assert proxy.cuts > CREATIONS / 2, "the cuts come too late"
    assert answers[503], answers


@pytest.mark.parametrize("away", [OUTCOME.format("published"), ENQUEUED], ids=["end", "next"])
async def test_pass_is_published_when_the_database_is_back(
    away: str, client: Client, resources: WebContext, tmp_path: Path
) -> None:
    source = make_video(tmp_path / "wide.mp4", size="640x360")
    video = await published_file(client, resources, source)
    await run_sql(resources.config.database_url, away)
    video = await make_playable(video, resources, tmp_path)
    assert (video.status, video.published_attempt) == (VideoStatus.READY, 1)
    assert video.complete_job_id is not None
    assert await rows(resources.config.database_url, "SELECT last_value FROM tries") == [(3,)]


async def test_work_is_handed_back_when_the_database_is_back(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await published_file(client, resources, short_video)
    await resources.storage.delete(video.storage_key)
    await run_sql(resources.config.database_url, OUTCOME.format("failed"))
    with pytest.raises(Exception, match="terminat"):
        await make_playable(video, resources, tmp_path)
    [attempt] = await Attempt.filter(video_id=video.id)
    assert attempt.outcome == "handed_back"


async def test_lease_that_ran_out_in_an_outage_is_renewed_when_nobody_else_took_it(
    client: Client,
    config: Config,
    proxied: tuple[Network, Config],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(attempts, "LEASE_S", 0.1)
    for name in ("RENEWAL_S", "HEARTBEAT_S"):
        monkeypatch.setattr(progress, name, 0.1)
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 1)
    proxy, config_through = proxied
    video_id = UUID((await published(client))["id"])
    async with open_database(config_through):
        attempt = await attempts.begin(video_id, worker="test")
        assert attempt is not None
        before = await rows(config.database_url, LEASE_END)
        await proxy.down()
        beating = asyncio.create_task(attempt_heartbeat(attempt, Progress()).beat_forever())

        async def is_tried_in_vain() -> bool:
            assert not beating.done(), beating.exception()
            return "Lease not renewed" in caplog.text

        async def is_renewed() -> bool:
            assert not beating.done(), beating.exception()
            return await rows(config.database_url, LEASE_END) != before

        await until(is_tried_in_vain, timeout_s=20)
        await proxy.up()
        await until(is_renewed, timeout_s=20)
        await run_sql(config.database_url, "UPDATE attempts SET outcome = 'failed'")
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(beating, 20)


async def test_worker_lives_through_an_outage_and_publishes_what_it_made(
    proxied: tuple[Network, Config],
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
        await proxy.down()
        with suppress(TimeoutError):
            await asyncio.wait_for(worker.wait(), OUTAGE_S)
        await proxy.up()
        await until(partial(is_true, IS_READY), timeout_s=SETTLED_S)
    [first, *_] = await rows(resources.config.database_url, OUTCOMES)
    assert first == ("published",)


async def test_transaction_cancelled_at_any_moment_gives_its_connection_back(
    proxied: tuple[Network, Config],
) -> None:
    everyone = asyncio.Barrier(POOL_SIZE)

    async def ask() -> None:
        async with transaction():
            await fetch_rows("SELECT 7")

    async def ask_together() -> None:
        async with transaction():
            await everyone.wait()

    async with open_database(replace(proxied[1], database_pool_size=POOL_SIZE)):
        for turns in range(TURNS):
            asking = asyncio.create_task(ask())
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
        async with asyncio.timeout(60):
            await asyncio.gather(*(ask_together() for _ in range(POOL_SIZE)))
