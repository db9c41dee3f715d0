"""The audit itself: content with a healthy portal, and with nothing that is amiss."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from audit import Findings, audit
from fault_injection import Stack, long_source, short_source

from portal.config import Config
from portal.storage.bucket import Storage, open_storage

AMISS = """
UPDATE procrastinate_jobs SET status = 'doing'
WHERE id = (SELECT min(id) FROM procrastinate_jobs WHERE task_name = 'portal:transcode');
UPDATE videos SET complete_job_id = 1 WHERE title = 'long';
UPDATE attempts SET outcome = NULL WHERE number = 2;
UPDATE renditions SET state = 'failed' WHERE name = '240p';
"""
MENDED = """
UPDATE procrastinate_jobs SET status = 'succeeded' WHERE status = 'doing';
UPDATE videos SET complete_job_id = NULL;
UPDATE attempts SET outcome = 'published' WHERE number = 2;
UPDATE renditions SET state = 'complete' WHERE name = '240p';
"""


@pytest.fixture
async def storage(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Storage]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, stack.environ[name])
    async with open_storage(Config.from_env(stack.environ)) as storage:
        yield storage


@asynccontextmanager
async def amiss(stack: Stack, storage: Storage, video: str) -> AsyncIterator[list[str]]:
    """Everything that can be amiss at once; yields what an audit should say of it."""
    [*_, lost] = [key for key in await storage.list_some(f"hls/{video}/1/") if ".m4s" in key]
    kept = await storage.get(lost)
    await storage.delete(lost)
    stray = f"hls/{uuid4()}/1/master.m3u8"
    await storage.put(stray, b"", content_type="text/plain")
    await stack.execute(AMISS)
    left = Path(stack.environ["WORK_DIR"]) / "worker-1" / "tmp" / "00000.m4s"
    left.parent.mkdir(parents=True)
    left.touch()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import time; time.sleep(60)", str(stack.folder))
    )
    try:
        yield [
            f"names {lost.rpartition('/')[2]}, which is missing",
            f"{stray} belongs to nothing",
            "portal:transcode is left doing",
            f"video {stack.accepted[1].id} is still being completed",
            f"attempt 2 of {stack.accepted[1].id} is open",
            "240p is played, and not complete",
            f"left in the work folder: {left}",
            f"left running: {process.pid}",
        ]
    finally:
        process.kill()
        await process.wait()
        left.unlink()
        await stack.execute(MENDED)
        await storage.delete(stray)
        await storage.put(lost, kept, content_type="video/mp4")


@pytest.mark.soak
async def test_audit_finds_all_that_is_amiss_and_nothing_else(
    stack: Stack, storage: Storage, tmp_path: Path
) -> None:
    short = await stack.publish(short_source(tmp_path))
    await stack.publish(long_source(tmp_path))
    assert await stack.settle_and_audit() == Findings()

    async with amiss(stack, storage, short.id) as expected:
        with pytest.raises(AssertionError) as found:
            await audit(stack.scene)
    told = str(found.value)
    assert [each for each in expected if each not in told] == []

    superseded = f"hls/{short.id}/7/180p/init.mp4"
    await storage.put(superseded, b"", content_type="video/mp4")
    assert await audit(stack.scene) == Findings(superseded=[superseded])
    with pytest.raises(AssertionError, match=f"left in storage: {superseded}"):
        await audit(stack.scene, superseded_stay=False)

    lost = replace(short, id=str(uuid4()))
    with pytest.raises(AssertionError) as found:
        await audit(replace(stack.scene, accepted=[lost, stack.accepted[1]]))
    assert f"video {lost.id} is lost" in str(found.value)
    assert f"nobody was told of video {short.id}" in str(found.value)
