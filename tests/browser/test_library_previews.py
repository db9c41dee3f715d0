"""A card shows its video's storyboard to mouse and keyboard, and to nobody who wants it still."""

import pytest
from chromium import READY_SEARCH, OpenPage, record_requests
from playwright.async_api import Locator, Page, expect
from running_portal import until

LAYOUT_SHIFT = """
() => new Promise((resolve) => {
    let total = 0;
    const observer = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) total += entry.value;
    });
    observer.observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(total)));
})
"""


@pytest.mark.slow
async def test_hover_shows_the_storyboard_where_the_pointer_is(
    open_page: OpenPage, ready_video: str
) -> None:
    # Less motion, so that a transition is over when its picture is taken.
    page = await open_page(reduced_motion="reduce")
    boards = record_requests(page, "storyboard")
    await page.goto(READY_SEARCH)
    card = page.locator(f"#card-{ready_video}")
    await card.scroll_into_view_if_needed()
    media = card.locator(".card__media")
    before = await media.bounding_box()
    assert before is not None
    assert boards == []
    x, y = before["x"], before["y"] + 40
    await page.mouse.move(x + before["width"] * 0.1, y)
    await expect(card.locator("canvas")).to_be_visible()
    early = await _picture(card)
    await page.mouse.move(x + before["width"] * 0.9, y)
    await until(lambda: _differs(card, early), timeout_s=5)
    await page.mouse.move(x + before["width"] * 0.1, y)
    await until(lambda: _equals(card, early), timeout_s=5)
    assert await media.bounding_box() == before
    await page.mouse.move(2, 2)
    await expect(card.locator("canvas")).to_have_count(0)
    await page.mouse.move(x + before["width"] * 0.5, y)
    await expect(card.locator("canvas")).to_be_visible()
    assert len([url for url in boards if url.endswith(".vtt")]) == 1
    assert await page.evaluate(LAYOUT_SHIFT) < 0.01


@pytest.mark.slow
async def test_focus_plays_the_storyboard_unless_motion_is_unwanted(
    open_page: OpenPage, ready_video: str
) -> None:
    page = await open_page()
    await page.goto(READY_SEARCH)
    card = page.locator(f"#card-{ready_video}")
    await _tab_to(page, f"/videos/{ready_video}")
    await expect(card.locator("canvas")).to_be_visible()
    shown = await _picture(card)
    await until(lambda: _differs(card, shown), timeout_s=5)
    await page.keyboard.press("Shift+Tab")
    await expect(card.locator("canvas")).to_have_count(0)

    page = await open_page(reduced_motion="reduce")
    asked = record_requests(page, "storyboard")
    await page.goto(READY_SEARCH)
    await _tab_to(page, f"/videos/{ready_video}")
    card = page.locator(f"#card-{ready_video}")
    await page.wait_for_timeout(300)  # more than a preview waits for
    await expect(card.locator("canvas")).to_have_count(0)
    assert asked == []
    # Moving the mouse is motion that someone wants.
    await card.hover()
    await expect(card.locator("canvas")).to_be_visible()


async def _tab_to(page: Page, address: str) -> None:
    await page.get_by_label("Order").focus()
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.getAttribute('href')") == address:
            return
    pytest.fail(f"the keyboard does not reach {address}")


async def _picture(card: Locator) -> bytes:
    """What is seen of the storyboard alone; pixels of another origin cannot be read."""
    await card.locator(".card__seek").evaluate("it => { it.style.visibility = 'hidden'; }")
    return await card.locator("canvas").screenshot()


async def _differs(card: Locator, picture: bytes) -> bool:
    return await _picture(card) != picture


async def _equals(card: Locator, picture: bytes) -> bool:
    return await _picture(card) == picture
