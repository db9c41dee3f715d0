"""Speed and memory of repacking a Matroska while it is sent, against sending the same film as MP4.

Chromium uploads both to one portal, one after the other. Memory is that of the page's process with
its workers, above that of the page before a file was chosen.

    python tests/benchmarks/repack.py [--gigabytes 2.2] [--rate 30M] [--line 100]
"""

import argparse
import asyncio
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from benchmark_portal import measured_portal
from playwright.async_api import Browser, CDPSession, async_playwright, expect
from running_portal import run_ffmpeg

sys.path.insert(0, str(Path(__file__).parent.parent / "browser"))
from upload_page import slow_down

SPEED_AIM = 0.9
MEMORY_AIM_MB = 200
CLIP_S = 20
ENDS = re.compile("Uploaded|Not uploaded|published")
MEMORY = re.compile(r"^(?:RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=2.2)
    parser.add_argument("--rate", default="30M", help="bit rate of the film")
    parser.add_argument("--fps", type=int, default=25)
    parser.add_argument("--line", type=int, default=0, help="rate of the line in Mbit/s, 0 for any")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as name:
        folder = Path(name)
        clip = make_clip(folder / "clip.mkv", arguments.rate, arguments.fps)
        loops = round(arguments.gigabytes * 1e9 / clip.stat().st_size)
        films = [
            run_ffmpeg(folder / name, "-stream_loop", str(loops), "-i", str(clip), "-c", "copy")
            for name in ("film.mp4", "film.mkv")
        ]
        async with (
            measured_portal(folder, worker=False) as portal,
            async_playwright() as playwright,
        ):
            chromium = shutil.which("chromium") or shutil.which("google-chrome")
            browser = await playwright.chromium.launch(executable_path=chromium)
            taken_s = []
            for film in films:
                seconds, memory_mb = await measure(browser, portal.base_url, film, arguments.line)
                size_mb = film.stat().st_size / 1e6
                print(
                    f"{film.name}: {size_mb:.0f} MB in {seconds:.1f} s, "
                    f"{size_mb / seconds:.0f} MB/s, {memory_mb:.0f} MB of memory at most",
                    flush=True,
                )
                taken_s.append(seconds)
            await browser.close()
    print(f"speed: {taken_s[0] / taken_s[1]:.2f} of sending the MP4 (aim: {SPEED_AIM})")
    print(f"memory: {memory_mb:.0f} MB (aim: {MEMORY_AIM_MB} MB)")


def make_clip(path: Path, rate: str, fps: int) -> Path:
    """Make a film of noise, whose size follows its bit rate."""
    picture = f"nullsrc=s=1280x720:r={fps}:d={CLIP_S},geq=random(1)*255:128:128"
    return run_ffmpeg(
        path,
        *("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", f"sine=duration={CLIP_S}"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-b:v", rate, "-g", str(2 * fps)),
        *("-pix_fmt", "yuv420p", "-c:a", "aac"),
    )


async def measure(
    browser: Browser, base_url: str, film: Path, line_mbit: int
) -> tuple[float, float]:
    """Return the seconds of an upload, and the most memory in MB above that of the page."""
    page = await browser.new_page(base_url=base_url)
    await page.goto("/upload")
    await page.locator("[data-upload-form][data-ready]").wait_for()
    if line_mbit:
        await slow_down(page, line_mbit * 125_000)
    session = await browser.new_browser_cdp_session()
    read_bytes = await memory_of(session)
    before_bytes = read_bytes()
    begun = monotonic()
    await page.locator("[data-drop] input").set_input_files(film)
    uploaded = asyncio.create_task(
        expect(page.locator("[data-figure]")).to_have_text(ENDS, timeout=3_600_000)
    )
    most_bytes = before_bytes
    while not uploaded.done():
        most_bytes = max(most_bytes, read_bytes())
        await asyncio.wait([uploaded], timeout=0.2)
    await uploaded
    outcome = await page.locator("[data-figure]").inner_text()
    assert outcome == "Uploaded", await page.locator("[data-notice]").inner_text()
    taken_s = monotonic() - begun
    await page.close()
    return taken_s, (most_bytes - before_bytes) / 1e6


async def memory_of(session: CDPSession) -> Callable[[], int]:
    """Return a function that reads the memory of the page's process in bytes."""
    processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
    # The largest of them has the page; the others are spare.
    pids = [process["id"] for process in processes if process["type"] == "renderer"]

    def read() -> int:
        totals = []
        for pid in pids:
            status = Path(f"/proc/{pid}/status")
            if status.exists():
                totals.append(sum(map(int, MEMORY.findall(status.read_text()))) * 1024)
        return max(totals, default=0)

    return read


if __name__ == "__main__":
    asyncio.run(main())
