"""Who goes on with a worker's work, how soon, and that no two finish the same.

`test_jobs.py` has each case once, with leases cut short; here they run out by themselves.
"""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from api_client import until_found
from fault_injection import WORKERS, Source, Stack, long_source
from running_portal import make_video, until

pytestmark = pytest.mark.soak

TAKEOVER_LIMIT_S = 30.0
# Far less than a lease, which is 20 s.
HANDOVER_LIMIT_S = 10.0
SETTLED_S = 300.0

RUNNING = "SELECT worker FROM attempts WHERE video_id = %s AND outcome IS NULL AND percent > 0"
# Each attempt with the seconds from its end to the beginning of the next.
HISTORY = """
SELECT outcome, error_code,
       extract(epoch FROM lead(started_at) OVER (ORDER BY number) - finished_at)::float
FROM attempts WHERE video_id = %s ORDER BY number
"""


async def worker_of(stack: Stack, video_id: str) -> str:
    found: list[tuple[str]] = []

    async def is_running() -> bool:
        found[:] = await stack.rows(RUNNING, video_id)
        return bool(found)

    await until(is_running, timeout_s=SETTLED_S, interval_s=0.02)
    pid = int(found[0][0].rpartition(":")[2])
    [name] = [name for name in WORKERS if stack.pid(name) == pid]
    return name


async def until_begun(stack: Stack, video_id: str, number: int) -> None:
    query = "SELECT 1 FROM attempts WHERE video_id = %s AND number >= %s"
    database_url = stack.environ["DATABASE_URL"]
    await until_found(database_url, query, video_id, number, timeout_s=SETTLED_S)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("media")
    return Source(
        make_video(folder / "busy.mp4", seconds=20, size="1280x720", copyable=False), 20.0
    )


@pytest.mark.parametrize("_round", range(8))
async def test_stopped_worker_hands_over_at_once(
    _round: int, stack: Stack, busy: Source, fault_tally: Counter[str]
) -> None:
    video = await stack.publish(busy)
    stack.signal(await worker_of(stack, video.id), signal.SIGTERM)
    await until_begun(stack, video.id, 2)
    [(outcome, code, pause_s), *_] = await stack.rows(HISTORY, video.id)
    assert (outcome, code) == ("handed_back", None)
    assert pause_s < HANDOVER_LIMIT_S
    await stack.settle_and_audit()
    fault_tally["stop worker"] += 1


@pytest.mark.parametrize("_round", range(5))
async def test_killed_worker_is_taken_over_in_time(
    _round: int, stack: Stack, busy: Source, fault_tally: Counter[str]
) -> None:
    video = await stack.publish(busy)
    stack.signal(await worker_of(stack, video.id), signal.SIGKILL)
    [(killed_at,)] = await stack.rows("SELECT now()")
    await until_begun(stack, video.id, 2)
    query = "SELECT started_at FROM attempts WHERE video_id = %s AND number = 2"
    [(taken_over_at,)] = await stack.rows(query, video.id)
    assert (taken_over_at - killed_at).total_seconds() < TAKEOVER_LIMIT_S
    await stack.settle_and_audit()
    fault_tally["kill worker"] += 1


@pytest.mark.parametrize("_round", range(3))
async def test_frozen_worker_discards_what_another_has_made(
    _round: int, stack: Stack, busy: Source, fault_tally: Counter[str]
) -> None:
    """Frozen for longer than its lease, and longer than the queue waits for its heartbeat."""
    video = await stack.publish(busy)
    name = await worker_of(stack, video.id)
    frozen = stack.pid(name)
    assert frozen is not None
    os.kill(frozen, signal.SIGSTOP)
    try:
        await until_begun(stack, video.id, 2)
        query = "SELECT 1 FROM videos WHERE id = %s AND status = 'ready'"
        database_url = stack.environ["DATABASE_URL"]
        await until_found(database_url, query, video.id, timeout_s=SETTLED_S)
    finally:
        os.kill(frozen, signal.SIGCONT)
    await stack.settle_and_audit()
    [(outcome, code, _), *_] = await stack.rows(HISTORY, video.id)
    assert (outcome, code) == ("failed", "worker_lost")
    published = "SELECT published_attempt FROM videos WHERE id = %s"
    assert await stack.rows(published, video.id) == [(2,)]
    fault_tally["freeze worker beyond its lease"] += 1


async def test_poisonous_file_is_failed_after_three_attempts_and_starves_nobody(
    stack: Stack, busy: Source, tmp_path: Path, fault_tally: Counter[str]
) -> None:
    """Whoever works on it dies; the others' videos become ready meanwhile."""
    poison = await stack.publish(busy, is_intact=False)
    others = [await stack.publish(long_source(tmp_path)) for _ in range(2)]
    for number in (1, 2, 3):
        await until_begun(stack, poison.id, number)
        stack.signal(await worker_of(stack, poison.id), signal.SIGKILL)
        fault_tally["poisonous attempts"] += 1
        if number == 2:
            ids = [video.id for video in others]
            query = "SELECT count(*) FROM videos WHERE id = ANY(%s::uuid[]) AND status = 'ready'"
            assert await stack.rows(query, ids) == [(2,)]
    await stack.settle_and_audit()
    query = "SELECT status, failure_code FROM videos WHERE id = %s"
    assert await stack.rows(query, poison.id) == [("failed", "transcode_failed")]
