"""Two people edit the same video: both changes are kept, and who has to choose sees what."""

from pathlib import Path
from typing import Any

import pytest
from chromium import OpenPage, Publish
from playwright.async_api import Locator, Page, expect
from workshop_page import open_workshop

# Browsers report answers that refuse something. What the policy forbids is none of those.
pytestmark = pytest.mark.complaint("status of 409")


@pytest.fixture
async def video(publish: Publish, notes: Path) -> str:
    """The id of a video that only its words matter of."""
    return await publish(notes, "A day at the sea")


async def open_form(page: Page, video: str) -> Locator:
    """Open the workshop; answers the form for its words."""
    return await open_workshop(page, f"/videos/{video}", "Details")


async def change(page: Page, video: str, **changes: Any) -> None:
    """Someone else saves something."""
    address = f"/api/videos/{video}/metadata"
    body = {**await (await page.request.get(address)).json(), **changes}
    response = await page.request.put(address, data=body, headers={"If-Match": "*"})
    assert response.status == 200


async def save(form: Locator) -> None:
    await form.get_by_role("button", name="Save changes").click()


async def resize(area: Locator) -> None:
    """Draw a text area larger by its corner; browsers keep that in its style attribute."""
    await area.evaluate("area => area.scrollIntoView({ block: 'center' })")
    box = await area.bounding_box()
    assert box is not None
    corner = (box["x"] + box["width"] - 4, box["y"] + box["height"] - 4)
    await area.page.mouse.move(*corner)
    await area.page.mouse.down()
    await area.page.mouse.move(corner[0], corner[1] + 60)
    await area.page.mouse.up()
    assert await area.get_attribute("style") is not None


async def test_changes_of_other_fields_are_merged_and_that_is_said(page: Page, video: str) -> None:
    form = await open_form(page, video)
    await change(page, video, title="A night at the sea", tags="test, browser, night")
    await form.get_by_label("Description").fill("Mine")
    await form.get_by_label("Tags").fill("browser")
    await save(form)
    await expect(page.get_by_role("heading", level=1)).to_have_text("A night at the sea")
    words = "change of the title and the tags was kept."
    await expect(form.get_by_text("Saved.")).to_contain_text(words)
    await expect(page.locator("[data-detail-live]")).to_contain_text("Saved. Someone else")
    await expect(form.get_by_label("Tags")).to_have_value("browser, night")
    await page.reload()
    await expect(form.get_by_label("Description")).to_have_value("Mine")
    await expect(form.get_by_label("Title")).to_have_value("A night at the sea")


@pytest.mark.parametrize("has_scripts", [True, False])
async def test_who_conflicts_chooses_for_each_field_between_words(
    open_page: OpenPage, video: str, has_scripts: bool
) -> None:
    page = await open_page(java_script_enabled=has_scripts)
    forbidden: list[str] = []
    await page.expose_function("report", lambda directive: forbidden.append(directive))
    await page.add_init_script(
        "addEventListener('securitypolicyviolation', it => report(it.violatedDirective))"
    )
    form = await open_form(page, video)
    await change(page, video, title="A night at the sea", description="Theirs", categoryIds=[3])
    await form.get_by_label("Title").fill("A day by the sea")
    await form.get_by_label("Description").fill("Mine")
    if has_scripts:
        await resize(form.get_by_label("Description"))
    await save(form)
    await expect(page.locator("#conflict")).to_be_focused()
    title = page.get_by_role("group", name="Whose title stays")
    await expect(title.locator("del")).to_have_text(["at ", "day "])
    await expect(title.locator("ins")).to_have_text(["by ", "night "])
    assert (
        await title.locator("del").first.evaluate("it => getComputedStyle(it).textDecorationLine")
        == "line-through"
    )
    await expect(page.locator("#categories-conflict")).to_have_count(0)
    await expect(form.get_by_label("Sports")).to_be_checked()
    field = form.get_by_role("textbox", name="Title")
    await expect(field).to_have_value("A day by the sea")
    await title.get_by_role("radio", name="Theirs").check()
    await expect(field).to_be_hidden()
    await form.get_by_role("textbox", name="Description").fill("Mine, and Theirs")
    await save(form)
    await expect(page.get_by_role("heading", level=1)).to_have_text("A night at the sea")
    await expect(form.get_by_label("Description")).to_have_value("Mine, and Theirs")
    assert forbidden == []


async def test_choice_between_words_is_made_by_keyboard(page: Page, video: str) -> None:
    form = await open_form(page, video)
    await change(page, video, title="Theirs")
    await form.get_by_label("Title").fill("Mine")
    await save(form)
    await expect(page.locator("#conflict")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("radio", name="Mine")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("radio", name="Theirs")).to_be_checked()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Theirs")
    await expect(form.get_by_text("Saved.")).to_be_visible()
