"""Weight and vitals of the main pages, as Chromium loads them from an empty cache.

Starts a portal, publishes a video, and opens each page again and again at a quarter of the
processor's speed. Tells for each page its kilobytes by kind, those of text as gzip packs them, the
largest contentful paint (LCP) and the cumulative layout shift (CLS): medians. Media is not counted.
A page of one word tells what of the LCP is the browser's and the machine's. Pages take turns, so
that a slow minute of the machine is all pages'.

    python tests/benchmarks/pages.py [--rounds 11] [--slowdown 4]

Needs a Chromium. Starts and stops everything else itself.
"""

import argparse
import asyncio
import gzip
import statistics
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmark_portal import measured_portal

sys.path.insert(0, str(Path(__file__).parent.parent / "browser"))

from chromium import CHROMIUM_ARGUMENTS, find_chromium, publish_file  # uses what is there
from playwright.async_api import Browser, Response, async_playwright
from running_portal import final_status, make_video, storyboard

# Of what the browser tells apart.
KINDS = {
    "document": "html",
    "stylesheet": "css",
    "script": "js",
    "font": "font",
    "image": "images",
}
PACKED = ("html", "css", "js")
# The largest paint may come again and again, until the page is quiet.
OBSERVE = """
window.vitals = { lcp_ms: 0, cls: 0 };
new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) vitals.lcp_ms = entry.startTime;
}).observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) vitals.cls += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
ONE_WORD = "data:text/html,<!doctype html><p>Word"
WITHOUT_PLAYER = ("chunk-player-", "chunk-hls-stream-", "chunk-controls-")


@dataclass
class Load:
    """One load of a page; sizes are bytes by kind."""

    sizes: Counter[str] = field(default_factory=Counter)
    lcp_ms: float = 0
    cls: float = 0


@dataclass(frozen=True)
class PageOf:
    """A page to measure; `without` names scripts that are kept from it, by part of an address."""

    name: str
    path: str
    without: tuple[str, ...] = ()


async def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="portal-pages-") as folder:
        video = make_video(Path(folder) / "film.mp4", seconds=4)
        async with (
            measured_portal(Path(folder), worker=True) as portal,
            async_playwright() as playwright,
        ):
            video_id = await publish_file(portal.base_url, video, "A film")
            assert await final_status(portal.base_url, video_id) == "ready"
            await storyboard(portal.base_url, video_id)
            browser = await playwright.chromium.launch(
                executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
            )
            rounds = [
                [
                    await _load(browser, portal.base_url, page, options.slowdown)
                    for page in _pages(video_id)
                ]
                for _round in range(options.rounds + 1)
            ]
            await browser.close()
    print("| page | html | css | js | font | images | together | LCP | CLS |")
    print("| --- " * 9 + "|")
    # The first round warms browser and portal up.
    for page, *loads in zip(_pages(video_id), *rounds[1:], strict=True):
        print(_row(page, loads))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--slowdown", type=float, default=4, help="of the processor")
    return parser.parse_args()


def _pages(video_id: str) -> list[PageOf]:
    return [
        PageOf("one word", ONE_WORD),
        PageOf("library", "/"),
        PageOf("upload", "/upload"),
        PageOf("watch, without the player", f"/videos/{video_id}", WITHOUT_PLAYER),
        PageOf("watch", f"/videos/{video_id}"),
        PageOf("edit", f"/videos/{video_id}/edit"),
    ]


async def _load(browser: Browser, base_url: str, page_of: PageOf, slowdown: float) -> Load:
    load = Load()
    async with await browser.new_context(base_url=base_url) as context:
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        await session.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
        if page_of.without:
            # Not by Playwright's routes, which would hold up every request for a round trip.
            await session.send("Network.enable")
            await session.send(
                "Network.setBlockedURLs", {"urls": [f"*{part}*" for part in page_of.without]}
            )
        answers: list[Response] = []
        page.on("response", lambda answer: answers.append(answer))  # it has to be a function
        await page.add_init_script(OBSERVE)
        await page.goto(page_of.path, wait_until="networkidle")
        await page.wait_for_function("() => vitals.lcp_ms > 0")
        vitals = await page.evaluate("vitals")
        for answer in answers:
            await _weigh(answer, load)
    load.lcp_ms, load.cls = vitals["lcp_ms"], vitals["cls"]
    return load


async def _weigh(response: Response, load: Load) -> None:
    kind = KINDS.get(response.request.resource_type)
    if kind and response.ok and response.url.startswith("http"):
        body = await response.body()
        load.sizes[kind] += len(gzip.compress(body, 9) if kind in PACKED else body)


def _row(page: PageOf, loads: list[Load]) -> str:
    def middle_kb(kind: str) -> float:
        return statistics.median(load.sizes[kind] for load in loads) / 1000

    sizes = [middle_kb(kind) for kind in KINDS.values()]
    lcp_ms = statistics.median(load.lcp_ms for load in loads)
    cls = statistics.median(load.cls for load in loads)
    columns = [*(f"{size:.1f}" for size in (*sizes, sum(sizes))), f"{lcp_ms:.0f} ms", f"{cls:.3f}"]
    return f"| {page.name} | {' | '.join(columns)} |"


if __name__ == "__main__":
    asyncio.run(main())
