"""The table of videos: sorting, selecting rows, undoing a deletion; the menu of a card."""

import re
from collections.abc import AsyncIterator

import pytest
from chromium import OpenPage, axe_findings, suits_everyone
from library_rows import PIXEL, Rows
from playwright.async_api import Page, expect
from running_portal import LivePortal, fresh_portal

LONG = "A recording of the whole of last autumn's harvest festival, with the speeches, uncut"
FAILURE = (
    "UPDATE versions SET failure_code = 'damaged', has_poster = false,"
    " failure_message = 'The file is damaged. Export it again, then upload it.'"
    " WHERE status = 'failed'"
)
PLACES = """() => [...document.querySelectorAll("tbody tr, thead th, [name=tags]")].map((place) => {
    const { x, y, width, height } = place.getBoundingClientRect();
    return [x, y, width, height];
})"""
PRESSED_IN_THE_MIDDLE = """(element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return document.elementFromPoint(x + width / 2, y + height / 2).closest("a")?.href;
}"""


@pytest.fixture(scope="module")
async def shelf(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """Open portal with four videos in its database and without a worker."""
    async with fresh_portal(services) as portal:
        rows = Rows(portal.environ["DATABASE_URL"])
        for number, title in enumerate(("Anton", "Berta", LONG, "Dora"), start=1):
            await rows.add(number, title, status="failed" if number == 2 else "ready")
        await rows.run(FAILURE)
        yield portal


async def test_videos_are_selected_changed_deleted_and_restored(
    page: Page, shelf: LivePortal
) -> None:
    await page.goto(f"{shelf.base_url}/videos")
    await suits_everyone(page, "table")
    await page.set_viewport_size({"width": 1440, "height": 900})
    titles = page.locator("tbody .videos__title")
    await page.get_by_role("link", name="Title").click()
    await expect(titles).to_have_text([LONG, "Anton", "Berta", "Dora"])
    head = page.get_by_role("columnheader", name="Title")
    await expect(head).to_have_attribute("aria-sort", "ascending")

    bar = page.get_by_role("group", name="Change the selected videos")
    await expect(bar).to_be_hidden()
    await page.get_by_role("checkbox", name="Select Anton").check()
    await page.get_by_role("checkbox", name="Select Berta").check()
    await expect(bar.get_by_role("status")).to_have_text("2 selected")
    await bar.locator("summary", has_text="Tags").click()
    await bar.get_by_label("Tags").fill("harvest")
    assert await axe_findings(page) == []
    await bar.get_by_role("button", name="Add tags").click()
    toast = page.locator(".toast__message")
    await expect(toast).to_have_text("Tags added to 2 videos.")
    await expect(toast).to_be_focused()
    # The table is updated in place: the order stays, and the selection is cleared.
    await expect(bar).to_be_hidden()
    await expect(titles.first).to_have_text(LONG)

    every = page.get_by_role("checkbox", name="Select all on this page")
    await every.check()
    await expect(bar.get_by_role("status")).to_have_text("4 selected")
    await page.get_by_role("checkbox", name="Select Dora").uncheck()
    await expect(every).to_have_js_property("indeterminate", True)
    await bar.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete 3 videos?")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    assert await axe_findings(page) == []
    await page.keyboard.press("Escape")
    await expect(bar.get_by_role("button", name="Delete")).to_be_focused()
    await page.keyboard.press("Enter")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(toast).to_have_text("3 videos deleted.")
    await expect(toast).to_be_focused()
    await expect(titles).to_have_text(["Dora"])
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(toast).to_have_text("3 videos restored.")


@pytest.mark.slow
async def test_rows_change_while_videos_are_processed(page: Page, shelf: LivePortal) -> None:
    rows = Rows(shelf.environ["DATABASE_URL"])
    video = await rows.add(101, "In the making", status="processing")
    await page.route("**/poster.jpg*", lambda route: route.fulfill(body=PIXEL))
    await page.goto(f"{shelf.base_url}/videos")
    row = page.locator(f"#row-{video}")
    await expect(row.locator(".videos__state")).to_contain_text("In queue")
    await row.get_by_role("checkbox").check()
    menu = page.get_by_role("group", name="Change the selected videos")
    await menu.locator("summary", has_text="Tags").click()
    await row.get_by_role("checkbox").focus()
    await expect(menu.get_by_role("status")).to_have_text("1 selected")
    places = await page.evaluate(PLACES)

    await rows.begin(video, 41.7)
    await expect(row.locator(".videos__state")).to_contain_text("Processing · 41%")
    assert await page.evaluate(PLACES) == places
    await rows.finish(video, "ready")
    await expect(row.locator("img")).to_be_visible()
    await expect(row.locator(".videos__state")).to_have_text("Ready")
    await expect(page.locator("[data-library-live]")).to_have_text("“In the making” is ready.")
    await expect(page.locator("#library-poll")).not_to_have_attribute("hx-get", re.compile("."))
    assert await page.evaluate(PLACES) == places
    await expect(row.get_by_role("checkbox")).to_be_checked()
    await expect(row.get_by_role("checkbox")).to_be_focused()
    await expect(menu.get_by_role("status")).to_have_text("1 selected")
    await expect(menu.get_by_label("Tags")).to_be_visible()
    await rows.run("DELETE FROM publications WHERE id = %s", video)


async def test_menu_of_a_card(open_page: OpenPage, shelf: LivePortal) -> None:
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await page.goto(shelf.base_url)
    card = page.locator(".card", has_text="Anton")
    button = card.locator("summary")
    # The button is visible once it has the focus.
    await card.get_by_role("link", name="Anton").focus()
    await page.keyboard.press("Tab")
    await expect(button).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(card.get_by_role("link", name="Edit")).to_be_visible()
    assert await axe_findings(page) == []
    await page.set_viewport_size({"width": 360, "height": 900})
    box = await card.locator(".menu__items").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 360
    await page.keyboard.press("Escape")
    await expect(button).to_be_focused()
    await expect(card.get_by_role("link", name="Edit")).to_be_hidden()

    await button.click()
    await card.get_by_role("button", name="Copy link").click()
    await expect(page.locator("[data-library-live]")).to_have_text("Link copied")
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(rf"{shelf.base_url}/videos/[0-9a-f-]{{36}}", copied)

    await card.get_by_role("link", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete this video?")
    await expect(dialog).to_contain_text("Anton")
    await dialog.get_by_role("button", name="Delete video").click()
    toast = page.locator(".toast__message")
    await expect(toast).to_have_text("1 video deleted.")
    await expect(card).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(toast).to_have_text("1 video restored.")
    await expect(card).to_be_visible()
    assert page.url == f"{shelf.base_url}/"
    # All of the card still leads to the video.
    assert await card.locator(".card__media").evaluate(PRESSED_IN_THE_MIDDLE) == copied
