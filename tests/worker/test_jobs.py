"""The worker's promises: nothing stuck, nothing doubled, and honest reasons for what failed."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest
from running_portal import (
    LivePortal,
    create,
    final_status,
    process,
    read,
    run_portal,
    until,
)

from portal.worker.run import remove_leftovers

TRANSCODES = "SELECT status FROM procrastinate_jobs WHERE task_name = 'portal:transcode'"


@pytest.fixture
async def web(environ: dict[str, str]) -> AsyncIterator[LivePortal]:
    """A portal without a worker, so that tests start and kill their own."""
    async with run_portal(environ, worker=False) as portal:
        yield portal


async def rows(portal: LivePortal, query: str) -> list[Any]:
    async with await psycopg.AsyncConnection.connect(portal.environ["DATABASE_URL"]) as connection:
        return await (await connection.execute(query)).fetchall()


@asynccontextmanager
async def worker_in_mid_transcode(
    portal: LivePortal,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker that has begun to encode, for the caller to end."""

    async def is_encoding() -> bool:
        found = await rows(
            portal, "SELECT 1 FROM attempts WHERE outcome IS NULL AND stage = 'transcoding'"
        )
        return bool(found)

    async with process("worker", portal.environ) as worker:
        await until(is_encoding, timeout_s=30)
        yield worker


@pytest.mark.slow
async def test_stopped_worker_hands_its_video_back_at_once(
    web: LivePortal, long_video: Path
) -> None:
    video = await create(web.base_url, long_video)
    async with worker_in_mid_transcode(web) as worker:
        worker.terminate()
        async with asyncio.timeout(8):
            assert await worker.wait() == 0
    assert await rows(web, "SELECT outcome FROM attempts") == [("handed_back",)]
    assert await rows(web, TRANSCODES) == [("todo",)]
    assert (await read(web.base_url, video["id"]))["status"] == "processing"

    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"]) == "ready"
    record = await read(web.base_url, video["id"])
    assert record["transcodeJobId"] == video["transcodeJobId"]
    assert record["playbackUrl"].endswith(f"/hls/{video['id']}/2/master.m3u8")


@pytest.mark.slow
async def test_killed_worker_is_taken_over_within_its_lease(
    web: LivePortal, long_video: Path
) -> None:
    video = await create(web.base_url, long_video)
    async with worker_in_mid_transcode(web) as worker:
        worker.kill()
        assert await worker.wait() == -signal.SIGKILL
    assert await rows(web, TRANSCODES) == [("doing",)]

    async def is_taken_over() -> bool:
        return bool(await rows(web, "SELECT 1 FROM attempts WHERE number = 2"))

    async with process("worker", web.environ):
        await until(is_taken_over, timeout_s=30)
        assert await final_status(web.base_url, video["id"]) == "ready"
    outcomes = "SELECT outcome, error_code FROM attempts WHERE number < 3 ORDER BY number"
    assert await rows(web, outcomes) == [("failed", "worker_lost"), ("published", None)]
    jobs = "SELECT id FROM procrastinate_jobs WHERE task_name = 'portal:transcode'"
    assert await rows(web, jobs) == [(int(video["transcodeJobId"]),)]


@pytest.mark.slow
async def test_frozen_worker_finds_its_lease_lost_and_discards_its_work(
    web: LivePortal, long_video: Path
) -> None:
    video = await create(web.base_url, long_video)
    async with worker_in_mid_transcode(web) as worker:
        worker.send_signal(signal.SIGSTOP)
        # What a passing of the lease looks like, without waiting for it.
        await rows_changed(web, "UPDATE attempts SET lease_expires_at = now() - interval '1 s'")
        await rows_changed(web, "UPDATE procrastinate_events SET at = at - interval '60 s'")
        async with process("worker", web.environ):
            assert await final_status(web.base_url, video["id"]) == "ready"
        before = await read(web.base_url, video["id"])
        worker.send_signal(signal.SIGCONT)
        worker.terminate()
        await worker.wait()
    assert await read(web.base_url, video["id"]) == before
    assert before["playbackUrl"].endswith("/2/master.m3u8")


