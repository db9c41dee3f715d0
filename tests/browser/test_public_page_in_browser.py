"""Public page of a private video, and the password of a series, in a browser and by keyboard."""

import pytest
from chromium import OpenPage, open_workshop, suits_everyone
from library_rows import Rows
from playwright.async_api import Page, expect
from running_portal import LivePortal

# Browsers log refused requests as errors.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of (403|404)")]
WORD = "open sesame"
ADD = """
INSERT INTO series_videos (series_id, video_id, position, added_by_editor)
SELECT id, %s, 1, true FROM series
"""


async def test_owner_opens_the_page_and_visitors_learn_whom_to_ask(
    owned_portal: LivePortal, owner: Page, open_page: OpenPage
) -> None:
    rows = Rows(owned_portal.environ["DATABASE_URL"])
    video_id = await rows.add(4101, "Rehearsal of the choir")
    await rows.run("UPDATE publications SET visibility = 'private' WHERE id = %s", video_id)
    page_url = f"{owned_portal.base_url}/videos/{video_id}"
    form = await open_workshop(owner, page_url, "Visibility")
    box = form.get_by_label("Everyone can see its page")
    await box.focus()
    await owner.keyboard.press("Space")
    await owner.keyboard.press("Enter")
    await expect(owner.locator("#access [data-state]")).to_contain_text("the page: everyone")
    await suits_everyone(owner, "public-page-form", part="#access")
    visitor = await open_page(base_url=owned_portal.base_url)
    await visitor.goto(f"{owned_portal.base_url}/?q=rehearsal")
    await visitor.get_by_role("link", name="Rehearsal of the choir").click()
    await expect(visitor.get_by_role("heading", name="Only people with access")).to_be_visible()
    await suits_everyone(visitor, "public-page")
    sign_in = visitor.get_by_role("main").get_by_role("link", name="Sign in")
    await sign_in.focus()
    await visitor.keyboard.press("Enter")
    await expect(visitor.get_by_label("Email")).to_be_visible()
    assert visitor.url.endswith(f"/sign-in?next=/videos/{video_id}")


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
