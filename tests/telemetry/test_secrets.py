"""No log, process list, error page, metric or trace contains a secret, and a trace is whole.

The test runs a portal from start to end, outages included, with recognizable secrets, and collects
all output that others could read.
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
from trace_collector import Collector, Span, collecting

PASSWORD = "database-password-5ec7e7"
SESSION_TOKEN = "session-token-5ec7e7"
METRICS_TOKEN = "metrics-token-5ec7e7"
SIGN_IN_CODE = "sign-in-code-5ec7e7"
REQUEST_ID = "the-request-that-is-traced"
SIGNED = re.compile(r"X-Amz-(Signature|Credential|Security-Token)=", re.IGNORECASE)
SAMPLE_S = 0.1


@contextmanager
def watched() -> Iterator[tuple[set[str], set[str]]]:
    """Collect the arguments of all child processes, and the environments of those on media."""
    arguments = set[str]()
    environments = set[str]()
    ended = Event()

    def collect(folder: Path) -> None:
        command = (folder / "cmdline").read_bytes().decode(errors="replace")
        arguments.add(command)
        is_ffmpeg = "ffmpeg" in Path(command.partition("\0")[0]).name
        # imageio-ffmpeg runs `ffmpeg -version` in its own environment.
        is_probe = "portal.transcoding.probing" in command
        if is_probe or (is_ffmpeg and "-version" not in command):
            environments.add((folder / "environ").read_bytes().decode(errors="replace"))

    def watch() -> None:
        while not ended.wait(SAMPLE_S):
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process().children(recursive=True):
                    with suppress(OSError):
                        collect(Path(f"/proc/{child.pid}"))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield arguments, environments
    finally:
        ended.set()
        thread.join()


@pytest.fixture
async def network(environ: dict[str, str]) -> AsyncIterator[Network]:
    """Yield a network to storage that the test can interrupt."""
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
    """Return the text of a response with this status, to a POST if there is a body."""
    async with (
        aiohttp.ClientSession(portal.base_url) as session,
        session.request("POST" if "json" in request else "GET", path, **request) as response,
    ):
        text = await response.text()
        assert response.status == status, text
    return text


async def output_of(command: str, environ: dict[str, str], log_dir: Path) -> str:
    """Return the output of a command that ends by itself."""
    async with process(command, environ, log_dir=log_dir) as child, asyncio.timeout(60):
        await child.wait()
    return (log_dir / f"{command}.log").read_text()


async def check_trace(collector: Collector, video_id: str) -> None:
    """Check that one trace leads from the request to the finished video."""

    def jobs() -> list[Span]:
        spans = collector.named("portal:transcode")
        return [span for span in spans if span.attributes["version_id"] == video_id]

    # The job's span is exported last.
    await until(jobs, timeout_s=30)
    [request] = [
        span
        for span in collector.named("POST /api/videos")
        if span.attributes["portal.request_id"] == REQUEST_ID
    ]
    assert (request.service, request.parent_id) == ("portal-web", "")
    trace = [span for span in collector.spans if span.trace_id == request.trace_id]
    [job] = jobs()
    assert (job.service, job.parent_id) == ("portal-worker", request.span_id)
    assert job.attributes["request_id"] == REQUEST_ID
    for name in ("probe", "copy", "upload", "finish", "publish"):
        line = collector.line_of(next(span for span in trace if span.name == name))
        assert line[-2:] == ["portal:transcode", "POST /api/videos"]
    for service in ("portal-web", "portal-worker"):
        spans = [span for span in trace if span.service == service]
        assert any("db.statement" in span.attributes for span in spans), "no database statement"
        assert any(span.name == "GET" for span in spans), "no call to storage"
    calls = [span for name in ("GET", "HEAD", "PUT") for span in collector.named(name)]
    assert {urlsplit(call.attributes["http.url"]).path for call in calls} == {""}
    assert collector.named("GET /api/videos/<id>"), "named by its route"
    roots = {span.name for span in collector.spans if not span.parent_id}
    assert all(name.split()[0] in ("GET", "POST") and "/" in name for name in roots), roots


async def live(
    portal: LivePortal, network: Network, collector: Collector, good: Path, bad: Path
) -> list[str]:
    """Use the portal's features. Return its responses that contain no signed address."""
    database_url = portal.environ["DATABASE_URL"]
    for file, status in ((bad, "failed"), (good, "ready")):
        request_id = REQUEST_ID if status == "ready" else ""
        video = await create(portal.base_url, file, request_id=request_id)
        assert await final_status(portal.base_url, video["id"]) == status
    await check_trace(collector, video["id"])
    headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    responses = [
        await answer(portal, "/metrics", 200, headers=headers),
        await answer(portal, "/metrics", 401, headers={"Authorization": "Bearer wrong"}),
        await answer(portal, f"/nothing?code={SIGN_IN_CODE}", 404),
        await answer(portal, f"/sign-in/oidc/callback?state=x&code={SIGN_IN_CODE}", 404),
        await answer(portal, "/api/videos", 422, json={"key": "videos/?X-Amz-Signature"}),
    ]
    await run_sql(database_url, "ALTER TABLE videos RENAME TO videos_away")
    responses.append(await answer(portal, "/", 500))
    await run_sql(database_url, "ALTER TABLE videos_away RENAME TO videos")

    body = metadata(await upload(portal.base_url, good))
    await create(portal.base_url, good)
    await network.down()
    responses += [
        await answer(portal, "/api/videos", 503, json=body),
        await answer(portal, "/readyz", 503),
    ]

    async def is_handed_back() -> bool:
        query = "SELECT 1 FROM attempts WHERE outcome = 'handed_back' OR error_code IS NOT NULL"
        return len(await rows(database_url, query)) > 1

    await until(is_handed_back, timeout_s=60)
    await network.up()
    details = await rows(database_url, "SELECT coalesce(error_detail, '') FROM attempts")
    return responses + [detail for (detail,) in details]


