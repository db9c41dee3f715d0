"""The worker's promises: nothing stuck, nothing doubled, and honest reasons for what failed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import api_client
import psutil
import pytest
from api_client import ENCODING, until_found
from running_portal import LivePortal, create, final_status, process, read, until

# Attempts of the only video that workers left behind, of which they said no more.
LEFT_ATTEMPTS = """
INSERT INTO attempts (video_id, number, worker, stage, percent, lease_expires_at, started_at,
    outcome)
SELECT videos.id, number, 'gone', 'transcoding', 50, now(), now(), {outcome}
FROM videos, generate_series(1, 3) AS number
"""
Record = dict[str, Any]


@pytest.fixture
async def short(web: LivePortal, short_video: Path) -> Record:
    """A video that waits for a worker."""
    return await create(web.base_url, short_video)


@pytest.fixture
async def long(web: LivePortal, long_video: Path) -> Record:
    """A video that waits for a worker, and takes one a while."""
    return await create(web.base_url, long_video)


async def rows(portal: LivePortal, query: str) -> list[Any]:
    return await api_client.rows(portal.environ["DATABASE_URL"], query)


async def run_sql(portal: LivePortal, statement: str) -> None:
    await api_client.run_sql(portal.environ["DATABASE_URL"], statement)


async def worked_on(portal: LivePortal, video: Record) -> Record:
    """The record of a video once a worker is done with it."""
    async with process("worker", portal.environ):
        await final_status(portal.base_url, video["id"])
    return await read(portal.base_url, video["id"])


@asynccontextmanager
async def worker_in_mid_transcode(portal: LivePortal) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker that has begun to encode, for the caller to end."""
    async with process("worker", portal.environ) as worker:
        await until_found(portal.environ["DATABASE_URL"], ENCODING)
        yield worker


@pytest.mark.slow
async def test_video_that_kills_every_worker_fails_after_three_attempts(
    web: LivePortal, short: Record
) -> None:
    await run_sql(web, LEFT_ATTEMPTS.format(outcome="NULL"))
    assert (await worked_on(web, short))["status"] == "failed"
    assert await rows(web, "SELECT failure_code FROM videos") == [("transcode_failed",)]
    # Each of them is closed, and no fourth was begun.
    outcomes = "SELECT outcome, error_code FROM attempts ORDER BY number"
    assert await rows(web, outcomes) == [("failed", "worker_lost")] * 3


async def test_editor_may_have_a_failed_video_tried_again(web: LivePortal, short: Record) -> None:
    await run_sql(web, LEFT_ATTEMPTS.format(outcome="'failed'"))
    async with process("worker", web.environ):
        assert await final_status(web.base_url, short["id"]) == "failed"
        address = f"{web.base_url}/api/videos/{short['id']}/transcode"
        async with aiohttp.ClientSession() as session, session.post(address) as response:
            assert response.status == 202
        assert await final_status(web.base_url, short["id"]) == "ready"
    record = await read(web.base_url, short["id"])
    assert record["playbackUrl"].endswith("/4/master.m3u8")
    assert record["transcodeJobId"] != short["transcodeJobId"]


async def test_file_that_is_no_video_fails_with_its_reason(web: LivePortal, tmp_path: Path) -> None:
    text = tmp_path / "notes.mp4"
    text.write_text("These are notes, not a video.\n" * 100)
    record = await worked_on(web, await create(web.base_url, text))
    assert (record["status"], record["playbackUrl"]) == ("failed", "")
    [(code, message)] = await rows(web, "SELECT failure_code, failure_message FROM videos")
    assert code == "not_a_video"
    assert "MP4" in message


@pytest.mark.parametrize(
    "wrong", [("S3_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_SECRET_ACCESS_KEY", "of-another")]
)
@pytest.mark.slow
@pytest.mark.usefixtures("short")
async def test_storage_outage_costs_no_attempt(web: LivePortal, wrong: tuple[str, str]) -> None:
    handed_back = "SELECT 1 FROM attempts WHERE outcome = 'handed_back'"
    async with process("worker", {**web.environ, **dict([wrong])}):
        await until_found(web.environ["DATABASE_URL"], handed_back)
    assert await rows(web, "SELECT status FROM videos") == [("processing",)]


async def test_video_that_would_take_longer_than_is_allowed_is_refused(
    web: LivePortal, long: Record
) -> None:
    async with process("worker", {**web.environ, "MAX_TRANSCODE_S": "1"}):
        assert await final_status(web.base_url, long["id"]) == "failed"
    [(code, message)] = await rows(web, "SELECT failure_code, failure_message FROM videos")
    assert (code, "more than 1 s" in message) == ("too_much_work", True)


async def test_job_that_an_older_version_queued_is_carried_out(
    web: LivePortal, short: Record
) -> None:
    await run_sql(web, "UPDATE procrastinate_jobs SET queue_name = 'transcode'")
    assert (await worked_on(web, short))["status"] == "ready"


@pytest.mark.slow
@pytest.mark.usefixtures("long")
async def test_killed_worker_leaves_no_ffmpeg_and_its_folder_is_removed(web: LivePortal) -> None:
    async with worker_in_mid_transcode(web) as worker:
        [folder] = Path(web.environ["WORK_DIR"]).glob("worker-*")
        worker.kill()
        await worker.wait()

    async def ffmpeg_is_gone() -> bool:
        return not _processes_mentioning(str(folder))

    async def is_removed() -> bool:
        return not folder.exists()

    await until(ffmpeg_is_gone, timeout_s=10)
    async with process("worker", web.environ):
        await until(is_removed, timeout_s=15)


def _processes_mentioning(text: str) -> list[int]:
    found = psutil.process_iter(["cmdline"])
    return [process.pid for process in found if text in " ".join(process.info["cmdline"] or ())]
