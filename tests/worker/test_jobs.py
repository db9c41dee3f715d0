"""Jobs of the worker: no job is stuck, and there are pauses between tries."""

import asyncio
import os
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from api_client import rows, run_sql
from procrastinate.jobs import Job
from running_portal import LivePortal, create, final_status, process

from portal.errors import StorageUnavailable
from portal.transcoding.errors import DiskFull
from portal.worker.run import (
    IMPORT_CONCURRENCY,
    WEBHOOK_CONCURRENCY,
    Retries,
    bound_cores,
    open_threads,
)

# Adds abandoned attempts at the only video.
LEFT_ATTEMPTS = """
INSERT INTO attempts
  (video_id, version_id, number, worker, stage, percent, lease_expires_at, started_at)
SELECT videos.id, version_id, number, 'gone', 'transcoding', 50, now(), now()
FROM videos, generate_series(1, 3) AS number
"""


@pytest.mark.slow
async def test_video_that_kills_every_worker_fails_after_three_attempts(
    web: LivePortal, short_video: Path
) -> None:
    video = await create(web.base_url, short_video)
    url = web.environ["DATABASE_URL"]
    await run_sql(url, LEFT_ATTEMPTS)
    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"]) == "failed"
    assert await rows(url, "SELECT failure_code FROM videos") == [("transcode_failed",)]
    # Each attempt is closed, and no fourth one was begun.
    outcomes = "SELECT outcome, error_code FROM attempts ORDER BY number"
    assert await rows(url, outcomes) == [("failed", "worker_lost")] * 3


def pause_s(exception: BaseException, *, tried: int = 0) -> float:
    """Return the pause of a job after this many earlier tries."""
    name = {"queue": "transcode", "task_name": "portal:transcode"}
    job = Job(id=1, lock=None, queueing_lock=None, attempts=tried, **name)
    decision = Retries().get_retry_decision(exception=exception, job=job)
    assert decision.retry_at is not None
    return (decision.retry_at - datetime.now(UTC)).total_seconds()


@pytest.mark.parametrize("exception", [StorageUnavailable(), DiskFull(Path("work"))])
def test_pauses_of_an_outage_grow_to_two_minutes(exception: Exception) -> None:
    assert 3 <= pause_s(exception) <= 10
    assert 35 <= pause_s(exception, tried=3) <= 80
    for tried in (6, 7, 100):
        assert 55 <= pause_s(exception, tried=tried) <= 120


async def test_unreachable_name_servers_hold_up_no_other_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(60) and [])
    open_threads()
    loop = asyncio.get_running_loop()
    slots = WEBHOOK_CONCURRENCY + IMPORT_CONCURRENCY
    lookups = [loop.getaddrinfo(f"{number}.example", 443) for number in range(slots)]
    waiting = asyncio.gather(*lookups)
    try:
        async with asyncio.timeout(30):
            assert await asyncio.to_thread(lambda: "done") == "done"
        assert not waiting.done()
    finally:
        answered.set()
        await waiting


def test_worker_keeps_to_its_cores(tmp_path: Path) -> None:
    present = os.sched_getaffinity(0)
    limit = tmp_path / "cpu.max"
    try:
        for setting, text, count in (
            (1, "max 100000", 1),
            (0, "50000 100000", 1),
            (0, "150000 100000", min(2, len(present))),
            (0, "max 100000", len(present)),
            (64, "", len(present)),
        ):
            os.sched_setaffinity(0, present)
            limit.write_text(text)
            bound_cores(setting, limit)
            assert len(os.sched_getaffinity(0)) == count, (setting, text)
    finally:
        os.sched_setaffinity(0, present)
