"""Requests per second of the JSON API, as ratios to a bare one-route Quart app.

Both run on the same Hypercorn settings and are driven by the same load tool (wrk) in one run.
Each measurement follows one of the bare app, and the median of several pairs counts, because
the machines this runs on are noisy.

    python tests/benchmarks/api.py [--seconds 4] [--rounds 3]

Needs `wrk` (Debian: apt-get install wrk). Starts and stops everything else itself.
"""

import argparse
import asyncio
import io
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil
from benchmark_portal import measured_portal, require
from psycopg import sql
from running_portal import LivePortal, answers, execute, free_port, until

HERE = Path(__file__).parent
CONNECTIONS = 16
MEMORY_AIM_MB = 120
# No create run is faster than this, so every create finds an upload of its own.
UPLOADS_PER_SECOND = 700
UPLOADS_AT_ONCE = 16
# One client asks for more than any office does. Counted all the same: that is part of the cost.
LIMITS = {"RATE_LIMIT_CHANGES": "100000000"}
SIGNED_IN_AIM = 0.85
EMAIL, PASSWORD = "benchmark@example.org", "four calm green boats"
PRESIGN = {"fileName": "benchmark.mp4", "contentType": "video/mp4"}


@dataclass(frozen=True, slots=True)
class Target:
    """What is measured: an address, the bodies to POST to it if any, and the aimed ratio."""

    name: str
    url: str
    aim: float
    bodies: Path | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What wrk saw."""

    requests_per_s: float
    p50: str
    p99: str
    failures: int


async def main() -> None:
    options = _options()
    require("wrk")
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        async with (
            measured_portal(Path(folder), **LIMITS, LOG_FORMAT="json") as portal,
            bare_app() as bare_url,
        ):
            await _measure(portal, bare_url, Path(folder), options)


async def _measure(
    portal: LivePortal, bare_url: str, folder: Path, options: argparse.Namespace
) -> None:
    bodies = await _creation_bodies(
        portal, count=options.rounds * options.seconds * UPLOADS_PER_SECOND
    )
    targets = await _targets(portal, folder, bodies[0])
    print(f"{'':16} {'req/s':>8} {'bare':>8} {'ratio':>6} {'aim':>5}  {'p50':>8} {'p99':>8}")
    rest = iter(bodies[1:])
    for target in targets:
        pairs = []
        for _ in range(options.rounds):
            if target.name == "POST create":
                each = options.seconds * UPLOADS_PER_SECOND
                write_lines(target.bodies, itertools.islice(rest, each))
            bare = await measured(bare_url, seconds=options.seconds)
            mine = await measured(target.url, seconds=options.seconds, bodies=target.bodies)
            pairs.append((mine, bare))
        print_row(f"{target.name:16}", pairs, aim=target.aim)
    _print_memory(portal, "an open portal")
    await _measure_signed_in(portal, targets[0].url, options)
    _print_memory(portal, "after reading a private video")


def _print_memory(portal: LivePortal, when: str) -> None:
    memory_mb = psutil.Process(portal.web_pid).memory_info().rss / 1e6
    print(f"memory of the web process, {when}: {memory_mb:.0f} MB (aim: under {MEMORY_AIM_MB})")


async def _measure_signed_in(portal: LivePortal, url: str, options: argparse.Namespace) -> None:
    """A record read with credentials, to the same without, on a portal that has accounts now."""
    await _portal(portal, "accounts", "add", EMAIL, "--role", "owner", "--password-stdin")
    token = await _portal(
        portal, "tokens", "add", EMAIL, "--name", "read", "--scope", "videos:read"
    )
    async with aiohttp.ClientSession(portal.base_url) as session:
        form = {"email": EMAIL, "password": PASSWORD}
        async with session.post("/sign-in", data=form, allow_redirects=False) as response:
            cookie = response.headers["Set-Cookie"].partition(";")[0]
    credentials = {"by token": f"Authorization: Bearer {token}", "by cookie": f"Cookie: {cookie}"}
    private_url = await _private_record(portal, credentials["by cookie"])
    targets = [(url, name, header) for name, header in credentials.items()]
    for own_url, name, header in [*targets, (private_url, "private", credentials["by cookie"])]:
        pairs = []
        for _ in range(options.rounds):
            anyone = await measured(url, seconds=options.seconds)
            pairs.append((await measured(own_url, seconds=options.seconds, header=header), anyone))
        print_row(f"{name:16}", pairs, aim=SIGNED_IN_AIM)


async def _private_record(portal: LivePortal, header: str) -> str:
    """The address of the record of a new private video, as it is once it can be played."""
    cookie = {"Cookie": header.removeprefix("Cookie: "), "Sec-Fetch-Site": "same-origin"}
    async with aiohttp.ClientSession(portal.base_url, headers=cookie) as session:
        body = await _upload(session, portal)
        async with session.post("/api/videos?visibility=private", json=body) as response:
            response.raise_for_status()
            location = response.headers["Location"]
    # Its address to play from is signed with each read.
    ready = "UPDATE videos SET status = 'ready', published_attempt = 1 WHERE visibility = 'private'"
    await execute(portal.environ, sql.SQL(ready).format())
    return portal.base_url + location


async def _portal(portal: LivePortal, *command: str) -> str:
    """What a command for operators prints, with a password on its standard input."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "portal", *command),
        env=portal.environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate(f"{PASSWORD}\n".encode())
    return output.decode().strip()


