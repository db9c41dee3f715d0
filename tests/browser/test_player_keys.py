"""The list of the player's keys, and the switch that takes the single characters away."""

import pytest
from player_page import open_player, read, wait_for
from playwright.async_api import Locator, Page, expect

ADDRESSES = ["/videos/{}", "/embed/{}"]


@pytest.fixture
def keys(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Keyboard shortcuts")


@pytest.mark.parametrize("path", ADDRESSES)
async def test_question_mark_shows_the_keys_and_escape_gives_the_focus_back(
    page: Page, film: str, keys: Locator, path: str
) -> None:
    await open_player(page, path.format(film))
    mute = page.locator("media-mute-button")
    await mute.focus()
    await page.keyboard.press("?")
    await expect(keys).to_be_visible()
    await expect(keys).to_contain_text("Play or pause")
    await page.keyboard.press("k")
    await page.keyboard.press("Escape")
    await expect(keys).to_be_hidden()
    await expect(mute).to_be_focused()
    assert await read(page, "video.paused && video.played.length === 0")


async def test_menu_leads_to_the_keys_by_mouse_and_by_keyboard(
    page: Page, film: str, keys: Locator
) -> None:
    await open_player(page, f"/videos/{film}")
    button = page.locator("media-settings-menu-button")
    await button.click()
    await page.locator("[data-opens-keys]").click()
    await expect(keys).to_be_visible()
    await keys.get_by_role("button", name="Close").click()
    await expect(keys).to_be_hidden()
    await expect(button).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("media-settings-menu-item:focus")).to_have_count(1)
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")
    await expect(keys).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("media-settings-menu")).to_be_hidden()
    await expect(button).to_be_focused()


@pytest.mark.parametrize("path", ADDRESSES)
async def test_switched_off_characters_do_nothing_and_other_keys_work_inside(
    page: Page, film: str, keys: Locator, path: str
) -> None:
    await open_player(page, path.format(film))
    await page.keyboard.press("?")
    letters = keys.get_by_role("switch")
    await expect(letters).to_be_checked()
    await letters.uncheck()
    await page.keyboard.press("Escape")
    await page.reload()
    await wait_for(page, "video.readyState >= 2")
    await _press_characters(page, " ")
    await page.locator("media-controller").focus()
    await _press_characters(page)
    await page.keyboard.press("ArrowRight")
    await wait_for(page, "video.currentTime === 5")
    await page.keyboard.press(" ")
    await wait_for(page, "!video.paused")
    await page.locator("media-settings-menu-button").click()
    await page.locator("[data-opens-keys]").click()
    await expect(letters).not_to_be_checked()
    await letters.check()
    await page.keyboard.press("Escape")
    await page.keyboard.press("m")
    await wait_for(page, "video.muted")


async def _press_characters(page: Page, *others: str) -> None:
    """None of them does anything."""
    state = "[video.currentTime, video.muted, video.paused, video.playbackRate]"
    before = await read(page, state)
    for key in ("k", "j", "l", "m", "c", "f", "5", ">", "?", "K", *others):
        await page.keyboard.press(key)
    assert await read(page, state) == before
    assert await page.evaluate("document.fullscreenElement") is None
    await expect(page.locator("dialog[open]")).to_have_count(0)
