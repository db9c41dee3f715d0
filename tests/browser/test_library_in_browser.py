"""The library: searching, going back, previews of videos."""

import re
from collections.abc import AsyncIterator

import pytest
from chromium import READY_SEARCH, OpenPage, hold_requests, record_requests
from library_rows import Rows
from playwright.async_api import Locator, Page, expect
from running_portal import LivePortal, fresh_portal, until

# Types in one task, because on a busy machine keys are too far apart for one history entry.
TYPE = """(field, text) => {
    for (const data of text) {
        field.value += data;
        field.dispatchEvent(new InputEvent("input", { bubbles: true, data }));
    }
}"""


@pytest.fixture(scope="module")
async def shelf(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """Portal with videos in its database and without a worker."""
    async with fresh_portal(services) as portal:
        rows = Rows(portal.environ["DATABASE_URL"])
        for number in range(1, 41):
            kind = ("Holiday at the sea", "Café in the city")[number % 2 == 0]
            await rows.add(number, f"{kind} {number}", tags="deep sea" if number % 5 == 0 else "")
        yield portal


async def test_typing_is_a_single_history_entry_and_going_back_undoes_it(
    page: Page, shelf: LivePortal
) -> None:
    searches = record_requests(page, "q=")
    await page.goto(f"{shelf.base_url}/?tag=deep+sea")
    results = page.locator("#results")
    await expect(results).to_contain_text("8 videos")
    entries = await page.evaluate("history.length")
    field = page.get_by_role("searchbox")
    await field.focus()
    await field.evaluate(TYPE, "caf")
    await expect(results).to_contain_text("for “caf”")
    assert searches == [f"{shelf.base_url}/?q=caf&tag=deep+sea"]
    await field.evaluate(TYPE, "e in")
    await expect(page).to_have_url(f"{shelf.base_url}/?q=cafe+in&tag=deep+sea")
    await expect(field).to_be_focused()
    await expect(page.locator("[data-library-live]")).to_have_text(re.compile("for “cafe in”"))
    order = page.locator("#library-sort option:checked")
    await expect(order).to_have_text("Best match")
    assert await page.title() == "cafe in · Library · Portal"
    assert await page.evaluate("history.length") == entries + 1
    await page.get_by_label("Sort by").select_option("oldest")
    await expect(page).to_have_url(f"{shelf.base_url}/?q=cafe+in&tag=deep+sea&sort=oldest")
    await expect(results.locator(".card").first).to_contain_text("Café in the city 10")

    await page.go_back()
    await expect(results.locator(".card").first).to_contain_text("Café in the city 40")
    await page.wait_for_load_state()
    await expect(order).to_have_text("Best match")
    await expect(field).to_have_value("cafe in")
    await page.go_forward()
    await expect(results.locator(".card").first).to_contain_text("Café in the city 10")
    await page.wait_for_load_state()
    # Twice, and the second time before the page's script runs.
    may_go_on = await hold_requests(page, "**/*.js")
    await page.go_back(wait_until="commit")
    await expect(results.locator(".card").first).to_contain_text("Café in the city 40")
    await page.go_back(wait_until="commit")
    await expect(page).to_have_url(f"{shelf.base_url}/?tag=deep+sea")
    may_go_on.set()
    await expect(results).not_to_contain_text("for “cafe in”")
    await expect(field).to_have_value("")
    await expect(order).to_have_text("Newest first")
    await expect(results.locator(".tag-filter")).to_contain_text("deep sea")
    await page.wait_for_load_state()
    await page.go_forward()
    await expect(results).to_contain_text("for “cafe in”")
    await expect(field).to_have_value("cafe in")


async def test_filters_are_behind_a_button_on_a_phone(page: Page, shelf: LivePortal) -> None:
    filters = page.locator("summary", has_text="Filters")
    category = page.get_by_label("Category")
    await page.goto(shelf.base_url)
    await expect(category).to_be_visible()
    await expect(filters).to_be_hidden()
    await page.set_viewport_size({"width": 360, "height": 800})
    await expect(category).to_be_hidden()
    await filters.click()
    await category.select_option(index=1)
    await page.wait_for_url("**/?category=*")
    await page.reload()
    await expect(category).to_be_visible()


@pytest.mark.slow
@pytest.mark.complaint("Failed to load resource|htmx:error")
async def test_search_without_a_response_shows_an_error_and_recovers(
    page: Page, shelf: LivePortal
) -> None:
    await page.goto(shelf.base_url)
    await page.route("**/?q=*", lambda route: route.abort())
    await page.get_by_role("searchbox").fill("holi")
    await expect(page.get_by_role("alert")).to_contain_text("responding. Check your connection")
    await expect(page.locator(".card")).not_to_have_count(0)
    await page.unroute("**/?q=*")
    await page.get_by_role("searchbox").press("Enter")
    await expect(page.locator("#results")).to_contain_text("for “holi”")
    await expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.slow
async def test_storyboard_follows_the_pointer_and_plays_on_keyboard_focus(
    open_page: OpenPage, ready_video: str
) -> None:
    # Without transitions screenshots are comparable.
    page = await open_page(reduced_motion="reduce")
    await page.clock.install()
    boards = record_requests(page, "storyboard")
    await page.goto(READY_SEARCH)
    card = page.locator(f"#card-{ready_video}")
    await card.scroll_into_view_if_needed()
    poster = await card.locator("img").element_handle()
    await page.wait_for_function("image => image.naturalWidth > 0", arg=poster)
    media = card.locator(".card__media")
    before = await media.bounding_box()
    assert before is not None
    assert boards == []
    x = before["x"]
    y = before["y"] + 40
    # The script listens a moment after the page has loaded.
    await page.wait_for_load_state("networkidle")
    await page.mouse.move(x + before["width"] * 0.1, y)
    await expect(card.locator("canvas")).to_be_visible()
    early = await _picture(card)
    await page.mouse.move(x + before["width"] * 0.9, y)
    await until(lambda: _differs(card, early), timeout_s=5)
    assert await media.bounding_box() == before
    await page.mouse.move(2, 2)
    await expect(card.locator("canvas")).to_have_count(0)
    # Previews do not start by themselves with reduced motion.
    await _tab_to(page, f"/videos/{ready_video}")
    # A preview would start within this time.
    await page.clock.run_for(1_000)
    await expect(card.locator("canvas")).to_have_count(0)

    await page.emulate_media(reduced_motion="no-preference")
    await _tab_to(page, f"/videos/{ready_video}")
    await expect(card.locator("canvas")).to_be_visible()
    first_frame = await _picture(card)
    await until(lambda: _differs(card, first_frame), timeout_s=5)
    await page.keyboard.press("Shift+Tab")
    await expect(card.locator("canvas")).to_have_count(0)
    assert len([url for url in boards if url.endswith(".vtt")]) == 1


async def _tab_to(page: Page, address: str) -> None:
    # The script must be listening before the card has the focus.
    await page.wait_for_load_state("networkidle")
    await page.get_by_label("Sort by").focus()
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.getAttribute('href')") == address:
            return
    pytest.fail(f"the keyboard does not reach {address}")


async def _picture(card: Locator) -> bytes:
    """Return a screenshot of the storyboard alone; its pixels can't be read across origins."""
    await card.locator(".card__seek").evaluate("line => { line.style.visibility = 'hidden'; }")
    return await card.locator("canvas").screenshot()


async def _differs(card: Locator, picture: bytes) -> bool:
    return await _picture(card) != picture
