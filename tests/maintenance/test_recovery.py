"""Recovery of jobs whose worker was killed, or could not record their end."""

import asyncio
from itertools import chain, repeat
from unittest.mock import AsyncMock
from uuid import UUID

import psycopg
import pytest
from api_client import Client, answered, published, rows, run_sql
from running_portal import until

from portal.concurrency import running
from portal.database.connection import transaction
from portal.database.models import Version
from portal.features.deletion import service as deletion
from portal.features.posters import service as posters
from portal.films import attempts, progress, renditions
from portal.films.progress import Progress, attempt_heartbeat
from portal.http.composition import WebContext
from portal.maintenance import recovery
from portal.maintenance.recovery import recover, recover_forever

# The newest job is running: {began} is the time since its start, {heard_of} since the heartbeat.
RUNNING = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE
VALUES (7, now() - interval '{heard_of}');
UPDATE procrastinate_jobs SET status = 'doing', worker_id = 7
WHERE id = (SELECT max(id) FROM procrastinate_jobs);
UPDATE procrastinate_events SET at = at - interval '{began}';
"""
ATTEMPT = """
INSERT INTO attempts
  (video_id, version_id, number, worker, stage, percent, lease_expires_at, started_at)
SELECT id, version_id, 1, 'test', 'transcoding', 50, now() + interval '{lease}', now() FROM videos;
"""
READY = "UPDATE versions SET status = 'ready', published_attempt = 1, duration_s = 9"
JANITOR = """
INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock)
VALUES ('chores', 'portal:janitor', 'portal:janitor');
"""
JOBS = "SELECT task_name, status::text FROM procrastinate_jobs ORDER BY id"
DEAD = RUNNING.format(heard_of="31 s", began="31 s")

pytestmark = pytest.mark.shared_app()


@pytest.fixture
async def video_id(client: Client) -> UUID:
    """Create a video that waits for its transcode."""
    return UUID((await published(client))["id"])


@pytest.fixture
def database_url(resources: WebContext) -> str:
    return resources.config.database_url


@pytest.mark.usefixtures("video_id")
@pytest.mark.parametrize(
    ("heard_of", "began", "lease", "expected"),
    [
        ("31 s", "31 s", None, 1),
        ("5 s", "60 s", None, 0),
        # The worker could not record the job's end, or never received the job.
        ("5 s", "121 s", None, 1),
        ("5 s", "1 hour", "10 s", 0),
        ("5 s", "1 hour", "-1 s", 1),
    ],
)
async def test_job_that_no_worker_holds_runs_again(
    heard_of: str, began: str, lease: str | None, expected: int, database_url: str
) -> None:
    await run_sql(database_url, RUNNING.format(heard_of=heard_of, began=began))
    if lease:
        await run_sql(database_url, ATTEMPT.format(lease=lease))
    assert await recover() == expected
    status = "todo" if expected else "doing"
    assert await rows(database_url, JOBS) == [("portal:transcode", status)]
    assert await recover() == 0


@pytest.mark.parametrize(("began", "expected"), [("30 min", 0), ("1 hour", 1)])
async def test_storyboard_may_take_longer_than_other_side_jobs(
    began: str, expected: int, video_id: UUID, database_url: str
) -> None:
    await run_sql(database_url, "DELETE FROM procrastinate_jobs;" + READY)
    await request_storyboard(video_id)
    await run_sql(database_url, RUNNING.format(heard_of="5 s", began=began))
    assert await recover() == expected


async def request_storyboard(video_id: UUID) -> None:
    async with transaction():
        await renditions.request_storyboard(await Version.get(id=video_id))


@pytest.mark.parametrize(("since_part", "expected"), [("9 min", 0), ("11 min", 1)])
async def test_import_that_its_living_worker_lost_runs_again(
    client: Client, database_url: str, since_part: str, expected: int
) -> None:
    body = {"url": "https://example.org/a.mp4", "title": "Harbour", "categoryIds": [1]}
    await answered(await client.post("/api/imports", json=body), 202)
    aged = f"UPDATE imports SET active_at = now() - interval '{since_part}'"
    await run_sql(database_url, RUNNING.format(heard_of="5 s", began="1 hour") + aged)
    assert await recover() == expected


@pytest.mark.usefixtures("video_id")
async def test_failed_job_runs_again_unless_it_is_a_janitor_whose_next_round_is_queued(
    database_url: str,
) -> None:
    await run_sql(database_url, DEAD + "UPDATE procrastinate_jobs SET status = 'failed'")
    assert await recover() == 1
    assert await rows(database_url, JOBS) == [("portal:transcode", "todo")]
    await run_sql(database_url, "DELETE FROM procrastinate_workers;" + JANITOR + DEAD + JANITOR)
    assert await recover() == 1
    statuses = [status for _, status in await rows(database_url, JOBS)]
    assert statuses == ["todo", "aborted", "todo"]


async def test_job_of_a_deleted_video_ends_with_its_worker(
    video_id: UUID, database_url: str
) -> None:
    await run_sql(database_url, DEAD)
    await deletion.delete_video(video_id)
    assert await recover() == 1
    assert await recover() == 0
    expected = [("portal:transcode", "aborted"), ("portal:remove", "todo")]
    assert await rows(database_url, JOBS) == expected


@pytest.mark.parametrize("lost", ["video", "removal", "poster", "storyboard"])
async def test_row_whose_job_was_lost_gets_another(
    lost: str, video_id: UUID, database_url: str
) -> None:
    if lost == "removal":
        await deletion.delete_video(video_id)
    if lost in ("poster", "storyboard"):
        await run_sql(database_url, READY)
    if lost == "poster":
        await posters.request_poster(video_id, time_s=1.0)
    if lost == "storyboard":
        await request_storyboard(video_id)
    await run_sql(database_url, "DELETE FROM procrastinate_jobs")
    assert await recover() == 1
    assert await recover() == 0
    task = {"video": "transcode", "removal": "remove"}.get(lost, lost)
    assert await rows(database_url, JOBS) == [(f"portal:{task}", "todo")]


async def test_living_workers_renew_their_leases_before_recovery_after_an_outage(
    video_id: UUID, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = await attempts.begin(video_id, worker="test")
    assert attempt is not None
    ran_out = "UPDATE attempts SET lease_expires_at = now() - interval '1 s';"
    await run_sql(database_url, RUNNING.format(heard_of="5 s", began="1 hour") + ran_out)
    recovered = AsyncMock(side_effect=chain([psycopg.OperationalError], repeat(0)))
    monkeypatch.setattr(recovery, "recover", recovered)
    monkeypatch.setattr(recovery, "RECOVERY_INTERVAL_S", 0.3)
    monkeypatch.setattr(progress, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(progress, "RENEWAL_S", 0)
    beats = attempt_heartbeat(attempt, Progress()).beat_forever()
    async with running(recover_forever(asyncio.Event())), running(beats):
        await until(lambda: recovered.await_count > 1, timeout_s=20)
    assert await recover() == 0
    assert await rows(database_url, JOBS) == [("portal:transcode", "doing")]