async def rows_changed(portal: LivePortal, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(
        portal.environ["DATABASE_URL"], autocommit=True
    ) as connection:
        await connection.execute(statement)


@pytest.mark.slow
async def test_video_that_kills_every_worker_fails_after_three_attempts(
    web: LivePortal, short_video: Path
) -> None:
    video = await create(web.base_url, short_video)
    await rows_changed(
        web,
        f"""INSERT INTO attempts (video_id, number, worker, stage, percent, lease_expires_at,
            started_at) SELECT '{video["id"]}', n, 'gone', 'transcoding', 50, now(), now()
            FROM generate_series(1, 3) AS n""",
    )
    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"]) == "failed"
    assert await rows(web, "SELECT failure_code FROM videos") == [("transcode_failed",)]
    # Each of them is closed, and no fourth was begun.
    outcomes = "SELECT outcome, error_code FROM attempts ORDER BY number"
    assert await rows(web, outcomes) == [("failed", "worker_lost")] * 3


async def test_editor_may_have_a_failed_video_tried_again(
    web: LivePortal, short_video: Path
) -> None:
    video = await create(web.base_url, short_video)
    await rows_changed(
        web,
        f"""INSERT INTO attempts (video_id, number, worker, stage, percent, lease_expires_at,
            started_at, outcome) SELECT '{video["id"]}', n, 'gone', 'transcoding', 50, now(),
            now(), 'failed' FROM generate_series(1, 3) AS n""",
    )
    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"]) == "failed"
        address = f"{web.base_url}/api/videos/{video['id']}/transcode"
        async with aiohttp.ClientSession() as session, session.post(address) as response:
            assert response.status == 202
        assert await final_status(web.base_url, video["id"]) == "ready"
    record = await read(web.base_url, video["id"])
    assert record["playbackUrl"].endswith("/4/master.m3u8")
    assert record["transcodeJobId"] != video["transcodeJobId"]


async def test_file_that_is_no_video_fails_with_its_reason(web: LivePortal, tmp_path: Path) -> None:
    text = tmp_path / "notes.mp4"
    text.write_text("These are notes, not a video.\n" * 100)
    video = await create(web.base_url, text)
    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"], timeout_s=20) == "failed"
    record = await read(web.base_url, video["id"])
    assert record["playbackUrl"] == ""
    [(code, message)] = await rows(web, "SELECT failure_code, failure_message FROM videos")
    assert code == "not_a_video"
    assert "MP4" in message


@pytest.mark.slow
async def test_source_replaced_after_creation_is_not_transcoded(
    web: LivePortal, short_video: Path
) -> None:
    video = await create(web.base_url, short_video)
    await rows_changed(web, "UPDATE videos SET source_etag = '\"another\"'")
    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"]) == "failed"
    assert await rows(web, "SELECT failure_code FROM videos") == [("source_changed",)]


@pytest.mark.parametrize(
    "wrong", [("S3_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_SECRET_ACCESS_KEY", "of-another")]
)
@pytest.mark.slow
async def test_storage_outage_costs_no_attempt(
    web: LivePortal, short_video: Path, wrong: tuple[str, str]
) -> None:
    await create(web.base_url, short_video)
    without_storage = {**web.environ, **dict([wrong])}

    async def is_handed_back() -> bool:
        return ("handed_back",) in await rows(web, "SELECT outcome FROM attempts")

    async with process("worker", without_storage):
        await until(is_handed_back, timeout_s=30)
    assert await rows(web, "SELECT status FROM videos") == [("processing",)]


async def test_job_lost_from_the_queue_is_replaced(web: LivePortal, short_video: Path) -> None:
    video = await create(web.base_url, short_video)
    await rows_changed(web, "DELETE FROM procrastinate_jobs")
    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"]) == "ready"
    record = await read(web.base_url, video["id"])
    assert record["transcodeJobId"] != video["transcodeJobId"]


@pytest.mark.slow
async def test_killed_worker_leaves_no_ffmpeg_and_its_folder_is_removed(
    web: LivePortal, long_video: Path
) -> None:
    await create(web.base_url, long_video)
    work_dir = Path(web.environ["WORK_DIR"])
    async with worker_in_mid_transcode(web) as worker:
        [folder] = work_dir.glob("worker-*")
        worker.kill()
        await worker.wait()

    async def ffmpeg_is_gone() -> bool:
        return not _processes_mentioning(str(folder))

    await until(ffmpeg_is_gone, timeout_s=10)
    async with process("worker", web.environ):

        async def is_removed() -> bool:
            return not folder.exists()

        await until(is_removed, timeout_s=15)


@pytest.mark.slow
def test_starting_worker_removes_also_what_its_own_process_id_left(tmp_path: Path) -> None:
    """In a container every worker is process 1."""
    of_this_id, of_a_living, of_a_dead = (
        tmp_path / f"worker-{name}" for name in (os.getpid(), os.getppid(), "gone")
    )
    for folder in (of_this_id, of_a_living, of_a_dead):
        (folder / "tmpabc").mkdir(parents=True)
        (folder / "tmpabc" / "00001.m4s").write_bytes(b"left")

    remove_leftovers(tmp_path)

    assert list(tmp_path.iterdir()) == [of_a_living]
    assert (of_a_living / "tmpabc" / "00001.m4s").read_bytes() == b"left"


def _processes_mentioning(text: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if text in command:
            found.append(command)
    return found
