"""No secret is told by a log, a process list, an error page, a metric or a trace.

One whole life of a portal, outages included, with secrets that can be recognised, while everything
that others could read is collected.
"""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import psutil
import pytest
from api_client import metadata, rows, run_sql
from bad_network import Network, network_to
from running_portal import (
    LivePortal,
    create,
    final_status,
    free_port,
    process,
    run_portal,
    until,
    upload,
)
from trace_collector import Collector, collecting

PASSWORD = "database-password-5ec7e7"
SESSION_TOKEN = "session-token-5ec7e7"
METRICS_TOKEN = "metrics-token-5ec7e7"
SIGN_IN_CODE = "sign-in-code-5ec7e7"
SIGNED = re.compile(r"X-Amz-(Signature|Credential|Security-Token)=", re.IGNORECASE)
SAMPLE_S = 0.1


@contextmanager
def watched() -> Iterator[tuple[set[str], set[str]]]:
    """What everyone can read of this test's processes: arguments, and environments of media's."""
    arguments, environments, ended = set[str](), set[str](), Event()

    def look(folder: Path) -> None:
        said = (folder / "cmdline").read_bytes().decode(errors="replace")
        arguments.add(said)
        is_ffmpeg = "ffmpeg" in Path(said.partition("\0")[0]).name
        # imageio-ffmpeg asks the program for its version before it tells where it lies.
        if (is_ffmpeg and "-version" not in said) or "portal.transcoding.probing" in said:
            environments.add((folder / "environ").read_bytes().decode(errors="replace"))

    def watch() -> None:
        while not ended.wait(SAMPLE_S):
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process().children(recursive=True):
                    with suppress(OSError):
                        look(Path(f"/proc/{child.pid}"))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield arguments, environments
    finally:
        ended.set()
        thread.join()


@pytest.fixture
async def network(environ: dict[str, str]) -> AsyncIterator[Network]:
    """The way to storage, which can be closed."""
    async with network_to(environ["S3_ENDPOINT_URL"]) as network:
        yield network


def with_secrets(environ: dict[str, str], network: Network, collector: Collector) -> dict[str, str]:
    parts = urlsplit(environ["DATABASE_URL"])
    user, _, place = parts.netloc.rpartition("@")
    netloc = f"{user or 'portal'}:{PASSWORD}@{place}"
    return {
        **environ,
        **collector.settings(),
        "DATABASE_URL": environ["DATABASE_URL"].replace(f"//{parts.netloc}", f"//{netloc}", 1),
        "S3_ENDPOINT_URL": network.url,
        "S3_PUBLIC_ENDPOINT_URL": network.url,
        "AWS_SESSION_TOKEN": SESSION_TOKEN,
        "METRICS_TOKEN": METRICS_TOKEN,
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "DEBUG",
    }


async def answer(portal: LivePortal, path: str, status: int, **request: Any) -> str:
    """The text of an answer with this status; a POST if there is a body."""
    async with (
        aiohttp.ClientSession(portal.base_url) as session,
        session.request("POST" if "json" in request else "GET", path, **request) as response,
    ):
        text = await response.text()
        assert response.status == status, text
    return text


async def said(command: str, environ: dict[str, str], log_dir: Path) -> str:
    """What a command prints that ends by itself."""
    async with process(command, environ, log_dir=log_dir) as child, asyncio.timeout(60):
        await child.wait()
    return (log_dir / f"{command}.log").read_text()


