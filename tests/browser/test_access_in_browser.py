"""Visibility of a video, set by its owner."""

from pathlib import Path

import pytest
from chromium import (
    axe_findings,
    hold_requests,
    open_workshop,
    record_requests,
)
from playwright.async_api import Locator, Page, expect
from running_portal import LivePortal
from upload_page import choose, fill_in, open_upload, open_video, publish_button

# Browsers log refused requests as errors.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of 4(04|10)")]

YOURS = "Visible to: you, admins and owners"


def state(page: Page) -> Locator:
    """Return the place where the workshop shows the present audience."""
    return page.locator("#access [data-state]")


async def test_private_video_is_made_public_and_private_again_by_keyboard(
    owned_portal: LivePortal, owner: Page, short_video: Path
) -> None:
    """Other people's pages are tested by `tests/watching/test_private_videos.py`."""
    await open_upload(owner)
    posts = record_requests(owner, "/api/videos?", method="POST")
    changes = record_requests(owner, "/access", method="P")
    await choose(owner, short_video)
    await fill_in(owner, title="Ours")
    visibility = owner.get_by_label("Visibility")
    await visibility.select_option(label="Private: you, admins and owners")
    await publish_button(owner).click()
    await open_video(owner, "Ours")
    # The video was never public.
    assert posts == [f"{owned_portal.base_url}/api/videos?visibility=private"]
    assert changes == []
    await expect(owner.locator(".summary__title")).to_have_text("Ours Private")
    form = await open_workshop(owner, owner.url, "Visibility")
    assert await axe_findings(owner) == []
    await expect(state(owner)).to_have_text(YOURS)
    box = form.get_by_label("Also visible to everyone with an account")
    await form.get_by_role("radio", name="Private").focus()
    await owner.keyboard.press("Tab")
    await expect(box).to_be_focused()
    await owner.keyboard.press("Shift+Tab")
    for _ in range(2):
        await owner.keyboard.press("ArrowUp")
    await expect(form.get_by_role("radio", name="Public")).to_be_checked()
    await expect(box).to_be_hidden()
    await form.get_by_label("Sites that can embed this video").focus()
    await owner.keyboard.type("https://blog.example.org")
    await owner.keyboard.press("Tab")
    may_go_on = await hold_requests(owner, "**/access/panel")
    await owner.keyboard.press("Enter")
    await expect(owner.get_by_role("button", name="Saving…")).to_be_focused()
    # The response would lose another choice.
    await form.get_by_text("Private", exact=True).click()
    await expect(form.get_by_role("radio", name="Public")).to_be_checked()
    may_go_on.set()
    # The page updates its other places, too, and focuses the saved form.
    await expect(state(owner)).to_have_text("Visible to: everyone")
    # Beside how far the video is.
    announced = owner.locator("[data-detail-live]")
    await expect(announced).to_contain_text("Saved. Visible to: everyone")
    await expect(form.get_by_text("Saved.")).to_be_focused()
    await expect(owner.locator(".summary__title")).to_have_text("Ours")
    await expect(form.get_by_label("Sites that can embed this video")).to_have_value(
        "https://blog.example.org"
    )
    await form.get_by_role("radio", name="Private").check()
    await owner.get_by_role("button", name="Save changes").click()
    await expect(state(owner)).to_have_text(YOURS)
