"""A video can be watched while it is transcoded, and continues when it is ready."""

import re
from pathlib import Path

import pytest
from chromium import TRANSCODE_TIMEOUT_MS, play_past
from passes import make_source
from player_page import wait_for
from playwright.async_api import Page, expect
from running_portal import LivePortal, call, create, process, until

pytestmark = pytest.mark.slow


@pytest.mark.soak
async def test_player_follows_a_growing_preview_and_switches_to_the_complete_video(
    portal: LivePortal, page: Page, tmp_path: Path
) -> None:
    # The `page` fixture comes last, so that the polling page is closed before its portal ends.
    video_record = await create(portal.base_url, make_source(tmp_path / "film.mp4", seconds=61))
    transcode = f"{portal.base_url}/api/videos/{video_record['id']}/transcode"

    async def can_be_watched() -> bool:
        return (await call("GET", transcode))["previewUrl"] is not None

    async with process("worker", portal.environ):
        await until(can_be_watched, timeout_s=30)
    await page.goto(f"{portal.base_url}/videos/{video_record['id']}")
    part = page.get_by_text(re.compile(r"You can watch the first 0:\d\d of 1:01\."))
    await expect(part).to_be_visible()
    await expect(page.locator("media-time-display")).to_contain_text("/ 1:01")
    bar_share = """video => video.closest("media-controller").querySelector("media-time-range")
        .offsetWidth / video.offsetWidth"""
    await play_past(page, 1)
    await page.evaluate("document.body.addEventListener('video-final', () => (window.ended = 1))")
    video = page.locator("video")
    first = await video.element_handle()
    assert first is not None
    await video.evaluate(
        "video => { video.emptied = 0; video.onemptied = () => { video.emptied += 1; }; }"
    )
    # The time bar takes the share of the video that can be watched.
    made_share = await video.evaluate("video => video.duration / 61")
    assert await video.evaluate(bar_share) == pytest.approx(made_share, abs=0.05)
    edge_s = await video.evaluate("video => video.currentTime = video.duration - 0.5")
    await expect(page.locator("[data-player-waiting]")).to_have_text(
        "Waiting for the next part to be processed…"
    )

    async with process("worker", portal.environ):
        await play_past(page, edge_s + 3)
        ready = page.locator("[data-remaining][data-status=ready]")
        await expect(ready).to_be_attached(timeout=TRANSCODE_TIMEOUT_MS)
    # Other parts of the page show the finished video.
    await page.wait_for_function("() => window.ended === 1")
    # The same player continues with the complete video at its position.
    assert await first.evaluate("video => video.isConnected && !('grows' in video.dataset)")
    await play_past(page, await video.evaluate("video => video.currentTime") + 1)
    await wait_for(page, "Math.round(video.seekable.end(0)) === 61")
    assert await video.evaluate("video => video.emptied") == 0
    assert await video.evaluate(bar_share) > 0.9
    await expect(video).to_have_attribute(
        "data-src", re.compile(rf"/{video_record['id']}/\d+/master")
    )