async def _targets(portal: LivePortal, folder: Path, body: str) -> list[Target]:
    async with aiohttp.ClientSession(portal.base_url) as session:
        headers = {"Content-Type": "application/json"}
        async with session.post("/api/videos", data=body, headers=headers) as response:
            location = response.headers["Location"]
    presign = folder / "presign.txt"
    write_lines(presign, iter([json.dumps(PRESIGN)]))
    return [
        Target("GET video", portal.base_url + location, 0.6),
        Target("GET categories", f"{portal.base_url}/api/categories", 0.9),
        Target("POST presign", f"{portal.base_url}/api/videos/presign", 0.35, presign),
        Target("POST create", f"{portal.base_url}/api/videos", 0.12, folder / "create.txt"),
    ]


async def _creation_bodies(portal: LivePortal, *, count: int) -> list[str]:
    """Upload `count` tiny files for real and make a creation body for each."""
    print(f"uploading {count} files to create videos from …", file=sys.stderr)
    bodies: list[str] = []
    todo = iter(range(count))
    async with aiohttp.ClientSession() as session:

        async def upload_some() -> None:
            for _ in todo:
                bodies.append(json.dumps(await _upload(session, portal)))

        await asyncio.gather(*(upload_some() for _ in range(UPLOADS_AT_ONCE)))
    return bodies


async def _upload(session: aiohttp.ClientSession, portal: LivePortal) -> dict[str, object]:
    async with session.post(f"{portal.base_url}/api/videos/presign", json=PRESIGN) as response:
        answer = await response.json()
    headers, body = {"Content-Type": "video/mp4"}, io.BytesIO(b"not transcoded here")
    async with session.put(answer["uploadUrl"], data=body, headers=headers) as response:
        response.raise_for_status()
    return {
        "title": "Benchmark",
        "description": "A video created by the benchmark.",
        "categoryIds": [1, 2],
        "tags": "benchmark, load",
        "fileName": PRESIGN["fileName"],
        "key": answer["key"],
    }


async def measured(
    url: str, *, seconds: int, bodies: Path | None = None, header: str = ""
) -> Result:
    script = ["-s", str(HERE / "post.lua")] if bodies else ["-H", header] if header else []
    arguments = ["--", str(bodies)] if bodies else []
    process = await asyncio.create_subprocess_exec(
        "wrk",
        *("-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", *script, url, *arguments),
        stdout=asyncio.subprocess.PIPE,
    )
    output = (await process.communicate())[0].decode()
    failures = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    return Result(
        requests_per_s=float(_found(r"Requests/sec:\s+([\d.]+)", output)),
        p50=_found(r"^\s+50%\s+(\S+)", output),
        p99=_found(r"^\s+99%\s+(\S+)", output),
        failures=int(failures[1]) if failures else 0,
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, flags=re.MULTILINE)
    if match is None:
        sys.exit(f"wrk printed no {pattern!r}:\n{text}")
    return match[1]


def print_row(name: str, pairs: list[tuple[Result, Result]], *, aim: float) -> float:
    """Of pairs of the portal and the bare app; returns the portal's requests per second."""
    ratio = statistics.median(mine.requests_per_s / bare.requests_per_s for mine, bare in pairs)
    mine, bare = sorted(pairs, key=lambda pair: pair[0].requests_per_s)[len(pairs) // 2]
    failures = sum(result.failures for pair in pairs for result in pair)
    print(
        f"{name} {mine.requests_per_s:8.0f} {bare.requests_per_s:8.0f} {ratio:6.2f} {aim:5.2f}"
        f"  {mine.p50:>8} {mine.p99:>8}" + (f"  {failures} FAILED" if failures else "")
    )
    return mine.requests_per_s


@asynccontextmanager
async def bare_app() -> AsyncIterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "bare_app.py"), str(port), cwd=HERE, env=dict(os.environ)
    )
    try:
        await until(lambda: answers(url), timeout_s=10)
        yield url
    finally:
        process.terminate()
        await process.wait()


def write_lines(path: Path | None, lines: Iterator[str]) -> None:
    if path is not None:
        path.write_text("".join(f"{line}\n" for line in lines))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=4, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each kind")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
