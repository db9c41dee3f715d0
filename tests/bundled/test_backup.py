"""The documented commands for backup and restore, executed while a portal works."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from api_client import run_sql
from command_line import portal, run_program
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

from portal.bundled.data_folder import load_environment

PAGE = (Path(__file__).parents[2] / "docs/operations.md").read_text()
BACKUP_SECTION = PAGE.partition("\n## Backup")[2].partition("\n## ")[0]
TOOLS, BACKUP_UP, RESTORE_UP, RESTORE_UP_DATABASE, BACKUP_S3, RESTORE_S3, CHECK_S3 = re.findall(
    r"```sh\n(.+?)```", BACKUP_SECTION, re.DOTALL
)
# Backups are restored later than the leases in them end.
HOURS_LATER = """
UPDATE procrastinate_workers SET last_heartbeat = last_heartbeat - interval '3 hours';
UPDATE attempts SET lease_expires_at = lease_expires_at - interval '3 hours' WHERE outcome IS NULL;
UPDATE pass_parts SET lease_expires_at = lease_expires_at - interval '3 hours' WHERE NOT is_done
"""


@pytest.mark.slow
@pytest.mark.soak
async def test_running_portal_up_is_backed_up_and_restored_elsewhere(
    short_video: Path, slow_video: Path, tmp_path: Path
) -> None:
    place, other = _places(tmp_path)
    async with running(place / "data") as live:
        ids = await _three_videos(live.address, short_video, slow_video)
        # The video must not be ready before the backup is complete.
        worker = live.children()["worker"]
        worker.suspend()
        await _shell(place, BACKUP_UP)
        assert (await read(live.address, ids["processing"]))["status"] == "processing"
        worker.resume()
    (place / "backup").rename(other / "backup")
    (other / "data").mkdir()
    await _shell(other, RESTORE_UP)
    async with running(other / "data"):
        await _shell(other, RESTORE_UP_DATABASE)
        await run_sql(load_environment(other / "data")["DATABASE_URL"], HOURS_LATER)
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
        first = {**database, **server.environ, "WORK_DIR": str(tmp_path / "work")}
        second = {**first, **new_database, **fresh.environ}
        async with run_portal(first) as live:
            ids = await _three_videos(live.base_url, short_video, long_video)
            remotes = {**_remote("live", first), **_remote("backup", second)}
            await _shell(place, BACKUP_S3, {**first, **remotes})
            assert (await read(live.base_url, ids["processing"]))["status"] == "processing"
        remotes = {**_remote("live", second), **_remote("backup", second)}
        await _shell(place, RESTORE_S3, {**second, **remotes})
        await _shell(place, CHECK_S3, {**second, **remotes})
        async with run_portal(second) as restored:
            await _check_restored(restored.base_url, ids)
            code, out, err = await portal(restored.environ, "doctor", "--deep")
            assert code == 0, out + err


def _places(folder: Path) -> tuple[Path, Path]:
    """Create two folders as after an installation, with the environment as `.venv`."""
    folder.chmod(0o755)
    for name in ("here", "there"):
        (folder / name).mkdir()
        (folder / name / ".venv").symlink_to(sys.prefix)
    return folder / "here", folder / "there"


async def _three_videos(address: str, short_video: Path, film: Path) -> dict[str, str]:
    """Create a ready, a failed and a processing video; the last one has just begun."""
    broken = short_video.with_name("broken.mp4")
    broken.write_bytes(b"no video at all")
    ready = await create(address, short_video, title="Ready")
    failed = await create(address, broken, title="Broken")
    assert await final_status(address, ready["id"], timeout_s=120) == "ready"
    assert await final_status(address, failed["id"], timeout_s=120) == "failed"
    processing = await create(address, film, title="Processing")

    async def has_begun() -> bool:
        stage = (await call("GET", f"{address}/api/videos/{processing['id']}/transcode"))["stage"]
        return stage == "transcoding"

    await until(has_begun, timeout_s=120)
    return {"ready": ready["id"], "failed": failed["id"], "processing": processing["id"]}


async def _check_restored(address: str, ids: Mapping[str, str]) -> None:
    """Check that the ready video plays, and that the processing one gets ready."""
    record = await read(address, ids["ready"])
    assert (record["status"], record["title"]) == ("ready", "Ready")
    assert await first_segment(record["playbackUrl"])
    assert (await read(address, ids["failed"]))["status"] == "failed"
    assert await final_status(address, ids["processing"], timeout_s=180) == "ready"
    record = await read(address, ids["processing"])
    assert await first_segment(record["playbackUrl"])


async def _shell(place: Path, commands: str, environ: Mapping[str, str] | None = None) -> None:
    """Run shell commands in a folder."""
    code, out, err = await run_program(
        *("/bin/sh", "-euc", f"{TOOLS}\n{commands}"),
        cwd=place,
        env={"HOME": str(place), "RCLONE_CONFIG": "", **environment(), **(environ or {})},
    )
    assert code == 0, out + err


def _remote(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables that configure a server for rclone."""
    settings = {
        "TYPE": "s3",
        "PROVIDER": "Other",
        "ENDPOINT": environ["S3_ENDPOINT_URL"],
        "ACCESS_KEY_ID": environ["AWS_ACCESS_KEY_ID"],
        "SECRET_ACCESS_KEY": environ["AWS_SECRET_ACCESS_KEY"],
    }
    return {f"RCLONE_CONFIG_{name.upper()}_{key}": value for key, value in settings.items()}
