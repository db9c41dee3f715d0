"""The main journeys in Debian's Firefox: its media, its captions and its forms are its own."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import firefox_bridge
import pytest
from captions import (
    await_captions_above_controls,
    caption_rows,
    hide_controls,
    show_captions,
    show_controls,
)
from chromium import (
    READY_SEARCH,
    TIMEOUT_MS,
    TRANSCODE_TIMEOUT_MS,
    Complaints,
    Publish,
    play_past,
    run,
)
from player_page import make_film, wait_for
from playwright.async_api import Browser, Page, async_playwright, expect
from running_portal import LivePortal
from turns import in_turn
from upload_page import fill_in, open_video, press_publish, start_upload
from workshop_page import open_workshop

pytestmark = pytest.mark.slow
# Of "body {}", which Playwright puts into each page that it photographs by WebDriver BiDi.
PHOTOGRAPHED = "sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT"


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


@pytest.fixture(scope="module")
async def small_film(publish: Publish, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The id of a film with captions that takes little to encode."""
    path = make_film(tmp_path_factory.mktemp("film"), size="320x180")
    return await publish(path, "A small film", until="ready")


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


@pytest.mark.complaint(PHOTOGRAPHED)
async def test_captions_make_way_for_the_controls(page: Page, small_film: str) -> None:
    await show_captions(page, f"/videos/{small_film}")
    await hide_controls(page)
    alone = await caption_rows(page)
    await show_controls(page)
    beside = await await_captions_above_controls(page)
    assert min(beside) < min(alone)
    await page.set_viewport_size({"width": 360, "height": 740})
    assert await await_captions_above_controls(page)
    await page.keyboard.press("f")
    await wait_for(page, "document.fullscreenElement")
    assert await await_captions_above_controls(page)


async def test_title_is_edited(page: Page, publish: Publish, notes: Path) -> None:
    video_id = await publish(notes, "Before")
    form = await open_workshop(page, f"/videos/{video_id}", "Details")
    await form.get_by_label("Title").fill("After")
    await form.get_by_role("button", name="Save changes").click()
    await expect(form.get_by_text("Saved.")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_have_text("After")
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("After")


async def test_library_is_searched_while_typing(page: Page, ready_video: str) -> None:
    await page.goto("/")
    await page.get_by_role("searchbox").press_sequentially("A ready video")
    await expect(page).to_have_url(READY_SEARCH)
    card = page.locator(f"#card-{ready_video}")
    await card.get_by_role("link", name="A ready video").click()
    await expect(page).to_have_url(f"/videos/{ready_video}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("A ready video")
