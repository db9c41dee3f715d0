"""Jobs of the worker: no job is stuck, and there are pauses between tries."""

import asyncio
import os
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from api_client import rows, run_sql, until_found
from procrastinate.jobs import Job
from running_portal import LivePortal, create, final_status, process, read, run_ffmpeg

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
# Finds an attempt whose ffmpeg runs.
ENCODING = "SELECT 1 FROM attempts WHERE outcome IS NULL AND stage = 'transcoding'"
# Limits on an otherwise idle machine.
REFUSED_WITHIN_S = 5
COPIED_WITHIN_S = 6


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


@pytest.mark.slow
@pytest.mark.soak
async def test_files_that_need_no_encoder_do_not_wait_for_a_film(
    web: LivePortal, short_video: Path, tmp_path: Path
) -> None:
    """Twenty minutes of 1080p60 take the only slot for encodes."""
    picture = ("-f", "lavfi", "-i", "smptehdbars=size=1920x1080:rate=60:duration=1")
    second = run_ffmpeg(tmp_path / "second.mp4", *picture, "-c:v", "mpeg4")
    looped = ("-stream_loop", "1199", "-i", str(second), "-c", "copy")
    film = await create(web.base_url, run_ffmpeg(tmp_path / "film.mp4", *looped))
    sound = ("-f", "lavfi", "-i", "sine=duration=2", "-c:a", "aac")
    expected = [
        (run_ffmpeg(tmp_path / "sound.mp4", *sound), "failed", REFUSED_WITHIN_S),
        (short_video, "ready", COPIED_WITHIN_S),
    ]
    async with process("worker", {**web.environ, "WORKER_CONCURRENCY": "1"}):
        await until_found(web.environ["DATABASE_URL"], ENCODING)
        for file, status, within_s in expected:
            video = await create(web.base_url, file)
            assert await final_status(web.base_url, video["id"], timeout_s=within_s) == status
        assert (await read(web.base_url, film["id"]))["status"] == "processing"


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
