"""Requests per second of the JSON API, as ratios to a bare Quart app.

A page of videos is compared with the same bytes, every other call with a small JSON object.

Both run with the same Hypercorn settings and the same load tool (wrk). Each measurement follows
one of the bare app, and the median of several pairs counts, because the machines are noisy.

    python tests/benchmarks/api.py [--seconds 4] [--rounds 3]

Needs `wrk` (Debian: apt-get install wrk). Starts and stops everything else itself.
"""

import argparse
import asyncio
import itertools
import json
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil
from benchmark_portal import measured_portal, options_of
from command_line import portal as command
from running_portal import LivePortal, answers, execute, free_port, until, upload

HERE = Path(__file__).parent
CONNECTIONS = 16
PAGE = 50
MEMORY_AIM_MB = 120
# Upper bound of creations a second; determines the number of uploads.
UPLOADS_PER_SECOND = 700
UPLOADS_AT_ONCE = 16
# High enough for one client; requests are still counted, which is part of the cost.
LIMITS = {"RATE_LIMIT_CHANGES": "100000000"}
SIGNED_IN_AIM = 0.85
EMAIL = "benchmark@example.org"
PASSWORD = "four calm green boats"
PRESIGN = {"fileName": "benchmark.mp4", "contentType": "video/mp4"}


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run of wrk."""

    requests_per_s: float
    p50: str
    p99: str
    failures: int


async def main() -> None:
    options = options_of(__doc__, seconds=4, rounds=3)
    if shutil.which("wrk") is None:
        sys.exit("wrk is missing: apt-get install wrk")
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        async with (
            measured_portal(Path(folder), **LIMITS, LOG_FORMAT="json") as portal,
            bare_app(Path(folder)) as bare_url,
        ):
            await _measure(portal, bare_url, Path(folder), options)


async def _measure(
    portal: LivePortal, bare_url: str, folder: Path, options: argparse.Namespace
) -> None:
    each = options.seconds * UPLOADS_PER_SECOND
    bodies = iter(await _creation_bodies(portal, folder, count=PAGE + options.rounds * each))
    paths = [await _created(portal, body) for body in itertools.islice(bodies, PAGE)]
    # Ready videos have a playback URL.
    await execute(portal.environ, "UPDATE versions SET status = 'ready', published_attempt = 1")
    presign, patch, create = (folder / f"{name}.txt" for name in ("presign", "patch", "create"))
    presign.write_text(f"POST /api/videos/presign {json.dumps(PRESIGN)}\n")
    changes = itertools.product(range(20), paths)
    patch.write_text(
        "".join(f'PATCH {path} {{"title": "Take {number}"}}\n' for number, path in changes)
    )
    # Name, URL, URL of the bare app, aim of the ratio, and the file of requests unless it is a GET.
    api = f"{portal.base_url}/api"
    page_url = f"{bare_url}page"
    targets = (
        ("GET video", portal.base_url + paths[0], bare_url, 0.6, None),
        ("GET page", f"{api}/videos?limit={PAGE}", page_url, 0.25, None),
        ("GET categories", f"{api}/categories", bare_url, 0.85, None),
        ("POST presign", api, bare_url, 0.35, presign),
        ("PATCH", api, bare_url, 0.15, patch),
        ("POST create", api, bare_url, 0.12, create),
    )
    async with aiohttp.ClientSession() as session, session.get(targets[1][1]) as response:
        (folder / "page.json").write_bytes(await response.read())
    print(f"{'':16} {'req/s':>8} {'bare':>8} {'ratio':>6} {'aim':>5}  {'p50':>8} {'p99':>8}")
    for name, url, bare, aim, lines in targets:
        pairs = []
        for _ in range(options.rounds):
            if lines is create:
                some = itertools.islice(bodies, each)
                create.write_text("".join(f"POST /api/videos {body}\n" for body in some))
            other = await measured(bare, options.seconds)
            pairs.append((await measured(url, options.seconds, lines=lines), other))
        print_row(name, pairs, aim=aim)
    _print_memory(portal, "an open portal")
    await _measure_signed_in(portal, portal.base_url + paths[0], folder, options)
    _print_memory(portal, "after reading a private video")


def _print_memory(portal: LivePortal, when: str) -> None:
    memory_mb = psutil.Process(portal.web_pid).memory_info().rss / 1e6
    print(f"memory of the web process, {when}: {memory_mb:.0f} MB (aim: under {MEMORY_AIM_MB})")


async def _measure_signed_in(
    portal: LivePortal, url: str, folder: Path, options: argparse.Namespace
) -> None:
    """Compare reads with credentials to reads without, on a portal that now has accounts."""
    [private_body] = await _creation_bodies(portal, folder, count=1)
    add = ("accounts", "add", EMAIL, "--role", "owner", "--password-stdin")
    await command(portal.environ, *add, typed=f"{PASSWORD}\n")
    token = await command(
        portal.environ, "tokens", "add", EMAIL, "--name", "read", "--scope", "videos:read"
    )
    async with aiohttp.ClientSession(portal.base_url) as session:
        form = {"email": EMAIL, "password": PASSWORD}
        async with session.post("/sign-in", data=form, allow_redirects=False) as response:
            cookie = response.headers["Set-Cookie"].partition(";")[0]
    headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
    private_url = portal.base_url + await _created(
        portal, private_body, "?visibility=private", headers
    )
    # Each read of a private video signs its playback URL.
    ready = (
        "UPDATE versions SET status = 'ready', published_attempt = 1 FROM publications"
        " WHERE version_id = versions.id AND visibility = 'private'"
    )
    await execute(portal.environ, ready)
    for own_url, name, header in (
        (url, "by token", f"Authorization: Bearer {token.out.strip()}"),
        (url, "by cookie", f"Cookie: {cookie}"),
        (private_url, "private", f"Cookie: {cookie}"),
    ):
        pairs = []
        for _ in range(options.rounds):
            anyone = await measured(url, options.seconds)
            pairs.append((await measured(own_url, options.seconds, header=header), anyone))
        print_row(name, pairs, aim=SIGNED_IN_AIM)


async def _creation_bodies(portal: LivePortal, folder: Path, *, count: int) -> list[str]:
    """Upload `count` tiny files, and return a creation body for each."""
    print(f"uploading {count} files to create videos from …", file=sys.stderr)
    file = folder / PRESIGN["fileName"]
    file.write_bytes(b"not transcoded here")
    text = {"title": "Benchmark", "description": "A video created by the benchmark."}
    common = {**text, "categoryIds": [1, 2], "tags": "benchmark, load", "fileName": file.name}
    bodies: list[str] = []
    todo = iter(range(count))

    async def upload_some() -> None:
        for _ in todo:
            bodies.append(json.dumps({**common, "key": await upload(portal.base_url, file)}))

    await asyncio.gather(*(upload_some() for _ in range(UPLOADS_AT_ONCE)))
    return bodies


async def _created(
    portal: LivePortal, body: str, query: str = "", headers: dict[str, str] | None = None
) -> str:
    """Create a video, and return the path of its record."""
    headers = {"Content-Type": "application/json", **(headers or {})}
    async with (
        aiohttp.ClientSession(portal.base_url) as session,
        session.post(f"/api/videos{query}", data=body, headers=headers) as response,
    ):
        response.raise_for_status()
        return response.headers["Location"]


async def measured(
    url: str, seconds: int, *, lines: Path | None = None, header: str = ""
) -> Result:
    script = ["-s", str(HERE / "send.lua")] if lines else ["-H", header] if header else []
    arguments = ["--", str(lines)] if lines else []
    process = await asyncio.create_subprocess_exec(
        "wrk",
        *("-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", *script, url, *arguments),
        stdout=asyncio.subprocess.PIPE,
    )
    output = (await process.communicate())[0].decode()

    def extract(pattern: str, default: str = "?") -> str:
        match = re.search(pattern, output, flags=re.MULTILINE)
        return match[1] if match else default

    return Result(
        requests_per_s=float(extract(r"Requests/sec:\s+([\d.]+)", "nan")),
        p50=extract(r"^\s+50%\s+(\S+)"),
        p99=extract(r"^\s+99%\s+(\S+)"),
        failures=int(extract(r"Non-2xx or 3xx responses: (\d+)", "0")),
    )


def print_row(name: str, pairs: list[tuple[Result, Result]], *, aim: float) -> None:
    """Print a row from pairs of results of the portal and the bare app."""
    ratio = statistics.median(portal.requests_per_s / bare.requests_per_s for portal, bare in pairs)
    portal, bare = sorted(pairs, key=lambda pair: pair[0].requests_per_s)[len(pairs) // 2]
    failures = sum(result.failures for pair in pairs for result in pair)
    print(
        f"{name:16} {portal.requests_per_s:8.0f} {bare.requests_per_s:8.0f} {ratio:6.2f} {aim:5.2f}"
        f"  {portal.p50:>8} {portal.p99:>8}" + (f"  {failures} FAILED" if failures else "")
    )


@asynccontextmanager
async def bare_app(folder: Path) -> AsyncIterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HERE / "bare_app.py"), str(port), str(folder)), cwd=HERE
    )
    try:
        await until(lambda: answers(url), timeout_s=10)
        yield url
    finally:
        process.terminate()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main())
