"""A long video in a browser: watched early, while its other qualities are still being made."""

from pathlib import Path

import pytest
from chromium import Publish, play_past
from passes import make_source
from player_page import open_player, read, wait_for
from playwright.async_api import Page, expect

COMPLETION_TIMEOUT_S = 600
# A busy machine's decoder may wait as well, and hls.js then nudges it by a tenth of a second; but
# then what comes next is there to be shown.
INTERRUPTIONS = """() => {
    window.interruptions = [];
    const video = document.querySelector("video");
    let shown_s = video.currentTime;
    video.addEventListener("timeupdate", () => { shown_s = video.currentTime; });
    const isBuffered = (at_s) => {
        const { length } = video.buffered;
        return Array.from({ length }, (_, i) => i).some(
            (i) => video.buffered.start(i) <= at_s && at_s + 1 < video.buffered.end(i));
    };
    for (const name of ["emptied", "waiting", "seeking", "error", "pause"]) {
        video.addEventListener(name, () => {
            const isBusy = name === "waiting" && isBuffered(video.currentTime);
            const isNudge = name === "seeking" && Math.abs(video.currentTime - shown_s) < 1;
            if (!isBusy && !isNudge) window.interruptions.push([name, video.currentTime]);
        });
    }
}"""


@pytest.mark.slow
async def test_qualities_that_come_later_reach_whoever_is_watching(
    page: Page, publish: Publish, tmp_path: Path
) -> None:
    video_id = await publish(
        make_source(tmp_path / "long.mp4", seconds=200, rate=5), "Watched early"
    )
    await page.goto(f"/embed/{video_id}")
    await expect(page.get_by_role("heading")).to_have_text("This video is being processed")
    await wait_for(page, "video?.readyState >= 2", timeout_s=COMPLETION_TIMEOUT_S)

    await open_player(page, f"/videos/{video_id}")
    remaining = page.locator("#remaining")
    await expect(remaining).to_contain_text("720p")
    before = await read(page, "video.videoRenditions.length")
    player = await page.locator("video").element_handle()
    assert player is not None
    await play_past(page, 0.5)
    await wait_for(page, "video.buffered.length && video.buffered.end(0) > 20")
    await page.evaluate(INTERRUPTIONS)

    await expect(remaining).to_be_hidden(timeout=COMPLETION_TIMEOUT_S * 1000)

    assert await player.evaluate("video => video.isConnected"), "the player was replaced"
    await wait_for(page, f"video.videoRenditions.length > {before}")
    at_s = await read(page, "video.currentTime")
    await wait_for(page, f"video.currentTime > {at_s + 1}")
    assert await page.evaluate("window.interruptions") == []
    last = "video.videoRenditions.length - 1"
    await read(page, f"void (video.videoRenditions.selectedIndex = {last})")
    best = await read(page, "video.videoRenditions.items.at(-1).lines")
    await wait_for(page, f"Math.abs(video.videoHeight - {best}) <= 4")
