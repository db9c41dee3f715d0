"""A full disk of a worker: no video fails, and nothing is left."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from api_client import rows, until_found
from fault_injection import small_disk
from running_portal import (
    create,
    final_status,
    make_video,
    process,
    run_portal,
)

OUTCOMES = "SELECT outcome FROM attempts WHERE outcome IS NOT NULL"


@pytest.fixture
def disk(tmp_path: Path, size: str) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size) as folder:
        yield folder


@pytest.mark.parametrize("size", ["512k"])
async def test_worker_without_room_hands_back_what_another_then_makes(
    environ: dict[str, str], disk: Path, tmp_path: Path
) -> None:
    source = make_video(tmp_path / "source.mp4", seconds=8, size="640x360", copyable=False)
    database_url = environ["DATABASE_URL"]
    async with run_portal(environ, worker=False) as portal:
        video = await create(portal.base_url, source)
        cramped = {**environ, "WORK_DIR": str(disk / "work")}
        async with process("worker", cramped) as worker:
            await until_found(database_url, OUTCOMES, timeout_s=90)
            assert worker.returncode is None
        assert set(await rows(database_url, OUTCOMES)) == {("handed_back",)}
        assert [path for path in disk.rglob("*") if path.is_file()] == []
        async with process("worker", environ):
            assert await final_status(portal.base_url, video["id"], timeout_s=90) == "ready"
