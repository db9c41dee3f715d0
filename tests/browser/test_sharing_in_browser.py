"""Sharing in a browser: with a group and a guest, by keyboard, and by a password."""

import pytest
from chromium import OpenPage, open_workshop, suits_everyone
from command_line import portal as command
from library_rows import Rows
from playwright.async_api import Page, expect
from running_portal import LivePortal

# Browsers log refused requests as errors.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of (403|404|422)")]
WORD = "open sesame"


async def private_video(portal: LivePortal, number: int, title: str) -> str:
    """Return the page of a private video without files."""
    rows = Rows(portal.environ["DATABASE_URL"])
    video_id = await rows.add(number, title)
    await rows.run("UPDATE publications SET visibility = 'private' WHERE id = %s", video_id)
    return f"{portal.base_url}/videos/{video_id}"


async def test_owner_shares_with_a_group_and_a_guest_who_opens_the_link(
    owned_portal: LivePortal, owner: Page, open_page: OpenPage
) -> None:
    await command(owned_portal.environ, "accounts", "add", "vera@example.org", "--role", "viewer")
    page_url = await private_video(owned_portal, 4001, "For the choir")
    await owner.goto(f"{owned_portal.base_url}/groups")
    await owner.get_by_label("Name").fill("The choir")
    await owner.keyboard.press("Enter")
    await expect(owner.get_by_role("heading", name="The choir")).to_be_visible()
    form = await open_workshop(owner, page_url, "Visibility")
    names = form.get_by_label("Add people or groups")
    # Typing suggests names.
    await names.press_sequentially("cho")
    option = owner.locator("#holders option").first
    await expect(option).to_have_attribute("value", "The choir")
    await names.fill("The choir, ghost, gina@example.org")
    # Closes the list of suggestions, in which Enter would choose.
    await names.press("Escape")
    await names.press("Enter")
    await expect(form.get_by_text("“ghost” is nobody here")).to_be_visible()
    await expect(names).to_be_focused()
    await names.fill("The choir, gina@example.org")
    await form.get_by_label("Addresses without an account get a personal link").check()
    await names.press("Escape")
    await names.press("Enter")
    await expect(form.get_by_label("Personal link", exact=True)).to_be_visible()
    await suits_everyone(owner, "sharing", part="#access")
    link = await form.get_by_label("Personal link", exact=True).input_value()
    code = await form.get_by_label("Code", exact=True).input_value()
    guest = await open_page(base_url=owned_portal.base_url)
    await guest.goto(link)
    await suits_everyone(guest, "guest")
    await guest.get_by_label("Code").fill("1")
    await guest.keyboard.press("Enter")
    await expect(guest.get_by_text("This code is wrong")).to_be_visible()
    await guest.get_by_label("Code").fill(code)
    await guest.keyboard.press("Enter")
    await guest.get_by_role("link", name="For the choir").first.click()
    await expect(guest.get_by_role("heading", name="For the choir")).to_be_visible()
    # The right is taken away by the list.
    share = form.get_by_role("combobox", name="gina@example.org")
    await share.select_option(label="Remove")
    await owner.get_by_role("button", name="Save changes").click()
    await expect(form.get_by_role("combobox", name="gina@example.org")).to_have_count(0)
    await guest.reload()
    await expect(guest.get_by_role("heading", name="Not found")).to_be_visible()


async def test_password_opens_a_video_in_one_browser(
    owned_portal: LivePortal, owner: Page, open_page: OpenPage
) -> None:
    page_url = await private_video(owned_portal, 4002, "Behind a word")
    form = await open_workshop(owner, page_url, "Visibility")
    await form.get_by_role("textbox", name="Password").fill(WORD)
    await owner.keyboard.press("Enter")
    await expect(owner.locator("#access [data-state]")).to_have_text(
        "Visible to: anyone with the link and the password"
    )
    viewer = await open_page(base_url=owned_portal.base_url)
    await viewer.goto(page_url)
    await suits_everyone(viewer, "password")
    await expect(viewer.get_by_label("Password", exact=True)).to_be_focused()
    await viewer.keyboard.type("guess")
    await viewer.keyboard.press("Enter")
    await expect(viewer.get_by_text("This password is wrong")).to_be_visible()
    await viewer.get_by_label("Password", exact=True).fill(WORD)
    await viewer.keyboard.press("Enter")
    await expect(viewer.get_by_role("heading", name="Behind a word")).to_be_visible()
    await viewer.goto(page_url)
    await expect(viewer.get_by_role("heading", name="Behind a word")).to_be_visible()
