"""Running portals, separate databases, small videos, and waiting for conditions."""

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from inspect import isawaitable
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urljoin
from uuid import uuid4

import aiohttp
import imageio_ffmpeg
import psycopg
import pytest

from portal.bundled import addresses
from portal.bundled.data_folder import open_data_folder
from portal.bundled.postgres import release_socket_folder
from portal.bundled.up import start_embedded
from portal.config import Config
from portal.database.schema import migrate
from portal.processes.supervisor import running_children

LOOPBACK = "127.0.0.1"
IMPRINT = "https://example.org/imprint"
TEMPLATE = "portal_template"
# Factor from the time on an idle machine to the time limit, which only a failure reaches.
SLOWDOWN = 10
# Pause between two looks at a transcode, which lasts seconds. Each look takes 10 ms of a core.
TRANSCODE_INTERVAL_S = 0.25
# Maximum number of test processes whose ports differ.
WORKERS = 4
# Linux gives later ports to outgoing connections, which could take them before a server does.
PORTS = range(20_000, 32_000)

Condition = Callable[[], object | Awaitable[object]]
_tried_ports = count(os.getpid())


@asynccontextmanager
async def embedded_services(
    data_dir: Path, *, database: bool = True, storage: bool = True, durable: bool = True
) -> AsyncIterator[dict[str, str]]:
    """Run PostgreSQL and the S3 server; yields their environment variables."""
    folder = open_data_folder(data_dir)
    port = free_port() if storage else None
    try:
        async with running_children() as children:
            yield await start_embedded(
                children,
                folder,
                host=LOOPBACK,
                storage_port=port,
                database=database,
                durable=durable,
            )
    finally:
        release_socket_folder(folder)


@asynccontextmanager
async def migrated_services(data_dir: Path, *, durable: bool) -> AsyncIterator[dict[str, str]]:
    """Run PostgreSQL with an empty, migrated template database, and an S3 server."""
    async with embedded_services(data_dir, durable=durable) as environ:
        environ = {**environ, "LOG_FORMAT": "text"}
        await execute(environ, f"CREATE DATABASE {TEMPLATE}")
        await migrate(Config.from_env(on_database(environ, TEMPLATE)))
        yield environ


@asynccontextmanager
async def fresh_database(services: dict[str, str]) -> AsyncIterator[dict[str, str]]:
    """Create a migrated database; yields the environment with it, and drops it."""
    name = f"test_{uuid4().hex}"
    # The other strategy would also write the whole database to the log.
    await execute(services, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY")
    yield on_database(services, name)

    async def is_dropped() -> bool:
        # Refused while autovacuum, which only a superuser may end, works on it.
        with suppress(psycopg.errors.InsufficientPrivilege):
            await execute(services, f"DROP DATABASE {name} WITH (FORCE)")
            return True
        return False

    await until(is_dropped, timeout_s=20)


@dataclass(frozen=True, slots=True)
class LivePortal:
    """Portal as users run it, with separate processes for web and worker."""

    base_url: str
    environ: dict[str, str]
    web_pid: int


@asynccontextmanager
async def run_portal(
    environ: dict[str, str], *, worker: bool = True, log_dir: Path | None = None
) -> AsyncIterator[LivePortal]:
    """Start web and worker with settings from the environment alone."""
    port = free_port()
    base_url = f"http://127.0.0.1:{port}"
    environ = {**environ, "PORT": str(port), "PUBLIC_URL": base_url}
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(process("web", environ, log_dir=log_dir))

        async def is_up() -> bool:
            assert web.returncode is None, f"the web process ended with {web.returncode}"
            return await answers(f"{base_url}/healthz")

        await until(is_up, timeout_s=60)
        if worker:
            await stack.enter_async_context(process("worker", environ, log_dir=log_dir))
        yield LivePortal(base_url, environ, web.pid)


@asynccontextmanager
async def fresh_portal(
    services: dict[str, str], *, worker: bool = False, **settings: str
) -> AsyncIterator[LivePortal]:
    """Run a portal with a new, empty database."""
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, **settings}, worker=worker) as portal,
    ):
        yield portal


