"""Throughput of the upload page's engine against `curl -T` of the same file to the same storage.

Both take turns in one run and the median counts. The clock of the page runs from the start of its
transfer until storage has confirmed the whole file, curl's until its PUT is answered.

    python tests/benchmarks/upload.py [--size-mib 1024] [--rounds 3]

Needs `curl` and a Chromium. Starts and stops everything else itself.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

import aiohttp
from benchmark_portal import measured_portal, require

sys.path.insert(0, str(Path(__file__).parent.parent / "browser"))

from bare_browser import BarePage, bare_page  # uses what is there
from front_end import install_tools, run_node
from running_portal import LivePortal

MIB = 2**20
AIM = 0.9
# The upload page's modules as one script, which sets `engine`.
BUNDLE = """
import { build } from "esbuild";
const modules = ["store", "saved"];
const contents = modules.map((name) => `export * from "./src/upload/${name}.js";`).join("\\n");
const options = { bundle: true, globalName: "engine", format: "iife", write: false };
const { outputFiles } = await build({ stdin: { contents, resolveDir: process.cwd() }, ...options });
process.stdout.write(outputFiles[0].text);
"""
LIMIT_S = 600
PRESIGN = {"fileName": "benchmark.mp4", "contentType": "video/mp4"}
ADD_INPUT = """{
    const input = document.createElement("input");
    input.type = "file";
    input.id = "benchmark";
    document.body.append(input);
}"""
SEND = """(async () => {
    const [file] = document.querySelector("#benchmark").files;
    const urls = {
        presignUrl: "/api/videos/presign", uploadsUrl: "/api/uploads", publishUrl: "/api/videos",
        storageUrl: "/", preflightUrl: "/static/none.js",
    };
    const limits = { size_bytes: 0, duration_s: 0, pixels: 0 };
    const stop = new AbortController();
    const store = new engine.Store({ urls, limits }, stop.signal);
    const settled = new Promise((resolve, reject) => store.subscribe(({ uploads: [upload] }) => {
        if (upload.phase === "sent") resolve(upload);
        if (upload.phase === "failed") reject(upload.failure);
    }));
    await store.choose([file]);
    const { id, key } = await settled;
    stop.abort();
    engine.forget(id);
    return key;
})()"""


async def main() -> None:
    options = _options()
    require("curl")
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        file = Path(folder, "benchmark.mp4")
        file.write_bytes(os.urandom(options.size_mib * MIB))
        async with (
            measured_portal(Path(folder, "data")) as portal,
            bare_page(f"{portal.base_url}/upload") as page,
        ):
            install_tools()
            script = run_node("--input-type=module", "-e", BUNDLE)
            await page.run(script + ADD_INPUT)
            await page.choose("#benchmark", file)
            await _compare(page, portal, file, options.rounds)


async def _compare(page: BarePage, portal: LivePortal, file: Path, rounds: int) -> None:
    size_mib = file.stat().st_size / MIB
    speeds: dict[str, list[float]] = {"curl -T": [], "upload page": []}
    # The first pair only warms up.
    for number in range(rounds + 1):
        for name, took_s in (
            ("curl -T", await _curl(portal, file)),
            ("upload page", await _page(page, portal)),
        ):
            if number:
                speeds[name].append(size_mib / took_s)
    for name, measured in speeds.items():
        each = ", ".join(f"{speed:.0f}" for speed in measured)
        print(f"{name:12} {statistics.median(measured):6.0f} MiB/s  ({each})")
    ratio = statistics.median(speeds["upload page"]) / statistics.median(speeds["curl -T"])
    print(f"ratio        {ratio:6.2f}  (aim {AIM})")


async def _curl(portal: LivePortal, file: Path) -> float:
    async with aiohttp.ClientSession(portal.base_url) as session:
        async with session.post("/api/videos/presign", json=PRESIGN) as answer:
            upload = await answer.json()
        began = monotonic()
        command = ("curl", "-sSf", "-T", str(file), "-H", "Content-Type: video/mp4")
        address = upload["uploadUrl"]
        await asyncio.to_thread(
            subprocess.run, [*command, address], check=True, timeout=LIMIT_S, capture_output=True
        )
        took_s = monotonic() - began
        await _discard(session, upload["key"])
    return took_s


async def _page(page: BarePage, portal: LivePortal) -> float:
    began = monotonic()
    async with asyncio.timeout(LIMIT_S):
        key = await page.run(SEND)
    took_s = monotonic() - began
    async with aiohttp.ClientSession(portal.base_url) as session:
        await _discard(session, key)
    return took_s


async def _discard(session: aiohttp.ClientSession, key: str) -> None:
    upload_id = key.partition("/")[2].partition(".")[0]
    async with session.delete(f"/api/uploads/{upload_id}") as answer:
        answer.raise_for_status()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--size-mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
