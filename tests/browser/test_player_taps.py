"""Tapping on the picture: twice at a side goes back or on, once shows or hides the controls."""

import pytest
from chromium import OpenPage, play_past
from player_page import open_player, read, wait_for
from playwright.async_api import Page, expect

# All at once, as far as the page can tell: a busy machine's taps would be too far apart.
TAP = """([times, share]) => {
    const video = document.querySelector("video");
    const { left, top, width, height } = video.getBoundingClientRect();
    const at = { clientX: left + width * share, clientY: top + height / 3 };
    const finger = { pointerType: "touch", isPrimary: true, bubbles: true, composed: true, ...at };
    for (let tap = 0; tap < times; tap += 1) {
        video.dispatchEvent(new PointerEvent("pointerdown", finger));
        video.dispatchEvent(new PointerEvent("pointerup", finger));
    }
}"""


@pytest.fixture
async def touched(open_page: OpenPage, film: str) -> Page:
    """The film on a phone, at 12 s of its 24."""
    page = await open_page(width=360, height=740, has_touch=True, is_mobile=True)
    await open_player(page, f"/videos/{film}?t=12")
    await wait_for(page, "video.currentTime === 12")
    return page


@pytest.mark.parametrize(
    ("times", "share", "position_s", "words"),
    [(2, 0.1, 2, "−10 s"), (2, 0.9, 22, "+10 s"), (3, 0.9, 24, "+20 s"), (4, 0.1, 0, "−30 s")],  # noqa: RUF001
)
async def test_taps_at_a_side_add_up(
    touched: Page, times: int, share: float, position_s: float, words: str
) -> None:
    sign = touched.locator("[data-player-sign]")
    await touched.evaluate(TAP, [times, share])
    await expect(sign).to_have_text(words)
    await wait_for(touched, f"Math.abs(video.currentTime - {position_s}) < 0.2")
    await expect(sign).to_be_hidden()


async def test_single_taps_and_taps_in_the_middle_move_nothing(touched: Page) -> None:
    await touched.evaluate(TAP, [3, 0.5])
    await touched.evaluate(TAP, [1, 0.1])
    await touched.evaluate(TAP, [1, 0.9])
    assert await read(touched, "video.currentTime") == 12
    await expect(touched.locator("[data-player-sign]")).to_be_hidden()


async def test_one_tap_shows_the_controls_and_two_leave_them_as_they_are(touched: Page) -> None:
    controller = touched.locator("media-controller")
    await play_past(touched, 12.2)
    await expect(controller).to_have_attribute("userinactive", "")
    await touched.evaluate(TAP, [2, 0.1])
    await expect(controller).to_have_attribute("userinactive", "")
    await touched.evaluate(TAP, [3, 0.1])
    await expect(controller).to_have_attribute("userinactive", "")
    await touched.evaluate(TAP, [1, 0.5])
    await expect(controller).not_to_have_attribute("userinactive", "")


async def test_page_does_not_zoom_and_mice_are_no_fingers(touched: Page) -> None:
    await expect(touched.locator("media-controller")).to_have_css("touch-action", "manipulation")
    box = await touched.locator("video").bounding_box()
    assert box is not None
    await touched.mouse.dblclick(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 3)
    await expect(touched.locator("[data-player-sign]")).to_be_empty()
    assert await read(touched, "video.currentTime") < 20
