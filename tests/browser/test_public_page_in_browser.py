"""Password of a series in a browser, by keyboard."""

import pytest
from chromium import OpenPage, suits_everyone
from library_rows import Rows
from playwright.async_api import Page, expect
from running_portal import LivePortal

# Browsers log refused requests as errors.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of (403|404)")]
WORD = "open sesame"
ADD = "INSERT INTO series_videos (series_id, video_id, position) SELECT id, %s, 1 FROM series"


async def test_password_of_a_series_opens_its_locked_video(
    owned_portal: LivePortal, owner: Page, open_page: OpenPage
) -> None:
    base_url = owned_portal.base_url
    rows = Rows(owned_portal.environ["DATABASE_URL"])
    video_id = await rows.add(4102, "First lesson")
    lock = "UPDATE publications SET visibility = 'private', unlock_id = id WHERE id = %s"
    await rows.run(lock, video_id)
    await owner.goto(f"{base_url}/series")
    await owner.get_by_text("New series").click()
    await owner.get_by_label("Title").fill("Course of Latin")
    await owner.keyboard.press("Enter")
    await owner.get_by_label("Private").check()
    await owner.get_by_role("textbox", name="Password").fill(WORD)
    await owner.keyboard.press("Enter")
    await expect(owner.get_by_text("Saved.")).to_be_visible()
    await rows.run(ADD, video_id)
    viewer = await open_page(base_url=base_url)
    await viewer.goto(owner.url.partition("/edit")[0])
    await suits_everyone(viewer, "series-password")
    await expect(viewer.get_by_label("Password", exact=True)).to_be_focused()
    await viewer.keyboard.type(WORD)
    await viewer.keyboard.press("Enter")
    await viewer.get_by_role("link", name="First lesson").click()
    await expect(viewer.get_by_role("heading", name="First lesson", level=1)).to_be_visible()