async def live(portal: LivePortal, network: Network, good: Path, bad: Path) -> list[str]:
    """Do all that a portal does; returns what it answered that holds no signed address."""
    database_url = portal.environ["DATABASE_URL"]
    for file, status in ((bad, "failed"), (good, "ready")):
        video = await create(portal.base_url, file)
        assert await final_status(portal.base_url, video["id"]) == status
    headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    told = [
        await answer(portal, "/metrics", 200, headers=headers),
        await answer(portal, "/metrics", 401, headers={"Authorization": "Bearer wrong"}),
        await answer(portal, f"/nothing?code={SIGN_IN_CODE}", 404),
        await answer(portal, f"/sign-in/oidc/callback?state=x&code={SIGN_IN_CODE}", 404),
        await answer(portal, "/api/videos", 422, json={"key": "videos/?X-Amz-Signature"}),
    ]
    await run_sql(database_url, "ALTER TABLE videos RENAME TO videos_away")
    told += [await answer(portal, "/", 500)]
    await run_sql(database_url, "ALTER TABLE videos_away RENAME TO videos")

    body = metadata(await upload(portal.base_url, good))
    await create(portal.base_url, good)
    await network.down()
    told += [
        await answer(portal, "/api/videos", 503, json=body),
        await answer(portal, "/readyz", 503),
    ]

    async def is_handed_back() -> bool:
        query = "SELECT 1 FROM attempts WHERE outcome = 'handed_back' OR error_code IS NOT NULL"
        return len(await rows(database_url, query)) > 1

    await until(is_handed_back, timeout_s=60)
    await network.up()
    details = await rows(database_url, "SELECT coalesce(error_detail, '') FROM attempts")
    return [*told, *(detail for (detail,) in details)]


async def live_without_database(environ: dict[str, str], log_dir: Path) -> list[str]:
    """Start everything with a database that is not there, and with one that can't be."""
    log_dir.mkdir()
    nowhere = f"postgresql://portal:{PASSWORD}@127.0.0.1:{free_port()}/portal"
    environ = {**environ, "DATABASE_URL": nowhere}
    mistyped = {**environ, "DATABASE_URL": nowhere.replace("postgresql", "postgres ql")}
    told = await asyncio.gather(
        said("worker", environ, log_dir),
        said("doctor", environ, log_dir),
        said("migrate", mistyped, log_dir),
    )
    async with run_portal(environ, worker=False, log_dir=log_dir) as portal:
        told.append(await answer(portal, "/", 503))
    return [*told, (log_dir / "web.log").read_text()]


@pytest.mark.slow
async def test_no_secret_is_told(
    environ: dict[str, str], network: Network, short_video: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "damaged.mp4"
    bad.write_bytes(short_video.read_bytes()[:20_000])
    with watched() as (arguments, environments):
        async with collecting() as collector:
            secret = with_secrets(environ, network, collector)
            async with run_portal(secret, log_dir=tmp_path) as portal:
                answers, away = await asyncio.gather(
                    live(portal, network, short_video, bad),
                    live_without_database(secret, tmp_path / "away"),
                )
                doctor = await said("doctor", secret, tmp_path)
    told = {"answers": answers, "without a database": away, "doctor": [doctor]}
    told["web"] = [(tmp_path / "web.log").read_text()]
    told["worker"] = [(tmp_path / "worker.log").read_text()]
    told["traces"] = collector.texts
    told["arguments"] = list(arguments)
    told["environments"] = list(environments)

    own = (PASSWORD, SESSION_TOKEN, METRICS_TOKEN, SIGN_IN_CODE)
    secrets = (*own, environ["AWS_SECRET_ACCESS_KEY"])
    for place, texts in told.items():
        whole = "\n".join(texts)
        assert whole, f"nothing was collected of {place}"
        for value in secrets:
            assert value not in whole, f"{place} tells {value}"
        found = SIGNED.search(whole)
        assert not found, f"{place}: {whole[max(0, found.start() - 300) : found.end() + 20]}"
    # A test that looked at nothing would pass.
    for program in ("source.invalid", "transcoding.probing", "rclone", "postgres", sys.executable):
        assert program in "\n".join(told["arguments"]), program
    assert "http_proxy" in "\n".join(told["environments"])
    assert "storage_unavailable" in told["web"][0]
    assert "Unexpected error" in told["web"][0]
    assert "FAIL" in told["without a database"][1]
    assert os.linesep in told["worker"][0]
