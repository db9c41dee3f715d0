"""A session that ends during an upload: signing in again in the same tab loses nothing."""

import asyncio
from pathlib import Path

import pytest
from chromium import EDITOR, OWNER, PASSWORD, axe_findings
from library_rows import Rows
from playwright.async_api import Locator, Page, Request, Route, expect
from running_portal import LivePortal
from upload_page import (
    choose,
    details,
    fill_in,
    is_uploaded,
    open_upload,
    padded,
    press_publish,
)

# Browsers log refused requests as errors.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of (401|404|409|422)")]

MIB = 2**20


def dialog_of(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Sign in again")


async def sign_out(page: Page) -> None:
    """End the session without the page."""
    headers = {"Origin": str(await page.evaluate("location.origin"))}
    assert (await page.context.request.post("/sign-out", headers=headers)).ok


async def sign_in(page: Page, email: str) -> None:
    """Fill in the dialog, and send it."""
    dialog = dialog_of(page)
    await dialog.get_by_label("Email address").fill(email)
    await dialog.get_by_role("textbox", name="Password").fill(PASSWORD)
    await dialog.get_by_role("button", name="Sign in", exact=True).click()


async def test_upload_in_parts_continues_only_for_its_own_account(
    owner: Page, short_video: Path, tmp_path: Path
) -> None:
    await open_upload(owner)
    big_file = padded(short_video, tmp_path / "big.mp4", 33 * MIB)  # three parts
    signed: list[str] = []
    put: list[str] = []
    turn = asyncio.Lock()
    has_two = asyncio.Event()
    has_typed = asyncio.Event()

    async def sign_first(route: Route) -> None:
        """Sign parts one after the other, and end the session after the second."""
        async with turn:
            if len(signed) == 2:
                await has_typed.wait()
                await sign_out(owner)
            signed.append(route.request.url)
            if len(signed) > 2:
                await route.continue_()
            else:
                await route.fulfill(response=await route.fetch())

    def finished(request: Request) -> None:
        if request.method == "PUT":
            put.append(request.url)
        if len(put) == 2:
            has_two.set()

    owner.on("requestfinished", finished)
    await owner.route("**/api/uploads/*/parts/*", sign_first)
    await choose(owner, big_file)
    await fill_in(owner, title="In parts")
    has_typed.set()
    await dialog_of(owner).wait_for()
    await asyncio.wait_for(has_two.wait(), 60)
    await expect(dialog_of(owner)).to_be_visible()
    await expect(details(owner).get_by_role("alert")).to_have_count(0)

    # Another account cannot continue the upload.
    await sign_in(owner, EDITOR)
    alert = dialog_of(owner).get_by_role("alert")
    await expect(alert).to_contain_text(f"signed in as {EDITOR}, but {OWNER} opened this page")
    await expect(alert).to_contain_text(f"Sign in as {OWNER}")
    await owner.keyboard.press("Escape")
    trouble = details(owner).locator("[data-trouble]")
    await expect(trouble).to_contain_text("with a different account")
    assert await axe_findings(owner) == []
    await expect(owner.get_by_label("Title")).to_have_value("In parts")
    assert len(put) == 2

    await trouble.get_by_role("link", name="Sign in").click()
    await sign_in(owner, OWNER)
    await is_uploaded(owner)
    # No part was sent twice.
    assert len(put) == len(set(put)) == 3
    await press_publish(owner, title="In parts")


async def test_pressed_button_counts_after_signing_in_again(
    owner: Page, owned_portal: LivePortal
) -> None:
    await Rows(owned_portal.environ["DATABASE_URL"]).add(101, "A film")
    await owner.goto("/videos?whose=all")
    await owner.get_by_role("checkbox", name="Select A film").check()
    bar = owner.get_by_role("group", name="Change the selected videos")
    await expect(bar.get_by_role("status")).to_have_text("1 selected")
    await bar.locator("summary", has_text="Tags").click()
    await bar.get_by_label("Tags").fill("harvest")
    await sign_out(owner)
    await bar.get_by_role("button", name="Add tags").click()
    await sign_in(owner, OWNER)
    await expect(owner.locator(".toast__message")).to_have_text("Tags added to 1 video.")
