"""Actions and locators of the page that records."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from chromium import TIMEOUT_MS, find_or_install
from playwright.async_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    async_playwright,
    expect,
)
from running_portal import LivePortal, call, final_status
from stored_objects import s3_client

# Chromium with fake devices, which it may use. The fake camera is a moving figure, and the fake
# microphone beeps.
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
    "--auto-select-desktop-capture-source=Entire screen",
)
# Factor by which Chromium slows its work, to find what depends on a fast machine.
SLOWDOWN = float(os.environ.get("PORTAL_CPU_SLOWDOWN", "1"))
RECORDED_S = """() => {
    const [minutes, rest] = document.querySelector("[data-clock]").textContent.split(":");
    return Number(minutes) * 60 + Number(rest);
}"""
FLASHING_SCREEN = Path(__file__).with_name("flashing_screen.mjs").read_text(encoding="utf-8")


@asynccontextmanager
async def capturing_browser(arguments: Sequence[str] = ARGUMENTS) -> AsyncIterator[Browser]:
    """Run Chromium with fake devices, or with other arguments."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_or_install("chromium", "chromium", "google-chrome"),
            args=arguments,
        )
        yield browser
        await browser.close()


async def slow_down_processor(page: Page) -> None:
    """Let Chromium slow down the work of the page, if the environment asks for it."""
    session = await page.context.new_cdp_session(page)
    await session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})


async def open_recorder(page: Page) -> None:
    await page.goto("/record")
    await page.locator("[data-record][data-ready]").wait_for()


async def choose_sources(page: Page, *names: str) -> None:
    for name in names:
        await page.get_by_role("button", name=name, exact=True).click()
        await expect(
            page.get_by_role("button", name=name, exact=True, pressed=True)
        ).to_be_visible()


async def record_past(page: Page, seconds: int) -> None:
    """Start to record, and wait until so much is recorded."""
    await page.keyboard.press("r")
    await clock_past(page, seconds)


async def clock_past(page: Page, seconds: int) -> None:
    """Wait until so much is recorded."""
    reached = f"(seconds) => ({RECORDED_S})() >= seconds"
    timeout_ms = TIMEOUT_MS + 2000 * seconds
    await page.wait_for_function(reached, arg=seconds, timeout=timeout_ms)


async def recorded_s(page: Page) -> int:
    """Return the length of the recording, as the page shows it."""
    return int(await page.evaluate(RECORDED_S))


async def share_flashing_screen(context: BrowserContext, **options: object) -> None:
    """Let the pages record a screen that flashes and beeps, as of `flashing_screen.mjs`."""
    shared = f"() => flashingScreen({json.dumps(options)})"
    devices = f"navigator.mediaDevices.getDisplayMedia = {shared};"
    await context.add_init_script(f"{FLASHING_SCREEN}\nif (navigator.mediaDevices) {devices}")


def address_of(page: Page) -> Locator:
    """Return the link to the recorded video."""
    return page.locator("[data-address] a")


async def video_id_of(page: Page) -> str:
    return (await address_of(page).get_attribute("href") or "").rpartition("/")[2]


async def duration_s_of(live_portal: LivePortal, video_id: str) -> float:
    """Return the duration of a video, once it is ready."""
    await final_status(live_portal.base_url, video_id)
    async with (
        aiohttp.ClientSession(live_portal.base_url) as session,
        session.get(f"/api/videos/{video_id}", params={"include": "details"}) as response,
    ):
        record = await response.json()
    assert record["status"] == "ready", record
    return float(record["details"]["durationSeconds"])


async def crash(page: Page) -> None:
    """Kill the process of the page."""
    session = await page.context.new_cdp_session(page)
    async with page.expect_event("crash"):
        # A crashed page sends no response to the command.
        asyncio.ensure_future(session.send("Page.crash")).add_done_callback(lambda _: None)


async def stored_film(portal: LivePortal, video_id: str, path: Path) -> Path:
    """Write the uploaded file of a video to this path, and return it."""
    record = await call("GET", f"{portal.base_url}/api/videos/{video_id}")
    async with s3_client(portal.environ) as client:
        await client.download_file(portal.environ["S3_BUCKET"], record["storageKey"], str(path))
    return path
