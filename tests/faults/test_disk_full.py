"""A worker whose disk is full hands its work back to one that has room; it fails no video."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from api_kit import rows
from fault_kit import small_disk
from portal_kit import create, final_status, make_video, process, run_portal, until

OUTCOMES = "SELECT outcome FROM attempts WHERE outcome IS NOT NULL"


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "512k") as folder:
        yield folder


async def test_worker_without_room_hands_back_what_another_then_makes(
    environ: dict[str, str], tiny_disk: Path, tmp_path: Path
) -> None:
    source = make_video(tmp_path / "source.mp4", seconds=8, size="640x360")
    database_url = environ["DATABASE_URL"]

    async def is_closed() -> bool:
        return bool(await rows(database_url, OUTCOMES))

    async with run_portal(environ, worker=False) as portal:
        video = await create(portal.base_url, source)
        cramped = {**environ, "WORK_DIR": str(tiny_disk / "work")}
        async with process("worker", cramped) as worker:
            await until(is_closed, timeout_s=90)
            assert worker.returncode is None
        assert set(await rows(database_url, OUTCOMES)) == {("handed_back",)}
        assert [path for path in tiny_disk.rglob("*") if path.is_file()] == []
        async with process("worker", environ):
            assert await final_status(portal.base_url, video["id"], timeout_s=90) == "ready"
