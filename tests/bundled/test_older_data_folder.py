"""`portal up` opens a data folder as version 0.4.0 left it, with jobs in its queue.

`data_folder_0_4_0.tar.gz` is such a folder, made by 0.4.0 itself: a video that is ready, one that
waits for its transcoding, one whose deletion waits. The database is in it as SQL, since a cluster
is large; names of the machine and keys are replaced.
"""

import json
import signal
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urljoin

import aiohttp
import psutil
import psycopg
import pytest
from bundled_parts import embedded_services
from running_portal import final_status, read, until
from running_up import running

RECORDED = Path(__file__).with_name("data_folder_0_4_0.tar.gz")
READY = "ccdac040-b12e-40f3-a9bc-a4c2f280fb89"
WAITING = "73742911-6403-41b3-81e2-9f5fdfc5d726"
DELETED = "0bcc98d7-c20c-4361-9eac-837bdfa5e7ab"
SLEEPER = (sys.executable, "-S", "-c", "import signal; signal.pause()")


@pytest.fixture
async def data() -> AsyncIterator[Path]:
    """The recorded folder, its database made from the SQL in it."""
    with TemporaryDirectory(prefix="portal-test-") as folder:
        data = Path(folder) / "data"
        with tarfile.open(RECORDED) as archive:
            archive.extractall(data, filter="data")
        async with embedded_services(data, storage=False) as environ:
            statements = (data / "database.sql").read_bytes()
            async with await psycopg.AsyncConnection.connect(environ["DATABASE_URL"]) as connection:
                await connection.execute(statements)
        yield data


async def test_videos_of_0_4_0_play_and_its_jobs_are_carried_out(data: Path) -> None:
    async with running(data) as portal:
        await check_plays(portal.address, READY)
        assert await final_status(portal.address, WAITING) == "ready"
        await check_plays(portal.address, WAITING)
        assert await portal.status(f"/api/videos/{DELETED}") == 404
        files = data / "objects" / "portal" / "hls" / DELETED
        await until(lambda: is_empty(files), timeout_s=30)
        code, _ = await portal.stop()
    assert code == 0
    assert "Traceback" not in portal.said


@pytest.mark.slow
async def test_processes_that_0_4_0_left_running_are_ended(data: Path) -> None:
    orphan = subprocess.Popen(SLEEPER)  # noqa: ASYNC220  # asyncio would wait for it as well
    started = psutil.Process(orphan.pid).create_time()
    (data / "children").write_text(json.dumps([[orphan.pid, started, int(signal.SIGTERM)]]))
    async with running(data):
        assert orphan.wait(timeout=0) == -signal.SIGTERM


async def check_plays(address: str, video_id: str) -> None:
    """Follow the playlists down to a segment."""
    url = (await read(address, video_id))["playbackUrl"]
    async with aiohttp.ClientSession() as session:
        for _ in range(3):  # master playlist, media playlist, segment
            async with session.get(url) as answer:
                assert answer.status == 200
                body = await answer.read()
            if body.startswith(b"#EXTM3U"):
                lines = body.decode().splitlines()
                url = urljoin(url, next(line for line in lines if line and line[0] != "#"))
    assert body[4:8] in (b"styp", b"moof", b"sidx")


async def is_empty(folder: Path) -> bool:
    return not any(path.is_file() for path in folder.rglob("*"))
