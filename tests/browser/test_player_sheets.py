"""The player's menus on a small screen: a sheet at the bottom, made for thumbs."""

from typing import Any

import pytest
from chromium import OpenPage, photograph
from player_page import open_player, read, wait_for
from playwright.async_api import Locator, Page, expect

THUMB_PX = 44
SCREENS = [("/videos/{}", 360, 740), ("/embed/{}", 640, 360), ("/embed/{}", 360, 203)]
small_screens = pytest.mark.parametrize(("path", "width", "height"), SCREENS)


@small_screens
async def test_every_row_is_for_thumbs_and_can_be_reached(
    open_page: OpenPage, film: str, path: str, width: int, height: int
) -> None:
    page = await _open_small(open_page, path.format(film), width, height)
    await _open_sheet(page)
    entries = page.locator("media-settings-menu-item:visible")
    for entry in await entries.all():
        await _expect_reachable(page, entry)
    await photograph(page, f"player-sheet-{width}x{height}")
    await entries.filter(has_text="Speed").tap(position={"x": 20, "y": 20})
    rows = page.locator("media-playback-rate-menu").get_by_role("menuitemradio")
    await expect(rows).to_have_count(8)
    for row in await rows.all():
        await _expect_reachable(page, row)
    await rows.last.tap()
    await wait_for(page, "video.playbackRate === 2")


async def test_automatic_quality_comes_first(page: Page, film: str) -> None:
    await open_player(page, f"/videos/{film}")
    rows = page.locator("media-rendition-menu").get_by_role("menuitemradio", include_hidden=True)
    await expect(rows).to_contain_text(["Auto", "480p", "360p", "240p"])
    await read(page, "void (video.videoRenditions.selectedIndex = 0)")
    await expect(rows).to_contain_text(["Auto", "480p", "360p", "240p"])
    await expect(rows.first).to_have_attribute("aria-checked", "false")


@small_screens
async def test_sheet_is_closed_by_its_button_by_the_page_around_it_and_by_escape(
    open_page: OpenPage, film: str, path: str, width: int, height: int
) -> None:
    page = await _open_small(open_page, path.format(film), width, height)
    menu = page.locator("media-settings-menu")
    close = page.get_by_role("button", name="Close")
    await _open_sheet(page)
    await _expect_reachable(page, close)
    await close.tap()
    await expect(menu).to_be_hidden()
    await expect(close).to_be_hidden()
    await _open_sheet(page)
    await page.touchscreen.tap(width / 2, 8)
    await expect(menu).to_be_hidden()
    await _open_sheet(page)
    await page.keyboard.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(page.locator("media-settings-menu-button")).to_be_focused()
    assert await read(page, "video.paused && video.played.length === 0")


async def _open_small(open_page: OpenPage, address: str, width: int, height: int) -> Page:
    options: dict[str, Any] = {"has_touch": True, "is_mobile": True, "reduced_motion": "reduce"}
    page = await open_page(width=width, height=height, **options)
    await open_player(page, address)
    return page


async def _open_sheet(page: Page) -> None:
    await page.locator("media-settings-menu-button").tap()
    menu = page.locator("media-settings-menu")
    await expect(menu).to_be_visible()
    await expect(menu).to_have_css("position", "fixed")


async def _expect_reachable(page: Page, row: Locator) -> None:
    """It is high enough, and what is touched in its middle once it is scrolled to."""
    await row.scroll_into_view_if_needed()
    box = await row.bounding_box()
    assert box is not None
    assert box["height"] >= THUMB_PX
    assert page.viewport_size is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= page.viewport_size["width"]
    assert 0 <= box["y"] <= box["y"] + box["height"] <= page.viewport_size["height"]
    await row.tap(trial=True)
