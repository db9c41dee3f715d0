"""The main journey, and a recording, in Debian's Firefox."""

from collections.abc import Callable
from pathlib import Path

import pytest
from chromium import TIMEOUT_MS, TRANSCODE_TIMEOUT_MS, play_past
from playwright.async_api import Browser, Page, expect
from record_page import (
    address_of,
    choose_sources,
    duration_s_of,
    open_recorder,
    record_past,
    video_id_of,
)
from running_portal import LivePortal, call
from upload_page import fill_in, open_video, press_publish, start_upload

CAPTIONS = {
    "data": "WEBVTT\n\n00:00.000 --> 00:01.900\nGood morning.\n",
    "headers": {"Content-Type": "text/vtt"},
}


# Firefox logs this for a request, such as a poll, whose page is left.
@pytest.mark.complaint("NetworkError when attempting to fetch resource")
@pytest.mark.slow
async def test_video_is_uploaded_published_and_played(
    live_portal: LivePortal, watch: Callable[[Page], None], short_video: Path, firefox: Browser
) -> None:
    page = await firefox.new_page(base_url=live_portal.base_url)
    page.set_default_timeout(TIMEOUT_MS)
    watch(page)
    await start_upload(page, short_video)
    await fill_in(page, title="Sent by Firefox")
    await press_publish(page, title="Sent by Firefox")
    await open_video(page, "Sent by Firefox")
    video = page.locator("video")
    await expect(video).to_be_visible(timeout=TRANSCODE_TIMEOUT_MS)
    await play_past(page, 0.5)
    # The player uses Media Source Extensions, not a file.
    assert (await video.evaluate("video => video.currentSrc")).startswith("blob:")
    assert await video.evaluate("video => video.videoWidth") == 320

    # Captions are uploaded while the video plays.
    track = f"{page.url.partition('/videos/')[2]}/captions/en"
    await call("PUT", f"{live_portal.base_url}/api/videos/{track}", status=201, **CAPTIONS)
    await page.evaluate("document.body.dispatchEvent(new Event('captions-changed'))")
    await page.get_by_text("Transcript", exact=True).click()
    cue = page.get_by_role("link", name="Good morning.")
    await cue.click()
    await expect(cue).to_have_attribute("aria-current", "true")


@pytest.mark.complaint("NetworkError when attempting to fetch resource")
@pytest.mark.slow
async def test_camera_and_microphone_are_recorded(
    live_portal: LivePortal, watch: Callable[[Page], None], firefox: Browser
) -> None:
    page = await firefox.new_page(base_url=live_portal.base_url)
    page.set_default_timeout(TIMEOUT_MS)
    watch(page)
    await open_recorder(page)
    await choose_sources(page, "Camera", "Microphone")
    await record_past(page, 3)
    await page.keyboard.press("s")
    await expect(address_of(page)).to_be_visible()
    assert await duration_s_of(live_portal, await video_id_of(page)) > 2.5
    await address_of(page).click()
    await play_past(page, 1)
    # Firefox has no encoder for AAC; the page loads one.
    assert await page.locator("video").evaluate("video => video.mozHasAudio")
