"""A video is watched while it is made, and goes on by itself when it is ready."""

import re
from pathlib import Path

import pytest
from chromium import TRANSCODE_TIMEOUT_MS, play_past
from passes import make_source
from playwright.async_api import Page, expect
from running_portal import LivePortal, call, create, process, until

pytestmark = pytest.mark.slow


async def test_player_follows_what_is_made_and_changes_over_in_place(
    portal: LivePortal, page: Page, tmp_path: Path
) -> None:
    # The page, which polls, is closed before its portal ends: fixtures end in turn.
    made = await create(portal.base_url, make_source(tmp_path / "film.mp4", seconds=61))
    transcode = f"{portal.base_url}/api/videos/{made['id']}/transcode"

    async def can_be_watched() -> bool:
        return (await call("GET", transcode))["previewUrl"] is not None

    async with process("worker", portal.environ):
        await until(can_be_watched, timeout_s=30)
    await page.goto(f"{portal.base_url}/videos/{made['id']}")
    await expect(page.get_by_text("Still processing. You can watch the first")).to_be_visible()
    await expect(page.locator("media-time-display")).to_contain_text("/ 1:01")
    await play_past(page, 1)
    video = page.locator("video")
    first = await video.element_handle()
    assert first is not None
    await video.evaluate(
        "it => { it.emptied = 0; it.addEventListener('emptied', () => { it.emptied += 1; }); }"
    )
    edge_s = await video.evaluate("it => it.currentTime = it.duration - 0.5")
    await expect(page.locator("[data-player-waiting]")).to_have_text(
        "Waiting for the next part to be processed…"
    )

    async with process("worker", portal.environ):
        await play_past(page, edge_s + 3)
        ready = page.locator("[data-remaining][data-status=ready]")
        await expect(ready).to_be_attached(timeout=TRANSCODE_TIMEOUT_MS)
    # The same stage goes on with what there is now, from where it was.
    assert await first.evaluate("it => it.isConnected && !('grows' in it.dataset)")
    await play_past(page, await video.evaluate("it => it.currentTime") + 1)
    assert await video.evaluate("it => [it.emptied, Math.round(it.seekable.end(0))]") == [0, 61]
    await expect(video).to_have_attribute("data-src", re.compile(rf"/{made['id']}/\d+/master"))
