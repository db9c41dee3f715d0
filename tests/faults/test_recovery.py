"""What a worker leaves that is killed between two of its statements, or whose clock was set."""

import asyncio
from collections.abc import AsyncIterator
from itertools import chain, repeat
from unittest.mock import AsyncMock
from uuid import UUID

import psycopg
import pytest
from api_client import Client, published, rows, run_sql
from procrastinate import App
from running_portal import until

from portal.config import Config
from portal.maintenance import recovery
from portal.maintenance.recovery import finish_left_running, recover_abandoned, recover_forever
from portal.processing import attempts, heartbeat
from portal.processing.heartbeat import Heartbeat
from portal.videos import posters
from portal.web.composition import WebContext

# A worker that died: its job still runs, its heartbeat is old.
DEAD_WORKER = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE
VALUES (7, now() - interval '60 s');
UPDATE procrastinate_jobs SET status = 'doing', worker_id = 7
WHERE id = (SELECT max(id) FROM procrastinate_jobs);
UPDATE procrastinate_events SET at = at - interval '60 s';
"""
MINUTES_LATER = """
UPDATE attempts SET lease_expires_at = now() - interval '100 s', outcome = 'failed',
    finished_at = now() - interval '100 s';
UPDATE procrastinate_events SET at = now() - interval '100 s'
"""
# An attempt that ended a minute ago, with this outcome.
ENDED_ATTEMPT = """
INSERT INTO attempts (video_id, number, worker, stage, percent, lease_expires_at, started_at,
    outcome, finished_at)
VALUES ('{video_id}', 1, 'test', 'transcoding', 100, now(), now() - interval '90 s', '{outcome}',
    now() - interval '60 s');
"""
JOBS = "SELECT task_name, status::text FROM procrastinate_jobs ORDER BY id"


@pytest.fixture
async def queue(resources: WebContext) -> AsyncIterator[App]:
    async with resources.queue.open_async():
        yield resources.queue


@pytest.fixture
async def video_id(client: Client) -> UUID:
    """A video that waits for its transcode."""
    return UUID((await published(client))["id"])


@pytest.fixture
def database_url(config: Config) -> str:
    return config.database_url


async def ask_for_poster(video_id: UUID, database_url: str, queue: App) -> None:
    """By a worker that then dies with it."""
    ready = "UPDATE videos SET status = 'ready', published_attempt = 1, duration_s = 9"
    await run_sql(database_url, ready)
    await posters.request_poster(video_id, time_s=1.0, queue=queue)
    await run_sql(database_url, DEAD_WORKER + "UPDATE poster_requests SET state = 'done'")


@pytest.mark.parametrize("heard_of", ["60 s", "0 s"])
async def test_job_whose_work_is_done_does_not_hold_the_next_one_up(
    heard_of: str, video_id: UUID, database_url: str, queue: App
) -> None:
    """Its worker was killed after the first pass was published, or lives and could not say so."""
    await run_sql(
        database_url,
        f"""
        {DEAD_WORKER}
        UPDATE procrastinate_jobs SET task_name = 'portal:encode', queue_name = 'transcode',
            lock = 'video:{video_id}';
        SELECT procrastinate_defer_jobs_v1(ARRAY[ROW('transcode', 'portal:complete', -10,
            'video:{video_id}', NULL, jsonb_build_object('video_id', '{video_id}'), NULL
        )::procrastinate_job_to_defer_v1]);
        UPDATE videos SET status = 'ready', published_attempt = 1, complete_job_id =
            (SELECT max(id) FROM procrastinate_jobs);
        UPDATE procrastinate_workers SET last_heartbeat = now() - interval '{heard_of}';
        {ENDED_ATTEMPT.format(video_id=video_id, outcome="published")}""",
    )
    manager = queue.job_manager
    assert await manager.fetch_job(queues=["transcode"], worker_id=7) is None

    assert await finish_left_running(queue) == 1

    assert await rows(database_url, JOBS) == [
        ("portal:encode", "aborted"),
        ("portal:complete", "todo"),
    ]
    job = await manager.fetch_job(queues=["transcode"], worker_id=7)
    assert job is not None
    assert job.task_name == "portal:complete"


@pytest.mark.parametrize(
    "sign_of_life",
    [
        "UPDATE attempts SET outcome = NULL, lease_expires_at = now() + interval '1 hour'",
        "UPDATE attempts SET finished_at = now() - interval '5 s'",
        "UPDATE procrastinate_events SET at = now() - interval '5 s' WHERE type = 'started'",
    ],
)
async def test_job_of_a_worker_that_lives_is_left_alone_as_long_as_it_may_run(
    sign_of_life: str, video_id: UUID, database_url: str, queue: App
) -> None:
    await run_sql(
        database_url,
        f"""
        {DEAD_WORKER}
        UPDATE videos SET status = 'failed';
        UPDATE procrastinate_workers SET last_heartbeat = now();
        {ENDED_ATTEMPT.format(video_id=video_id, outcome="failed")}
        {sign_of_life}""",
    )
    assert await finish_left_running(queue) == 0
    await run_sql(database_url, MINUTES_LATER)
    assert await finish_left_running(queue) == 1


@pytest.mark.usefixtures("video_id")
async def test_job_with_work_to_do_is_queued_again_and_not_closed(
    database_url: str, queue: App
) -> None:
    await run_sql(database_url, DEAD_WORKER)
    assert await finish_left_running(queue) == 0
    assert await recover_abandoned(queue) == 1
    assert await rows(database_url, JOBS) == [("portal:transcode", "todo")]


async def test_workers_that_live_renew_their_leases_before_recovery_after_an_outage(
    video_id: UUID, database_url: str, queue: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = await attempts.begin(video_id, worker="test")
    assert attempt is not None
    ran_out = "UPDATE attempts SET lease_expires_at = now() - interval '1 s';"
    await run_sql(database_url, DEAD_WORKER + ran_out)
    away_once = AsyncMock(side_effect=chain([psycopg.OperationalError], repeat(None)))
    recovered = AsyncMock(side_effect=recover_abandoned)
    monkeypatch.setattr(recovery, "limit_ends", away_once)
    monkeypatch.setattr(recovery, "recover_abandoned", recovered)
    monkeypatch.setattr(recovery, "RECOVERY_INTERVAL_S", 0.01)
    monkeypatch.setattr(recovery, "LEASE_S", 6)
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(heartbeat, "RENEWAL_S", 0)
    recovering = asyncio.create_task(recover_forever(queue, asyncio.Event()))
    beating = asyncio.create_task(Heartbeat(attempt).beat_forever())

    async def is_looked_at() -> bool:
        return recovered.await_count > 1

    await until(is_looked_at, timeout_s=20)
    recovering.cancel()
    beating.cancel()
    await asyncio.wait({recovering, beating})
    assert await rows(database_url, JOBS) == [("portal:transcode", "doing")]


async def test_poster_can_be_asked_for_after_a_worker_died_with_the_last_one(
    video_id: UUID, database_url: str, queue: App
) -> None:
    await ask_for_poster(video_id, database_url, queue)
    assert await finish_left_running(queue) == 1
