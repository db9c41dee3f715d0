"""Two people edit the same video: both changes are kept, and who has to choose sees what."""

from pathlib import Path
from typing import Any

import pytest
from chromium import OpenPage, Publish, open_workshop
from playwright.async_api import Locator, Page, expect

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


async def test_who_conflicts_chooses_for_each_field(open_page: OpenPage, video: str) -> None:
    page = await open_page()
    forbidden: list[str] = []
    await page.expose_function("report", lambda directive: forbidden.append(directive))
    await page.add_init_script(
        "addEventListener('securitypolicyviolation', it => report(it.violatedDirective))"
    )
    form = await open_form(page, video)
    await change(page, video, title="A night at the sea", description="Theirs", categoryIds=[3])
    await form.get_by_label("Title").fill("A day by the sea")
    await form.get_by_label("Description").fill("Mine")
    await resize(form.get_by_label("Description"))
    await save(form)
    await expect(page.locator("#conflict")).to_be_focused()
    title = page.get_by_role("group", name="Whose title stays")
    await expect(title).to_contain_text("A day by the sea")
    await expect(title).to_contain_text("A night at the sea")
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