async def live_without_database(environ: dict[str, str], log_dir: Path) -> list[str]:
    """Start all processes with a missing database, and with an invalid address of one."""
    log_dir.mkdir()
    nowhere = f"postgresql://portal:{PASSWORD}@127.0.0.1:{free_port()}/portal"
    environ = {**environ, "DATABASE_URL": nowhere}
    mistyped = {**environ, "DATABASE_URL": nowhere.replace("postgresql", "postgres ql")}
    outputs = await asyncio.gather(
        output_of("worker", environ, log_dir),
        output_of("doctor", environ, log_dir),
        output_of("migrate", mistyped, log_dir),
    )
    async with run_portal(environ, worker=False, log_dir=log_dir) as portal:
        outputs.append(await answer(portal, "/", 503))
    return [*outputs, (log_dir / "web.log").read_text()]


@pytest.mark.slow
async def test_output_contains_no_secret(
    environ: dict[str, str], network: Network, short_video: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "damaged.mp4"
    bad.write_bytes(short_video.read_bytes()[:20_000])
    with watched() as (arguments, environments):
        async with collecting() as collector:
            secret = with_secrets(environ, network, collector)
            async with run_portal(secret, log_dir=tmp_path) as portal:
                responses, without_database = await asyncio.gather(
                    live(portal, network, collector, short_video, bad),
                    live_without_database(secret, tmp_path / "away"),
                )
                doctor = await output_of("doctor", secret, tmp_path)
    outputs = {"doctor": [doctor]}
    outputs["responses"] = responses
    outputs["without a database"] = without_database
    outputs["web"] = [(tmp_path / "web.log").read_text()]
    outputs["worker"] = [(tmp_path / "worker.log").read_text()]
    outputs["traces"] = collector.texts
    outputs["arguments"] = list(arguments)
    outputs["environments"] = list(environments)

    secrets = [PASSWORD, SESSION_TOKEN, METRICS_TOKEN, SIGN_IN_CODE]
    secrets.append(environ["AWS_SECRET_ACCESS_KEY"])
    for place, texts in outputs.items():
        whole = "\n".join(texts)
        assert whole, f"no output of {place} was collected"
        for value in secrets:
            assert value not in whole, f"{place} contains {value}"
        match = SIGNED.search(whole)
        assert not match, f"{place}: {whole[max(0, match.start() - 300) : match.end() + 20]}"
    # The test would pass without any output.
    for program in ("source.invalid", "transcoding.probing", "rclone", "postgres", sys.executable):
        assert program in "\n".join(outputs["arguments"]), program
    assert "http_proxy" in "\n".join(outputs["environments"])
    assert "storage_unavailable" in outputs["web"][0]
    assert "Unexpected error" in outputs["web"][0]
    assert "FAIL" in outputs["without a database"][1]
    assert os.linesep in outputs["worker"][0]
