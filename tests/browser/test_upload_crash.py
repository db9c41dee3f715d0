"""An upload outlives the browser itself."""

import signal
from pathlib import Path

import psutil
import pytest
from chromium import CHROMIUM_ARGUMENTS
from playwright.async_api import BrowserContext, Playwright, async_playwright, expect
from running_portal import LivePortal, until
from upload_page import (
    STORAGE,
    details,
    fill_in,
    is_uploaded,
    line,
    open_upload,
    padded,
    start_upload,
)


@pytest.mark.slow
async def test_upload_is_offered_again_after_the_browser_was_killed(
    chromium: str | None, live_portal: LivePortal, short_video: Path, tmp_path: Path
) -> None:
    film = padded(short_video, tmp_path / "crash.mp4", 1_200_000)
    profile = tmp_path / "profile"
    async with async_playwright() as playwright:
        context = await _open(playwright, chromium, live_portal, profile)
        page = context.pages[0]
        await page.route(STORAGE, lambda route: route.abort())
        await start_upload(page, film)
        await fill_in(page, title="Before the crash")
        await until(lambda: _is_on_disk(profile, "Before the crash"), timeout_s=30)
        _kill(profile)

        context = await _open(playwright, chromium, live_portal, profile)
        page = context.pages[0]
        await open_upload(page)
        await expect(line(page, film.name)).to_contain_text("Unfinished")
        await expect(page.get_by_label("Title")).to_have_value("Before the crash")
        await details(page).get_by_label("Choose the file again").set_input_files(film)
        await is_uploaded(page, film.name)
        await context.close()


async def _open(
    playwright: Playwright, chromium: str | None, portal: LivePortal, profile: Path
) -> BrowserContext:
    return await playwright.chromium.launch_persistent_context(
        profile, executable_path=chromium, args=CHROMIUM_ARGUMENTS, base_url=portal.base_url
    )


def _is_on_disk(profile: Path, words: str) -> bool:
    """Browsers write what pages keep a few seconds later; before that a crash takes it."""
    files = (profile / "Default" / "Local Storage" / "leveldb").glob("*.log")
    return any(words.encode() in path.read_bytes() for path in files)


def _kill(profile: Path) -> None:
    for process in psutil.process_iter(["cmdline"]):
        if f"--user-data-dir={profile}" in (process.info["cmdline"] or []):
            process.send_signal(signal.SIGKILL)
