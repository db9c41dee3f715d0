"""A full disk, of a worker or of the storage server: no video fails, and nothing is half there."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from api_client import rows, until_found
from fault_injection import small_disk
from running_portal import (
    create,
    embedded_services,
    final_status,
    make_video,
    process,
    run_portal,
    until,
)
from storage_proxy import send

# What is left of storage's disk beside a source: too little for what is made of it.
ROOM_BYTES = 100_000
TOO_LARGE_BYTES = 4_000_000
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


@pytest.mark.soak
@pytest.mark.parametrize("size", ["24m"])
async def test_full_storage_takes_nothing_by_halves_and_goes_on_once_there_is_room(
    environ: dict[str, str], disk: Path, tmp_path: Path
) -> None:
    source = make_video(tmp_path / "source.mp4", seconds=8, size="640x360", copyable=False)
    database_url = environ["DATABASE_URL"]
    async with (
        embedded_services(disk, database=False) as storage,
        run_portal({**environ, **storage}, worker=False) as portal,
    ):
        filler = disk / "filler"
        left = shutil.disk_usage(disk).free - source.stat().st_size - ROOM_BYTES
        filler.write_bytes(bytes(left))
        await expect_no_half_upload(portal.base_url, disk)

        video = await create(portal.base_url, source)
        async with process("worker", {**portal.environ, "WORK_DIR": str(tmp_path / "work")}):
            await until_found(database_url, OUTCOMES, timeout_s=90)
            filler.unlink()
            assert await final_status(portal.base_url, video["id"], timeout_s=120) == "ready"
    outcomes = {outcome for (outcome,) in await rows(database_url, OUTCOMES)}
    assert outcomes == {"handed_back", "published"}


async def expect_no_half_upload(base_url: str, disk: Path) -> None:
    """What does not fit is refused, can't be published, and takes no room."""
    free = shutil.disk_usage(disk).free
    named = {"fileName": "large.mp4", "contentType": "video/mp4"}
    details = {"title": "Large", "description": "", "categoryIds": [1], "tags": ""}
    async with aiohttp.ClientSession(base_url) as session:
        async with session.post("/api/videos/presign", json=named) as answer:
            upload = await answer.json()
        assert await send(upload["uploadUrl"], bytes(TOO_LARGE_BYTES)) >= 500
        body = {**details, "fileName": "large.mp4", "key": upload["key"]}
        async with session.post("/api/videos", json=body) as answer:
            assert (answer.status, (await answer.json())["code"]) == (409, "upload_not_found")

    async def is_free_again() -> bool:
        return shutil.disk_usage(disk).free >= free - 4096

    await until(is_free_again, timeout_s=20)
