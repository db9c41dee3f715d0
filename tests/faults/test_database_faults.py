"""A database that is cut off, frozen, full or demoted: clear answers, no doubles, no lasting harm.

Each commit happened or did not, whatever the client was told; repeating a creation settles it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic
from types import SimpleNamespace

import psycopg
import pytest
from api_client import Client, metadata, presign, problem, published, rows, run_sql
from database_proxy import DatabaseProxy
from passes import make_playable
from psycopg import sql
from quart import Response
from running_portal import execute, make_video, until
from storage_proxy import seeds, send

from portal.config import Config
from portal.database.connection import CONNECT_TIMEOUT_S, open_database
from portal.database.models import Attempt, Video
from portal.database.states import Outcome, VideoStatus
from portal.queue.app import open_queue
from portal.storage.bucket import open_storage
from portal.web.app import create_app

# A statement that waits for a connection, and one more that replaces it.
TIMEOUT_S = 20
OUTAGE_S = CONNECT_TIMEOUT_S + 2
CREATIONS = 10
# What a creation sends and is answered, about.
CREATION_BYTES = 3_000
MISCOUNTED = """
SELECT (SELECT count(*) FROM videos),
       (SELECT count(*) FROM procrastinate_jobs WHERE task_name LIKE '%%transcode'),
       (SELECT count(*) FROM videos v JOIN procrastinate_jobs j ON j.id = v.transcode_job_id)
"""
KILL_SOME = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = current_user
  AND random() < 0.5
"""
KILL_ALL = KILL_SOME.replace("0.5", "2")


@pytest.fixture
async def proxy(proxied: tuple[DatabaseProxy, Config]) -> DatabaseProxy:
    return proxied[0]


@pytest.fixture
async def client(proxied: tuple[DatabaseProxy, Config]) -> AsyncIterator[Client]:
    app = create_app(proxied[1])
    async with app.test_app():
        yield app.test_client()


async def uploaded_keys(client: Client, count: int, content: bytes = b"raw bytes") -> list[str]:
    uploads = [await presign(client) for _ in range(count)]
    for upload in uploads:
        assert await send(upload["uploadUrl"], content) == 200
    return [upload["key"] for upload in uploads]


async def expect_unavailable(response: Response) -> None:
    await problem(response, 503, "database_unavailable")
    assert 1 <= int(response.headers["Retry-After"]) <= 60


async def insist(client: Client, key: str, answers: Counter[int]) -> str:
    """Repeat a creation as clients do, until it is confirmed; returns the video's id."""
    deadline = monotonic() + 4 * TIMEOUT_S
    while monotonic() < deadline:
        response = await client.post("/api/videos", json=metadata(key))
        answers[response.status_code] += 1
        if response.status_code in (200, 201):
            return str((await response.get_json())["id"])
        await expect_unavailable(response)
        await asyncio.sleep(0.05)
    pytest.fail(f"not confirmed: {answers}")


@pytest.mark.parametrize("seed", seeds(1, soak=3))
async def test_creation_over_a_line_cut_at_any_byte_makes_one_video_with_one_job(
    rng: Random, client: Client, config: Config, proxy: DatabaseProxy
) -> None:
    answers: Counter[int] = Counter()
    keys = await uploaded_keys(client, CREATIONS)
    for key in keys:
        proxy.cut_after(rng.randrange(CREATION_BYTES))
        await insist(client, key, answers)
    assert await rows(config.database_url, MISCOUNTED) == [(CREATIONS,) * 3]
    assert proxy.cuts > CREATIONS / 2, "the cuts come too late"
    assert answers[503], answers


def named(config: Config) -> sql.Identifier:
    return sql.Identifier(config.database_url.partition("?")[0].rpartition("/")[2])


async def test_database_out_of_connections_gives_503_and_all_come_back(
    services: dict[str, str], client: Client, config: Config
) -> None:
    record = await published(client)
    address = f"/api/videos/{record['id']}/transcode"
    limit = sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}")
    name = named(config)
    await run_sql(config.database_url, KILL_ALL)
    await execute(services, limit.format(name, sql.Literal(1)))
    begun_at = monotonic()
    answers = await asyncio.gather(*(client.get(address) for _ in range(60)))
    assert monotonic() - begun_at < TIMEOUT_S
    for answer in answers:
        if answer.status_code != 200:
            await expect_unavailable(answer)
    await execute(services, limit.format(name, sql.Literal(-1)))

    async def are_answered() -> bool:
        answers = await asyncio.gather(*(client.get(address) for _ in range(60)))
        return {it.status_code for it in answers} == {200}

    await until(are_answered, timeout_s=TIMEOUT_S)


@pytest.mark.parametrize("seed", seeds(1, soak=3))
async def test_database_that_goes_away_during_a_pass_costs_no_attempt(
    rng: Random, proxied: tuple[DatabaseProxy, Config], tmp_path: Path
) -> None:
    proxy, config = proxied
    app = create_app(config)
    async with app.test_app():
        content = make_video(tmp_path / "short.mp4").read_bytes()
        [key] = await uploaded_keys(app.test_client(), 1, content)
        video_id = await insist(app.test_client(), key, Counter())
    async with open_database(config), open_storage(config) as storage:
        queue = open_queue(config.database_url)
        resources = SimpleNamespace(config=config, storage=storage, queue=queue)
        video = await Video.get(id=video_id)
        pass_ = asyncio.create_task(make_playable(video, resources, tmp_path))
        await asyncio.wait({pass_}, timeout=rng.uniform(0.0, 1.5))
        proxy.go_away()
        # Longer than anyone waits for a connection, and less than a lease.
        await asyncio.sleep(OUTAGE_S)
        proxy.refuses = False
        with suppress(psycopg.OperationalError):
            video = await pass_
        if video.status is VideoStatus.PROCESSING:
            video = await make_playable(video, resources, tmp_path)
        outcomes = [it.outcome for it in await Attempt.filter(video_id=video.id)]
    assert video.status is VideoStatus.READY
    assert Outcome.FAILED not in outcomes
