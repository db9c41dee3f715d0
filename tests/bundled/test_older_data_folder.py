"""`portal up` opens a data folder as version 0.4.0 left it, with jobs in its queue.

`data_folder_0_4_0.tar.gz` is such a folder, made by 0.4.0 itself: a video that is ready, one that
waits for its transcoding, one whose deletion waits. The database is in it as SQL, since a cluster
is large; names of the machine and keys are replaced.
"""

import tarfile
from pathlib import Path

import pytest
from api_client import run_sql
from running_portal import embedded_services, final_status, first_segment, read, until
from running_up import running

RECORDED = Path(__file__).with_name("data_folder_0_4_0.tar.gz")
READY = "ccdac040-b12e-40f3-a9bc-a4c2f280fb89"
WAITING = "73742911-6403-41b3-81e2-9f5fdfc5d726"
DELETED = "0bcc98d7-c20c-4361-9eac-837bdfa5e7ab"


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """The recorded folder, its database made from the SQL in it."""
    data = tmp_path / "data"
    with tarfile.open(RECORDED) as archive:
        archive.extractall(data, filter="data")
    async with embedded_services(data, storage=False) as environ:
        await run_sql(environ["DATABASE_URL"], (data / "database.sql").read_text())
    return data


@pytest.mark.slow
async def test_videos_of_0_4_0_play_and_its_jobs_are_carried_out(data: Path) -> None:
    async with running(data) as portal:
        await first_segment((await read(portal.address, READY))["playbackUrl"])
        assert await final_status(portal.address, WAITING) == "ready"
        await first_segment((await read(portal.address, WAITING))["playbackUrl"])
        assert await portal.status(f"/api/videos/{DELETED}") == 404
        files = data / "objects" / "portal" / "hls" / DELETED
        await until(lambda: not any(it.is_file() for it in files.rglob("*")), timeout_s=30)
        code, _ = await portal.stop()
    assert code == 0
    assert "Traceback" not in portal.said
