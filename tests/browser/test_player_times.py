"""A video's length: one figure wherever it is told."""

from pathlib import Path

import pytest
from chromium import Publish
from player_page import open_player, read
from playwright.async_api import Page, expect
from running_portal import run_ffmpeg


@pytest.mark.parametrize(("frames", "told"), [(25, "0:03"), (36, "0:04"), (4, "0:01")])
async def test_card_page_and_player_tell_the_same_length(
    page: Page, publish: Publish, tmp_path: Path, frames: int, told: str
) -> None:
    """2.5 s, 3.6 s and 0.4 s."""
    picture = f"testsrc2=size=320x180:rate=10:duration={frames / 10}"
    file = run_ffmpeg(tmp_path / "clip.mp4", "-f", "lavfi", "-i", picture, "-pix_fmt", "yuv420p")
    video_id = await publish(file, f"Of {frames} frames", until="ready")
    await page.goto(f"/?q=Of+{frames}+frames")
    length = page.locator(".card__duration time")
    await expect(length).to_have_text(told)
    await expect(length).to_have_attribute("datetime", f"PT{int(told[-1])}S")

    await page.goto(f"/videos/{video_id}/edit")
    await expect(page.locator("#facts")).to_contain_text(f"Duration {told}", use_inner_text=True)
    await open_player(page, f"/videos/{video_id}")
    meta = page.locator("meta[property='video:duration']")
    await expect(meta).to_have_attribute("content", told[-1])
    display = page.locator("media-time-display")
    await expect(display).to_have_text(f"0:00 / {told}")
    seconds = "second" if told == "0:01" else "seconds"
    await expect(display).to_have_attribute(
        "aria-description", f"0 seconds of {told[-1]} {seconds}"
    )
    await read(page, "void (video.currentTime = video.duration)")
    await expect(display).to_have_text(f"{told} / {told}")
