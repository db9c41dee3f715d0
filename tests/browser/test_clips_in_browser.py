"""Clips: a part of a video on its page and in a frame, and the panel that makes them."""

import json
import re

import pytest
from chromium import play_past, suits_everyone
from player_page import open_player, read, wait_for
from playwright.async_api import Page, expect
from running_portal import LivePortal, call

START_S = 22.4
END_S = 23.4
# A frame of the film.
TOLERANCE_S = 0.1
# Plays to the next pause, and returns the first and the last position, and the last caption's end.
PLAY = """async () => {
    const video = document.querySelector("video");
    const captions = document.querySelector("[data-player-captions]");
    let first_s;
    let spoken_s = 0;
    video.muted = true;
    const event = (name) => new Promise((resolve) =>
        video.addEventListener(name, resolve, { once: true }));
    const ended = event("pause");
    const follow = () => {
        first_s ??= video.currentTime;
        if (captions.textContent) spoken_s = video.currentTime;
        if (!video.paused) requestAnimationFrame(follow);
    };
    event("playing").then(follow);
    await video.play();
    await ended;
    return [first_s, video.currentTime, spoken_s];
}"""
PROGRESS = "document.querySelector('media-time-range').range.valueAsNumber"


async def test_a_clip_plays_exactly_its_part(page: Page, film: str) -> None:
    positions = json.dumps({film: [9, 1]})
    settings = json.dumps({"captions": "en"})
    await page.add_init_script(
        f"localStorage['portal.positions'] ??= '{positions}';"
        f"localStorage['portal.player'] ??= '{settings}';"
    )
    await open_player(page, f"/videos/{film}?start={START_S}s&end={END_S}")
    await wait_for(page, f"video.currentTime === {START_S} && {PROGRESS} === 0")
    display = page.locator("media-time-display").locator("visible=true")
    await expect(display).to_have_text("0:22 / 0:23")
    # Twice, because playing again begins at the beginning.
    for _ in range(2):
        first_s, last_s, spoken_s = await page.evaluate(PLAY)
        assert START_S <= first_s < START_S + TOLERANCE_S * 3
        assert END_S - 0.05 <= last_s <= END_S + 0.05
        # The only caption ends before the clip does.
        assert spoken_s == pytest.approx(23, abs=0.3)
    await wait_for(page, f"{PROGRESS} > 0.95")
    await expect(display).to_have_text("0:23 / 0:23")
    for outside, inside_s in (
        ("video.currentTime = 3", START_S),
        ("video.currentTime = 24", END_S),
    ):
        await read(page, f"void ({outside})")
        await wait_for(page, f"!video.seeking && video.currentTime === {inside_s}")
    await page.locator("media-controller").focus()
    await page.keyboard.press("Home")
    await wait_for(page, f"video.currentTime === {START_S}")
    await page.keyboard.press("5")
    await wait_for(page, "Math.abs(video.currentTime - 22.9) < 0.01")
    bar = await page.locator("media-time-range").bounding_box()
    assert bar is not None
    await page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    await expect(page.locator("media-preview-thumbnail img")).to_be_visible()
    await expect(page.locator("media-preview-time-display")).to_have_text("0:22")
    await read(page, "void window.dispatchEvent(new Event('pagehide'))")
    assert await page.evaluate("localStorage['portal.positions']") == positions
    note = page.locator(".player__clip")
    await expect(note).to_contain_text("Clip, 0:22")
    link = note.get_by_role("link", name="Watch the whole video")
    assert str(await link.get_attribute("href")).endswith(f"/videos/{film}")


