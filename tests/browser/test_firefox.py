"""The main journeys in Debian's Firefox: its media, its captions and its forms are its own."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import firefox_bridge
import pytest
from chromium import (
    TIMEOUT_MS,
    TRANSCODE_TIMEOUT_MS,
    Complaints,
    play_past,
    run,
)
from front_end import in_turn
from playwright.async_api import Browser, Page, async_playwright, expect
from running_portal import LivePortal
from upload_page import fill_in, open_video, press_publish, start_upload

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that starts the browser of this machine, installed if need be, for Playwright."""
    with in_turn():
        if not shutil.which("firefox-esr") and shutil.which("apt-get") and os.geteuid() == 0:
            run("apt-get", "update")
            run("apt-get", "install", "--yes", "firefox-esr")
    browser = shutil.which("firefox-esr") or shutil.which("firefox")
    if browser is None:
        pytest.skip("there is no Firefox, and only root can install it, with apt-get")
    program = tmp_path_factory.mktemp("firefox") / "firefox"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {firefox_bridge.__file__} {browser} "$@"')
    program.chmod(0o700)
    return program


@pytest.fixture(scope="module")
async def firefox_browser(firefox: Path) -> AsyncIterator[Browser]:
    """One browser for all tests of this file."""
    async with async_playwright() as playwright:
        browser = await playwright.firefox.launch(
            channel="moz-firefox",
            executable_path=firefox,
            firefox_user_prefs={"media.autoplay.default": 0},
        )
        yield browser
        await browser.close()


@pytest.fixture
async def page(
    firefox_browser: Browser, live_portal: LivePortal, complaints: Complaints
) -> AsyncIterator[Page]:
    """A page on the portal; it may not complain."""
    # So Firefox calls a request whose page is left meanwhile, a poll for example.
    complaints.expected.append("NetworkError when attempting to fetch resource")
    viewport = {"width": 1280, "height": 900}
    async with await firefox_browser.new_context(
        base_url=live_portal.base_url, viewport=viewport
    ) as context:
        context.set_default_timeout(TIMEOUT_MS)
        context.on("page", complaints.watch)
        yield await context.new_page()
    assert complaints.unexpected() == []


async def test_video_is_uploaded_published_and_played(page: Page, short_video: Path) -> None:
    await start_upload(page, short_video)
    await fill_in(page, title="Sent by Firefox")
    await press_publish(page, title="Sent by Firefox")
    await open_video(page, "Sent by Firefox")
    await expect(page.locator("video")).to_be_visible(timeout=TRANSCODE_TIMEOUT_MS)
    await play_past(page, 0.5)
    # By Media Source Extensions, not as a file.
    assert (await page.locator("video").evaluate("video => video.currentSrc")).startswith("blob:")
    assert await page.locator("video").evaluate("video => video.videoWidth") == 320
