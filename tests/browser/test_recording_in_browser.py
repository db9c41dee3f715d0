"""Journeys of the page that records, with Chromium's fake camera, screen and microphone."""

import re
from collections.abc import AsyncIterator

import pytest
from chromium import (
    TRANSCODE_TIMEOUT_MS,
    OpenPage,
    find_or_install,
    play_past,
    suits_everyone,
)
from playwright.async_api import Browser, Locator, Page, async_playwright, expect
from running_portal import LivePortal, final_status
from upload_page import choose_category, details

FAKE_DEVICES = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Chromium with fake devices, which it may use."""
    arguments = ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_or_install("chromium", "chromium", "google-chrome"),
            args=[*arguments, *FAKE_DEVICES],
        )
        yield browser
        await browser.close()


async def open_recorder(page: Page) -> None:
    await page.goto("/record")
    await page.locator("[data-record][data-ready]").wait_for()


async def choose_sources(page: Page, *names: str) -> None:
    for name in names:
        await page.get_by_role("button", name=name, exact=True).click()
        await expect(page.get_by_role("button", name=name, exact=True, pressed=True)).to_be_visible()


async def record_past(page: Page, seconds: int) -> None:
    """Start to record, and wait until so much is recorded."""
    await page.keyboard.press("r")
    await page.wait_for_function(
        """(seconds) => {
            const [minutes, rest] = document.querySelector("[data-clock]").textContent.split(":");
            return Number(minutes) * 60 + Number(rest) >= seconds;
        }""",
        arg=seconds,
    )


def address_of(page: Page) -> Locator:
    """Return the link to the recorded video."""
    return page.locator("[data-address] a")


async def video_id_of(page: Page) -> str:
    return (await address_of(page).get_attribute("href") or "").rpartition("/")[2]


async def test_recording_plays_soon_after_its_end_and_is_published(
    page: Page, live_portal: LivePortal
) -> None:
    await open_recorder(page)
    await suits_everyone(page, "record")
    await choose_sources(page, "Camera", "Microphone")
    await suits_everyone(page, "record-sources")
    await record_past(page, 4)
    await page.keyboard.press("p")
    await expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    await page.keyboard.press("p")
    await page.keyboard.press("s")
    await expect(address_of(page)).to_be_visible()
    video_id = await video_id_of(page)
    await expect(details(page).get_by_label("Title")).to_have_value(re.compile("^Recording of "))
    await suits_everyone(page, "record-details")
    await details(page).get_by_label("Title").fill("How to press R")
    await choose_category(page)
    await page.get_by_role("button", name="Publish", exact=True).click()
    await expect(page.locator("[data-note]")).to_have_text("“How to press R” is published.")
    assert await final_status(live_portal.base_url, video_id) == "ready"
    await address_of(page).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("How to press R")
    await play_past(page, 3)