@asynccontextmanager
async def process(
    command: str, environ: dict[str, str], *, log_dir: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `portal <command>` with exactly these settings, logging to `log_dir` if given."""
    settings = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environ}
    with (log_dir / f"{command}.log").open("ab") if log_dir else nullcontext() as log:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "portal", command), env=settings, stdout=log, stderr=log
        )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.terminate()
        try:
            await asyncio.wait_for(child.wait(), 15 * SLOWDOWN)
        except TimeoutError:
            child.kill()
            raise


async def until(condition: Condition, *, timeout_s: float, interval_s: float = 0.1) -> None:
    """Wait for a condition, and fail the test when it does not come true in time.

    `timeout_s` is the maximum on an idle machine. ffmpeg has the lowest priority, so on a busy
    machine it may take many times as long.
    """
    deadline = monotonic() + SLOWDOWN * timeout_s
    while not (await result if isawaitable(result := condition()) else result):
        if monotonic() > deadline:
            pytest.fail(f"the condition did not come true within {SLOWDOWN * timeout_s} s")
        await asyncio.sleep(interval_s)


def free_port() -> int:
    """Return a free port that no other test of this run receives."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = PORTS[worker % WORKERS :: WORKERS]
    while True:
        port = ports[next(_tried_ports) % len(ports)]
        if addresses.free_port(LOOPBACK, [port]) == port:
            return port


def run_ffmpeg(path: Path, *arguments: str) -> Path:
    """Make a file with ffmpeg, and return its path."""
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    subprocess.run(
        [ffmpeg, "-v", "error", "-y", *arguments, str(path)], check=True, stdin=subprocess.DEVNULL
    )
    return path


def make_video(
    path: Path,
    *,
    seconds: float = 2,
    size: str = "320x180",
    rate: int = 30,
    copyable: bool = True,
) -> Path:
    """Make a small video with a tone, as H.264 and AAC, of a rare level unless copyable."""
    picture = ("-f", "lavfi", "-i", f"testsrc2=size={size}:rate={rate}:duration={seconds}")
    sound = ("-f", "lavfi", "-i", f"sine=duration={seconds}")
    encoder = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
    return run_ffmpeg(path, *picture, *sound, *encoder, *(() if copyable else ("-level:v", "5.1")))


async def answers(url: str) -> bool:
    """Return whether a server responds with 200."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def execute(environ: dict[str, str], statement: str) -> None:
    url = environ["DATABASE_URL"]
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(statement)


def on_database(environ: dict[str, str], name: str) -> dict[str, str]:
    """Return the settings with another database of the embedded server."""
    url = environ["DATABASE_URL"].replace("@/portal?", f"@/{name}?")
    return {**environ, "DATABASE_URL": url}


async def call(method: str, url: str, *, status: int = 200, **options: Any) -> Any:
    """Send a request, check the status, and return the JSON of the response."""
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, **options) as response,
    ):
        assert response.status == status, await response.text()
        return await response.json()


async def upload(portal_url: str, file: Path) -> str:
    """Presign and PUT a file as a client does, and return its key."""
    body = {"fileName": file.name, "contentType": "video/mp4"}
    answer = await call("POST", f"{portal_url}/api/videos/presign", json=body)
    data = io.BytesIO(file.read_bytes())
    headers = {"Content-Type": "video/mp4"}
    async with (
        aiohttp.ClientSession() as session,
        session.put(answer["uploadUrl"], data=data, headers=headers) as response,
    ):
        assert response.status == 200, await response.text()
    return str(answer["key"])


async def create(
    portal_url: str, file: Path, *, request_id: str = "", **members: Any
) -> dict[str, Any]:
    """Upload a file, create its video, and return the creation record."""
    body = {
        "title": "A test",
        "description": "",
        "categoryIds": [1],
        "tags": "",
        "fileName": file.name,
        "key": await upload(portal_url, file),
        **members,
    }
    headers = {"X-Request-ID": request_id} if request_id else {}
    url = f"{portal_url}/api/videos"
    return await call("POST", url, status=201, json=body, headers=headers)


async def read(portal_url: str, video_id: str) -> dict[str, Any]:
    """Return the retrieval record of a video."""
    return await call("GET", f"{portal_url}/api/videos/{video_id}")


async def first_segment(master_url: str) -> bytes:
    """Follow the playlists as a player does, and return the first segment."""
    url = master_url
    async with aiohttp.ClientSession() as session:
        for _ in range(3):  # master playlist, media playlist, segment
            async with session.get(url) as answer:
                assert answer.status == 200, url
                body = await answer.read()
            if body.startswith(b"#EXTM3U"):
                lines = body.decode().splitlines()
                url = urljoin(url, next(line for line in lines if line and line[0] != "#"))
    assert body[4:8] in (b"styp", b"moof", b"sidx")
    return body


async def storyboard(portal_url: str, video_id: str) -> str:
    """Wait until a ready video has a storyboard, and return its URL."""
    record: dict[str, Any] = {}

    async def is_made() -> bool:
        record.update(await call("GET", f"{portal_url}/api/videos/{video_id}/transcode"))
        return record["storyboardUrl"] is not None

    await until(is_made, timeout_s=60, interval_s=TRANSCODE_INTERVAL_S)
    return str(record["storyboardUrl"])


async def final_status(portal_url: str, video_id: str, *, timeout_s: float = 60) -> str:
    """Wait until a video is ready or failed, and return its status."""
    status = ""

    async def is_final() -> bool:
        nonlocal status
        status = (await read(portal_url, video_id))["status"]
        return status != "processing"

    await until(is_final, timeout_s=timeout_s, interval_s=TRANSCODE_INTERVAL_S)
    return status