@pytest.mark.slow
async def test_a_clip_is_made_played_and_copied_by_keyboard(page: Page, film: str) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await open_player(page, f"/videos/{film}")
    await read(page, "void (video.currentTime = 9)")
    panel = page.locator("#clip")
    press = page.keyboard.press
    start = panel.get_by_label("Start of the clip")
    # A key must find the handle at its place, however soon it follows the opening of the panel.
    await expect(start).to_have_attribute("aria-valuetext", "0:00")
    await panel.get_by_text("Clip", exact=True).focus()
    await press("Enter")
    address = panel.get_by_label("Clip link", exact=True)
    # The film is shorter than the first clip that is offered.
    await expect(address).to_have_value(re.compile(rf"/videos/{film}$"))
    await start.focus()
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowLeft"):
        await press(key)
    await expect(start).to_have_attribute("aria-valuetext", "0:01.9")
    # The player shows the first frame of the clip, above the panel, which can be zoomed.
    await wait_for(page, "!video.seeking && video.currentTime === 1.9")
    strip = panel.locator("[data-strip-film]")
    strip_px = await strip.evaluate("(strip) => strip.clientWidth")
    await panel.get_by_role("button", name="Zoom in").press("Enter")
    zoomed_px = await strip.evaluate("(strip) => strip.clientWidth")
    assert zoomed_px == pytest.approx(2 * strip_px, abs=2)
    await panel.get_by_role("button", name="Zoom out").press("Enter")
    for width in (360, 1440):
        await page.set_viewport_size({"width": width, "height": 780})
        await panel.get_by_text("Clip", exact=True).focus()
        await start.focus()
        await expect(page.locator("#player media-controller")).to_be_in_viewport(ratio=1)
        await expect(start).to_be_in_viewport()
    field = panel.get_by_label("End", exact=True)
    await field.fill("soon")
    await press("Tab")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(panel.get_by_text("Enter a time such as 1:02.5.")).to_be_visible()
    await field.fill("0:03,4")
    await press("Tab")
    await expect(address).to_have_value(re.compile(r"\?start=1.9&end=3.4$"))
    await panel.get_by_role("button", name="Play clip").press("Enter")
    await wait_for(page, "video.paused && Math.abs(video.currentTime - 3.4) < 0.05")
    # A seek past the end continues the film.
    seek = "video.addEventListener('playing', () => { video.currentTime = 10; }, { once: true })"
    await read(page, f"void ({seek})")
    await panel.get_by_role("button", name="Play clip").press("Enter")
    await wait_for(page, "!video.paused && video.currentTime > 10.2")
    await read(page, "void (video.pause(), (video.currentTime = 3.4))")
    # The start stays a second before the end.
    await panel.get_by_role("button", name="Set to current position: start").press("Enter")
    await expect(start).to_have_attribute("aria-valuetext", "0:02.4")
    code = panel.get_by_label("Embed code of the clip", exact=True)
    await expect(code).to_have_value(re.compile(rf"/embed/{film}\?start=2.4&amp;end=3.4\""))
    await panel.get_by_role("button", name="Copy clip link").press("Enter")
    await expect(page.locator("[data-detail-live]")).to_have_text("Clip link copied")
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith(f"/videos/{film}?start=2.4&end=3.4")
    await suits_everyone(page, "clip-panel")
    async with page.expect_response("**/share"):
        # The end of processing sends this event. The panel that comes with it works, too.
        await page.evaluate("document.body.dispatchEvent(new Event('video-final'))")
    await expect(panel).not_to_have_attribute("open", "")
    await expect(panel).to_be_visible()
    await open_player(page, copied)
    await expect(page.get_by_role("link", name="Watch the whole video")).to_be_visible()
    await expect(panel).to_be_hidden()
    await suits_everyone(page, "clip")


@pytest.mark.slow
async def test_hls_js_of_another_site_starts_exactly(
    page: Page, live_portal: LivePortal, film: str
) -> None:
    record = await call("GET", f"{live_portal.base_url}/api/videos/{film}")
    master = f"{record['playbackUrl']}?start=9.5&end=14.5"
    # Runs before the page's scripts.
    await page.add_init_script(
        "document.addEventListener('readystatechange', () => "
        f"(document.querySelector('video').dataset.src = '{master}'), {{ once: true }});"
    )
    await open_player(page, f"/embed/{film}")
    # The clip begins 1.5 s after the bound of its first segment.
    await wait_for(page, "Math.abs(video.currentTime - 1.5) < 0.01")
    await wait_for(page, "Math.abs(video.duration - 8) < 0.15")
    await play_past(page, 3)
