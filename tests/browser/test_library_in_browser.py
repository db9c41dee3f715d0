"""The library as people use it: typing, going back, without scripts, watching cards."""

import re
from collections.abc import AsyncIterator

import pytest
from chromium import READY_SEARCH, OpenPage, record_requests
from library_rows import PIXEL, Rows
from playwright.async_api import Locator, Page, Route, expect
from running_portal import LivePortal, fresh_portal, until

# In one go: the keys of a busy machine come too far apart to be one stretch of typing.
TYPE = """(field, text) => {
    for (const data of text) {
        field.value += data;
        field.dispatchEvent(new InputEvent("input", { bubbles: true, data }));
    }
}"""


@pytest.fixture(scope="module")
async def shelf(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """A portal with videos in its database and nobody at work."""
    async with fresh_portal(services) as portal:
        rows = Rows(portal.environ["DATABASE_URL"])
        for number in range(1, 41):
            kind = ("Holiday at the sea", "Café in the city", "東京の朝")[number % 3]
            await rows.add(number, f"{kind} {number}", tags="deep sea" if number % 5 == 0 else "")
        yield portal


@pytest.fixture
async def rows(shelf: LivePortal) -> AsyncIterator[Rows]:
    """The database behind the shelf; what a test adds is removed again."""
    rows = Rows(shelf.environ["DATABASE_URL"])
    yield rows
    await rows.remove_added()


async def test_published_videos_are_shown(page: Page, ready_video: str, failed_video: str) -> None:
    await page.goto("/?status=failed")
    await expect(
        page.locator(f"#card-{failed_video}").get_by_text("Failed", exact=True)
    ).to_be_visible()
    await page.goto(READY_SEARCH)
    card = page.locator(f"#card-{ready_video}")
    await expect(card.get_by_role("link", name="A ready video")).to_be_visible()
    await expect(card.locator(".card__duration")).to_contain_text("0:02")
    poster = card.locator("img")
    await poster.scroll_into_view_if_needed()
    await page.wait_for_function(
        "image => image.naturalWidth > 0", arg=await poster.element_handle()
    )
    await card.get_by_role("link").click()
    await expect(page).to_have_url(f"/videos/{ready_video}")


async def test_typing_updates_results_and_address_in_one_history_entry(
    page: Page, shelf: LivePortal
) -> None:
    asked = record_requests(page, "q=")
    await page.goto(shelf.base_url)
    await expect(page.locator("#results")).to_contain_text("40 videos")
    entries = await page.evaluate("history.length")
    field = page.get_by_role("searchbox")
    await field.focus()
    await field.evaluate(TYPE, "holi")
    await expect(page.locator("#results")).to_contain_text("for “holi”")
    await expect(page).to_have_url(f"{shelf.base_url}/?q=holi")
    assert asked == [f"{shelf.base_url}/?q=holi"]
    await expect(page.locator(".card").first).to_contain_text("Holiday")
    await field.evaluate(TYPE, "day 3")
    await expect(page).to_have_url(f"{shelf.base_url}/?q=holiday+3")
    await expect(field).to_be_focused()
    await expect(field).to_have_value("holiday 3")
    await expect(page.locator("[data-library-live]")).to_have_text(re.compile("for “holiday 3”"))
    await expect(page.locator("#library-sort option:checked")).to_have_text("Best match")
    assert await page.title() == "holiday 3 · Library · Portal"
    assert await page.evaluate("history.length") == entries + 1


@pytest.mark.slow
async def test_back_and_forward_bring_form_and_results_back(page: Page, shelf: LivePortal) -> None:
    await page.goto(f"{shelf.base_url}/?tag=deep+sea")
    await page.get_by_role("searchbox").fill("cafe")
    await expect(page).to_have_url(f"{shelf.base_url}/?q=cafe&tag=deep+sea")
    await page.get_by_label("Order").select_option("oldest")
    await expect(page).to_have_url(f"{shelf.base_url}/?q=cafe&tag=deep+sea&sort=oldest")
    results = page.locator("#results")
    await expect(results.locator(".card").first).to_contain_text("Café in the city 10")

    await page.go_back()
    await expect(results.locator(".card").first).to_contain_text("Café in the city 40")
    await expect(page.locator("#library-sort option:checked")).to_have_text("Best match")
    await expect(page.get_by_role("searchbox")).to_have_value("cafe")
    await page.go_back()
    await expect(results).not_to_contain_text("for “cafe”")
    await expect(page.get_by_role("searchbox")).to_have_value("")
    await expect(page.locator("#library-sort option:checked")).to_have_text("Newest first")
    await expect(results.locator(".tag-filter")).to_contain_text("deep sea")
    await page.go_forward()
    await expect(results).to_contain_text("for “cafe”")
    await expect(page).to_have_url(f"{shelf.base_url}/?q=cafe&tag=deep+sea")


@pytest.mark.slow
@pytest.mark.complaint("Failed to load resource|htmx:error")
async def test_search_without_an_answer_says_so_and_recovers(page: Page, shelf: LivePortal) -> None:
    await page.goto(shelf.base_url)
    await page.route("**/?q=*", lambda route: route.abort())
    await page.get_by_role("searchbox").fill("holi")
    await expect(page.get_by_role("alert")).to_contain_text("got no answer")
    await expect(page.locator("#results")).to_contain_text("40 videos")
    await page.unroute("**/?q=*")
    await page.get_by_role("searchbox").press("Enter")
    await expect(page.locator("#results")).to_contain_text("for “holi”")
    await expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.complaint("status of 503")
async def test_one_poll_updates_all_cards_and_stops(
    page: Page, shelf: LivePortal, rows: Rows
) -> None:
    await page.route("**/poster.jpg", lambda route: route.fulfill(body=PIXEL))
    first = await rows.add(101, "First in the making", status="processing")
    second = await rows.add(102, "Second in the making", status="processing")
    polls = record_requests(page, "/library/progress")
    await page.goto(f"{shelf.base_url}/?q=making")
    card, other = page.locator(f"#card-{first}"), page.locator(f"#card-{second}")
    await expect(card).to_contain_text("Waiting for its turn")
    link = card.get_by_role("link")
    await link.focus()
    await link.hover()
    await rows.begin(first, 41.7)
    await expect(card).to_contain_text("Converting · 41%")
    assert all(first in url and second in url for url in polls)

    await _fail_once(page)
    await rows.finish(first, "ready")
    await expect(card.locator("img")).to_be_visible()
    await expect(card.locator(".card__duration")).to_contain_text("1:15")
    await expect(link).to_be_focused()
    assert await card.evaluate("it => it.matches(':hover')")
    await expect(page.locator("[data-library-live]")).to_have_text(
        "“First in the making” is ready."
    )
    async with page.expect_request("**/library/progress**") as next_poll:
        pass
    assert first not in (await next_poll.value).url

    await rows.finish(second, "failed")
    await expect(other.get_by_text("Failed", exact=True)).to_be_visible()
    await expect(page.locator("#library-poll")).not_to_have_attribute("hx-get", re.compile("."))
    count = len(polls)
    await page.wait_for_timeout(2500)  # longer than a poll takes: there must be none
    assert len(polls) == count


async def _fail_once(page: Page) -> None:
    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, content_type="text/html", body="<p>Broken</p>")

    await page.route("**/library/progress**", refuse)
    async with page.expect_response("**/library/progress**"):
        pass
    await page.unroute("**/library/progress**")


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
    # Whoever is faster than the script that listens sees nothing.
    await page.wait_for_load_state("networkidle")
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
