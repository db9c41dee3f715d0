"""A hand-in link: made by keyboard, used on a phone without an account, across a reload."""

import re
from pathlib import Path

import pytest
from chromium import SMALL_TARGETS, OpenPage, record_requests, suits_everyone
from playwright.async_api import Page, expect
from running_portal import LivePortal
from upload_page import padded

# Browsers log aborted uploads and refused requests as errors.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("Failed to load resource|status of 404")]

MIB = 2**20


async def make_link(owner: Page) -> str:
    """Make a link by keyboard, and return its address."""
    await owner.goto("/videos")
    await owner.get_by_role("link", name="Hand-in links").click()
    await owner.get_by_label("Name").fill("Essay films, class 9b")
    await owner.keyboard.press("Enter")
    link = owner.get_by_label("Hand-in link", exact=True)
    await expect(link).to_be_visible()
    await suits_everyone(owner, "hand-in-links")
    return await link.input_value()


async def hand_in(page: Page, file: Path, title: str) -> None:
    await page.get_by_label("Video file").set_input_files(file)
    await page.get_by_label("Title").fill(title)
    await page.get_by_label("Your name").fill("Ben Example")
    await page.keyboard.press("Enter")


async def test_film_is_handed_in_on_a_phone_and_is_the_makers(
    owned_portal: LivePortal,
    owner: Page,
    open_page: OpenPage,
    short_video: Path,
    tmp_path: Path,
) -> None:
    link = await make_link(owner)
    phone = {"width": 360, "height": 800, "has_touch": True, "is_mobile": True}
    sender = await open_page(**phone, base_url=owned_portal.base_url)
    await sender.goto(link)
    await sender.get_by_role("button", name="Hand in").click()
    await expect(sender.get_by_text("Choose a video file.")).to_be_visible()
    await expect(sender.get_by_label("Video file")).to_be_focused()
    await suits_everyone(sender, "hand-in-faults")
    await sender.set_viewport_size({"width": 360, "height": 800})
    received = sender.locator("#received")
    await hand_in(sender, short_video, "The harbour")
    await expect(received.get_by_text("The harbour")).to_be_visible()
    assert await sender.evaluate(SMALL_TARGETS) == []

    # An upload in parts is paused, continued, and continued again after a reload.
    large = padded(short_video, tmp_path / "large.mp4", 20 * MIB)
    # The first part arrives, the second doesn't.
    second_part = re.compile(r"partNumber=2\b")
    await sender.route(second_part, lambda route: None)
    await hand_in(sender, large, "The bridge")
    figure = sender.locator("[data-figure]")
    await expect(figure).to_have_text(re.compile(r"^[1-9]\d?%"))
    await suits_everyone(sender, "hand-in-upload")
    await sender.get_by_role("button", name="Pause").click()
    await expect(sender.get_by_text("The upload of “large.mp4”")).to_be_visible()
    await sender.get_by_role("button", name="Hand in").click()
    await expect(sender.get_by_role("button", name="Pause")).to_be_visible()
    sender.on("dialog", lambda dialog: dialog.accept())
    await sender.reload()
    await sender.unroute(second_part)
    await expect(sender.get_by_text("The upload of “large.mp4”")).to_be_visible()
    begun = record_requests(sender, "/hand-in-files/", method="POST")
    await hand_in(sender, large, "The bridge")
    await expect(received.get_by_text("The bridge")).to_be_visible()
    # The upload was not begun again.
    assert len(begun) == 1
    await sender.reload()
    await expect(received.get_by_role("listitem")).to_have_count(2)
    await suits_everyone(sender, "hand-in")

    other = await open_page(base_url=owned_portal.base_url)
    await other.goto(link)
    await expect(other.get_by_role("heading", name="Essay films, class 9b")).to_be_visible()
    await expect(other.get_by_text("The harbour")).to_have_count(0)

    await owner.goto("/videos")
    for title in ("The harbour", "The bridge"):
        await expect(owner.get_by_role("link", name=title).first).to_be_visible()
    await owner.goto("/hand-ins")
    await expect(owner.get_by_text("Files received: 2 of 30")).to_be_visible()
    await owner.get_by_role("button", name="Revoke the link Essay films, class 9b").click()
    await expect(owner.get_by_text("Files received")).to_have_count(0)
    # The next upload of the sender is refused.
    await hand_in(sender, short_video, "Too late")
    await expect(sender.get_by_role("heading", name="This link is no longer valid")).to_be_visible()
    await suits_everyone(sender, "hand-in-ended")
