"""A long video in a browser: watched early, while its other qualities are still being made."""

from __future__ import annotations

from pathlib import Path

from browser_kit import Finish, Publish, play_past
from passes_kit import make_source
from playwright.async_api import Page, expect

COMPLETION_TIMEOUT_MS = 90_000
# How often the page has fetched a master playlist.
TIMES_READ = """performance.getEntriesByType("resource")
    .filter(({ name }) => name.endsWith("/master.m3u8")).length"""


async def test_qualities_that_come_later_reach_the_open_page(
    page: Page, publish: Publish, finish: Finish, tmp_path: Path
) -> None:
    video_id = await publish(make_source(tmp_path / "long.mp4", rate=10), "Watched early")
    assert await finish(video_id) == "ready"
    await page.goto(f"/videos/{video_id}")
    remaining = page.locator("#remaining")
    await expect(remaining).to_contain_text("720p")
    player = await page.locator("video").element_handle()
    assert player is not None

    await expect(remaining).to_be_hidden(timeout=COMPLETION_TIMEOUT_MS)

    assert await player.evaluate("video => video.isConnected"), "the player was replaced"
    await expect(page.locator("#facts")).to_contain_text("720p")
    await page.wait_for_function(TIMES_READ + " > 1")
    await play_past(page, 0.5)
