"""Categories in a field to search in: by keyboard alone, and by a finger."""

from pathlib import Path

from chromium import OpenPage, axe_findings
from playwright.async_api import Page, expect
from upload_page import category_field, chosen_categories, start_upload


async def test_categories_are_searched_chosen_and_removed_by_keyboard(
    page: Page, short_video: Path
) -> None:
    await start_upload(page, short_video)
    field = category_field(page)
    options = page.get_by_role("listbox", name="Categories").get_by_role("option")
    await page.get_by_label("Title").focus()
    await page.keyboard.press("Tab")
    await expect(field).to_be_focused()
    # Typing filters the list, ignoring case.
    await page.keyboard.type("mUs")
    await expect(options).to_have_text(["Music"])
    await page.keyboard.press("Enter")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await expect(field).to_have_value("")
    # The arrow keys wrap around the ends of the list.
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("listbox")).to_be_hidden()
    await page.keyboard.press("ArrowUp")
    last = await options.last.get_attribute("id") or ""
    await expect(field).to_have_attribute("aria-activedescendant", last)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    first = options.first
    await expect(first).to_have_attribute("aria-selected", "true")
    await expect(chosen_categories(page)).to_have_text([await first.inner_text(), "Music"])
    assert await axe_findings(page) == []
    # Enter takes a choice back; Backspace in the empty field the last one.
    await page.keyboard.press("Enter")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await page.keyboard.press("Escape")
    await page.keyboard.press("Backspace")
    await expect(chosen_categories(page)).to_have_count(0)
    await page.keyboard.type("no such category")
    await expect(page.get_by_text("No matches.").first).to_be_visible()
    # Leaving the field clears the text, and nothing was published.
    await page.keyboard.press("Tab")
    await expect(field).to_have_value("")
    await expect(page.get_by_text("No matches.").first).to_be_hidden()
    await expect(page.get_by_role("link", name="Open", exact=True)).to_have_count(0)


async def test_categories_are_chosen_by_touch(open_page: OpenPage, short_video: Path) -> None:
    page = await open_page(width=360, height=640, has_touch=True, is_mobile=True)
    await start_upload(page, short_video)
    options = page.get_by_role("listbox", name="Categories").get_by_role("option")
    await category_field(page).tap()
    await options.nth(0).tap()
    await options.nth(3).tap()
    await expect(chosen_categories(page)).to_have_count(2)
    await page.get_by_role("heading", level=1).tap()
    await expect(page.get_by_role("listbox")).to_be_hidden()
    await page.locator(".multi").get_by_role("button", name="Remove").first.tap()
    await expect(chosen_categories(page)).to_have_count(1)
    await expect(page.get_by_role("listbox")).to_be_hidden()
