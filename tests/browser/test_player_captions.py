"""Captions beside the controls: not dimmed by their scrim, and never under the seek bar."""

import pytest
from captions import (
    await_captions_above_controls,
    caption_rows,
    hide_controls,
    show_captions,
    show_controls,
)
from chromium import OpenPage, photograph, play_past
from player_page import open_player, wait_for
from playwright.async_api import FloatRect, Locator, Page, expect

CAPTIONS = "[data-player-captions]"
# As hls.js makes them of CEA-608: two rows at the top on the left, one below on the right.
PLACED = """() => {
    const track = document.querySelector("video").addTextTrack("captions");
    track.mode = "showing";
    const add = (text, placed) => track.addCue(Object.assign(new VTTCue(0, 20, text), placed));
    add("first", { line: 1, align: "left", position: 10 });
    add("second", { line: 2, align: "left", position: 10 });
    add("<i>last</i>", { line: 15, align: "left", position: 60 });
}"""


@pytest.mark.parametrize(
    ("path", "width", "height", "is_fullscreen"),
    [
        ("/videos/{}", 1440, 900, False),
        ("/videos/{}", 360, 740, False),
        pytest.param("/videos/{}", 1280, 720, True, marks=pytest.mark.slow),
        pytest.param("/embed/{}", 640, 360, False, marks=pytest.mark.slow),
    ],
)
async def test_captions_make_way_for_the_controls_undimmed(
    open_page: OpenPage, film: str, path: str, width: int, height: int, is_fullscreen: bool
) -> None:
    page = await open_page(width=width, height=height)
    await show_captions(page, path.format(film))
    if is_fullscreen:
        await page.keyboard.press("f")
        await wait_for(page, "document.fullscreenElement")
    await hide_controls(page)
    alone = await caption_rows(page)
    await show_controls(page)
    beside = await await_captions_above_controls(page)
    assert min(beside) < min(alone)


@pytest.mark.parametrize("width", [1440, 360])
async def test_captions_make_way_for_preview_and_menu(
    open_page: OpenPage, film: str, width: int
) -> None:
    page = await open_page(width=width, reduced_motion="reduce")
    await show_captions(page, f"/videos/{film}")
    text = page.locator(CAPTIONS).get_by_text("Good morning.")
    await page.locator("media-time-range").hover()
    preview = page.locator("media-time-range [part~='preview-box']")
    await expect(preview).to_be_visible()
    await photograph(page, f"player-preview-{width}")
    if width > 500:
        await expect(text).to_be_visible()
        captions = await _place(text)
        assert captions["y"] + captions["height"] <= (await _place(preview))["y"]
    else:
        await expect(text).to_be_hidden()
    await page.locator("media-settings-menu-button").click()
    await expect(text).to_be_hidden()
    await photograph(page, f"player-menu-{width}")
    await page.keyboard.press("Escape")
    await expect(text).to_be_visible()


async def test_captions_stand_where_they_say(page: Page, film: str) -> None:
    await open_player(page, f"/videos/{film}")
    await page.evaluate(PLACED)
    await play_past(page, 0.5)
    captions = page.locator(CAPTIONS)
    first, second, last = [
        await _place(captions.locator("p", has_text=text)) for text in ("first", "second", "last")
    ]
    assert first["x"] == second["x"] < last["x"]
    assert first["y"] < first["y"] + first["height"] <= second["y"] + 1
    assert last["y"] > second["y"] + second["height"] * 5


async def test_fullscreen_of_a_phone_draws_the_captions_itself(page: Page, film: str) -> None:
    await show_captions(page, f"/videos/{film}")
    await expect(page.locator(CAPTIONS)).to_have_text("Good morning.")
    await page.locator("video").evaluate(
        """(video) => {
            Object.defineProperty(video, "webkitDisplayingFullscreen", { value: true });
            video.dispatchEvent(new Event("webkitbeginfullscreen"));
        }"""
    )
    await expect(page.locator(CAPTIONS)).to_be_hidden()
    await hide_controls(page)
    assert await caption_rows(page)


async def _place(text: Locator) -> FloatRect:
    box = await text.bounding_box()
    assert box is not None
    return box
