"""Two people edit the same video: changes are merged, and conflicts are shown to the second."""

from pathlib import Path

import pytest
from chromium import Publish, open_workshop
from playwright.async_api import Page, expect


# Browsers log refused requests as errors.
@pytest.mark.complaint("status of 409")
async def test_conflicts_are_decided_for_each_field(
    page: Page, publish: Publish, notes: Path
) -> None:
    video = await publish(notes, "A day at the sea")
    form = await open_workshop(page, f"/videos/{video}", "Details")
    other_edit = {"title": "A night at the sea", "description": "Theirs", "categoryIds": [3]}
    response = await page.request.patch(f"/api/videos/{video}", data=other_edit)
    assert response.status == 200

    await form.get_by_label("Title").fill("A day by the sea")
    await form.get_by_label("Description").fill("Mine")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.locator("#conflict")).to_be_focused()
    title = page.get_by_role("group", name="Version of the title to keep")
    await expect(title).to_contain_text("A day by the sea")
    await expect(title).to_contain_text("A night at the sea")
    # Only the other person changed the categories.
    await expect(page.locator("#categories-conflict")).to_have_count(0)
    await expect(form.get_by_label("Sports")).to_be_checked()
    field = form.get_by_role("textbox", name="Title")
    await expect(field).to_have_value("A day by the sea")
    await title.get_by_role("radio", name="Their version").check()
    await expect(field).to_be_hidden()
    await form.get_by_role("textbox", name="Description").fill("Mine, and Theirs")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("A night at the sea")
    await expect(form.get_by_label("Description")).to_have_value("Mine, and Theirs")
