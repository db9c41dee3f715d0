"""Captions of the player as they are seen: the rows of its picture that they take."""

import asyncio
import io

import av
from chromium import play_past
from player_page import choose, open_player, wait_for
from playwright.async_api import Page, expect

# So that what is white in a picture of the player is its captions.
BARE_CONTROLS = """() => {
    const { style } = document.querySelector("media-controller");
    for (const name of ["primary-color", "range-thumb-background", "range-bar-color"])
        style.setProperty(`--media-${name}`, "transparent");
}"""
WHITE = 200
EDGE = 3
TIMEOUT_S = 120
CONTROLLER = "document.querySelector('media-controller')"


async def show_captions(page: Page, address: str) -> None:
    await open_player(page, address)
    await page.evaluate(BARE_CONTROLS)
    await choose(page, "Captions", "English")
    await page.keyboard.press("Escape")
    await expect(page.locator("media-settings-menu")).to_be_hidden()
    # The menu has scrolled the page below its header.
    await page.evaluate("scrollTo(0, 0)")
    await play_past(page, 1)
    await wait_for(page, "[...video.textTracks].some((track) => track.activeCues?.length)")


async def hide_controls(page: Page) -> None:
    await page.evaluate("document.activeElement.blur()")
    box = await page.locator("video").bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.5)
    await wait_for(page, f"{CONTROLLER}.hasAttribute('userinactive')")
    await expect(page.locator(".player__bar")).to_have_css("opacity", "0")


async def show_controls(page: Page) -> None:
    await page.locator("video").evaluate("(video) => video.pause()")
    await expect(page.locator(".player__bar")).to_have_css("opacity", "1")


async def await_captions_above_controls(page: Page) -> list[int]:
    """Their rows, once they have arrived there."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            top = await top_of_controls(page)
            rows = await caption_rows(page)
            if rows and max(rows) < top:
                return rows


async def top_of_controls(page: Page) -> float:
    player = await page.locator("media-controller").bounding_box()
    bar = await page.locator("media-time-range").bounding_box()
    assert player is not None
    assert bar is not None
    return bar["y"] - player["y"]


async def caption_rows(page: Page) -> list[int]:
    """The rows of the player's picture in which something is white, but for its edges."""
    # To hide a caret, Playwright puts a style into the page, which the policy forbids in Firefox.
    png = await page.locator("media-controller").screenshot(caret="initial")
    with av.open(io.BytesIO(png)) as container:
        picture = next(container.decode(video=0)).reformat(format="rgb24")
    plane = picture.planes[0]
    pixels, stride = bytes(plane), plane.line_size
    middle = slice(picture.width // 4 * 3, picture.width // 4 * 9)
    rows = [pixels[row * stride :][middle] for row in range(picture.height)]
    return [
        number
        for number, row in enumerate(rows)
        if EDGE < number < picture.height - EDGE
        and any(min(row[at : at + 3]) > WHITE for at in range(0, len(row), 3))
    ]
