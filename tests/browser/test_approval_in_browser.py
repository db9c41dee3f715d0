"""Approval in a browser: a contributor, an editor who decides, and a visitor."""

from pathlib import Path

import pytest
from chromium import EDITOR, PASSWORD, OpenPage, play_past, suits_everyone
from command_line import portal as command
from playwright.async_api import Page, expect
from running_portal import LivePortal, process
from upload_page import choose, fill_in, open_upload, open_video, publish_button

# Browsers log refused requests as errors.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of 404")]
CONTRIBUTOR = "cora@example.org"
TITLE = "Herons at dawn"
REASON = "Please blur the faces."


async def signed_in_page(open_page: OpenPage, portal: LivePortal, email: str) -> Page:
    page = await open_page(base_url=portal.base_url)
    await page.context.request.post("/sign-in", form={"email": email, "password": PASSWORD})
    return page


async def test_contributor_asks_again_after_a_refusal_and_the_approved_video_plays(
    owned_portal: LivePortal, open_page: OpenPage, short_video: Path
) -> None:
    add = ("accounts", "add", CONTRIBUTOR, "--role", "contributor", "--password-stdin")
    assert (await command(owned_portal.environ, *add, typed=f"{PASSWORD}\n")).code == 0
    contributor = await signed_in_page(open_page, owned_portal, CONTRIBUTOR)
    await open_upload(contributor)
    await expect(contributor.get_by_text("Your videos wait until someone")).to_be_visible()
    await choose(contributor, short_video)
    await fill_in(contributor, title=TITLE)
    await publish_button(contributor).click()
    await open_video(contributor, TITLE)
    await expect(contributor.get_by_text("This video waits for approval")).to_be_visible()
    video_id = contributor.url.rpartition("/")[2]

    visitor = await open_page(base_url=owned_portal.base_url)
    answer = await visitor.goto(f"/videos/{video_id}")
    assert answer is not None
    assert answer.status == 404
    editor = await signed_in_page(open_page, owned_portal, EDITOR)
    async with process("worker", owned_portal.environ):
        await editor.goto(f"/videos/{video_id}")
        await expect(editor.locator("#status[data-status=ready]")).to_be_visible(timeout=60_000)
    await editor.goto("/")
    await editor.get_by_role("link", name="Approvals (1)").click()
    await suits_everyone(editor, "approvals")
    await editor.get_by_role("link", name=TITLE).click()
    # The editor refuses it by keyboard.
    await editor.get_by_text("Refuse…").focus()
    await editor.keyboard.press("Enter")
    reason = editor.get_by_label("Reason")
    await editor.keyboard.press("Tab")
    await expect(reason).to_be_focused()
    await suits_everyone(editor, "approval")
    await editor.keyboard.type(REASON)
    await editor.keyboard.press("Tab")
    await editor.keyboard.press("Enter")
    await expect(editor.get_by_text("No video waits for approval")).to_be_visible()

    await contributor.reload()
    await expect(contributor.get_by_text(REASON)).to_be_visible()
    await suits_everyone(contributor, "refused")
    await contributor.get_by_role("button", name="Ask again").click()
    await expect(contributor.get_by_role("link", name=TITLE)).to_be_visible()
    await editor.reload()
    await editor.get_by_role("link", name=TITLE).click()
    await editor.get_by_role("button", name="Approve").click()
    await expect(editor.get_by_text("No video waits for approval")).to_be_visible()
    await visitor.reload()
    await play_past(visitor, 0.5)
