"""Who goes on with a worker's work, how soon, and that no two finish the same.

Leases run out by themselves here.
"""

import os
import signal
from collections import Counter

import pytest
from api_client import until_found
from fault_injection import WORKERS, Source, Stack
from running_portal import make_video, until

pytestmark = pytest.mark.soak

TAKEOVER_LIMIT_S = 60.0
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


async def test_killed_worker_is_taken_over_in_time(
    stack: Stack, busy: Source, fault_tally: Counter[str]
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


async def test_frozen_worker_discards_what_another_has_made(
    stack: Stack, busy: Source, fault_tally: Counter[str]
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
