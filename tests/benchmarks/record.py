"""Time from the end of a recording until it has its address, and until it plays there.

Chromium records a screen that flashes and beeps on the page that records; storage is on the machine
itself.

    python tests/benchmarks/record.py [--minutes 1] [--width 1280] [--height 720]
"""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from time import monotonic

from benchmark_portal import measured_portal, options_of
from playwright.async_api import async_playwright, expect
from running_portal import LivePortal

sys.path.insert(0, str(Path(__file__).parent.parent / "browser"))
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "static"))
from record_page import (
    ARGUMENTS,
    address_of,
    choose_sources,
    open_recorder,
    record_past,
    share_flashing_screen,
    stored_film,
    video_id_of,
)
from recorder_page import decode_long

ADDRESS_AIM_S = 2
PLAY_AIM_S = 5
STEP_AIM_MS = 40
PLAYS = "() => (document.querySelector('video')?.currentTime ?? 0) > 0"
TIMEOUT_MS = 120_000


async def main() -> None:
    options = options_of(__doc__, minutes=1.0, width=1280, height=720)
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        path = Path(folder) / "film.mp4"
        async with measured_portal(Path(folder), worker=True) as portal:
            await record(portal, round(60 * options.minutes), options.width, options.height, path)
        size_mb = path.stat().st_size / 1e6
        film = decode_long(path)
    first_ms = 1000 * film.step_s(0, 60)
    last_ms = 1000 * film.step_s(film.end_s - 60, film.end_s)
    print(f"film: {film.end_s:.1f} s, {size_mb:.0f} MB, {film.missing_s:.1f} s without pictures")
    print(
        f"sound after the picture: {first_ms:.0f} ms in the first minute, {last_ms:.0f} ms in the"
    )
    print(f"last (aim: {STEP_AIM_MS} ms)")


async def record(portal: LivePortal, seconds: int, width: int, height: int, path: Path) -> None:
    """Record so many seconds, print the times that follow, and write the film to the path."""
    async with async_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        context = await browser.new_context(base_url=portal.base_url)
        context.set_default_timeout(TIMEOUT_MS)
        await share_flashing_screen(context, isNoisy=True, width=width, height=height)
        page = await context.new_page()
        await open_recorder(page)
        await choose_sources(page, "Screen, window or tab")
        await record_past(page, seconds)
        viewer = await context.new_page()
        stopped = monotonic()
        await page.keyboard.press("s")
        await expect(address_of(page)).to_be_visible(timeout=TIMEOUT_MS)
        print(f"address: {monotonic() - stopped:.1f} s after Stop (aim: {ADDRESS_AIM_S} s)")
        video_id = await video_id_of(page)
        await viewer.goto(f"/videos/{video_id}")
        await viewer.locator("video").evaluate("(video) => { video.muted = true; video.play(); }")
        await viewer.wait_for_function(PLAYS)
        print(f"plays: {monotonic() - stopped:.1f} s after Stop (aim: {PLAY_AIM_S} s)", flush=True)
        await browser.close()
        await stored_film(portal, video_id, path)


if __name__ == "__main__":
    asyncio.run(main())
