"""Who may see a video, as people set it and as others then find it; links for players elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from chromium import (
    TRANSCODE_TIMEOUT_MS,
    OpenPage,
    axe_findings,
    hold_requests,
    open_workshop,
    record_requests,
)
from playwright.async_api import Locator, Page, expect
from running_portal import LivePortal, fresh_portal
from upload_page import choose, fill_in, open_video, publish_button

# Browsers report answers that refuse something.
pytestmark = pytest.mark.complaint("status of (401|404|409|410|422)|Failed to load resource")

OWNER = "ann@example.org"
PASSWORD = "four calm green boats"
PUBLIC, UNLISTED, PRIVATE = "Public", "Unlisted", "Private"
YOURS = "Visible to: you, admins and owners"


@pytest.fixture(scope="module")
async def portal(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """A portal with an owner."""
    async with fresh_portal(services, worker=True) as portal:
        form = {"email": OWNER, "password": PASSWORD}
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{portal.base_url}/set-up", data=form) as response,
        ):
            assert response.status == 200
        yield portal


@pytest.fixture
async def owner(open_page: OpenPage, portal: LivePortal) -> Page:
    """A browser in which the owner is signed in."""
    return await signed_in(await open_page(), portal)


async def signed_in(page: Page, portal: LivePortal) -> Page:
    await page.goto(f"{portal.base_url}/sign-in?next=/upload")
    await page.get_by_label("E-mail address").fill(OWNER)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.locator("main").get_by_role("button", name="Sign in").click()
    await page.wait_for_url("**/upload")
    return page


async def open_upload(page: Page, portal: LivePortal) -> None:
    await page.goto(f"{portal.base_url}/upload")
    await page.locator("[data-upload-form][data-ready]").wait_for()


async def publish(page: Page, portal: LivePortal, path: Path, title: str, who: str = "") -> str:
    """Publish a file by the upload page; answers the address of the video, which is then shown."""
    await open_upload(page, portal)
    await choose(page, path)
    await fill_in(page, title=title)
    if who:
        await page.get_by_label("Who can see it").select_option(label=who)
    await publish_button(page).click()
    await open_video(page, title)
    await page.wait_for_load_state("networkidle")
    return page.url


def state(page: Page) -> Locator:
    """What the workshop says of who sees the video now."""
    return page.locator("#access [data-state]")


async def open_form(page: Page, address: str) -> Locator:
    """Open the workshop of a video; answers the form that says who may see it."""
    return await open_workshop(page, address, "Who can see it")


async def status_for_nobody(address: str) -> int:
    async with aiohttp.ClientSession() as http, http.get(address) as response:
        return response.status


async def test_private_upload_never_is_seen_by_others(
    owner: Page, portal: LivePortal, short_video: Path
) -> None:
    found: list[str] = []
    is_over = asyncio.Event()

    async def look() -> None:
        async with aiohttp.ClientSession() as http:
            while not is_over.is_set():
                async with http.get(f"{portal.base_url}/") as response:
                    found.append(await response.text())

    posts = record_requests(owner, "/api/videos?", method="POST")
    changes = record_requests(owner, "/access", method="P")
    async with asyncio.TaskGroup() as looking:
        looking.create_task(look())
        address = await publish(
            owner, portal, short_video, "Born private", "Private: you, admins and owners"
        )
        is_over.set()
    assert posts == [f"{portal.base_url}/api/videos?visibility=private"]
    assert changes == []
    assert len(found) > 1
    assert not [text for text in found if "Born private" in text]
    assert await status_for_nobody(address) == 404
    await expect(owner.locator(".summary__title")).to_have_text("Born private Private")
    await open_form(owner, address)
    await expect(state(owner)).to_have_text(YOURS)


async def test_video_made_private_by_keyboard_is_gone_for_others_at_once(
    open_page: OpenPage, owner: Page, portal: LivePortal, short_video: Path
) -> None:
    address = await publish(owner, portal, short_video, "By keyboard")
    other = await open_page()
    await other.goto(address)
    await expect(other.get_by_role("heading", level=1)).to_have_text("By keyboard")
    await expect(other.get_by_role("link", name="Edit")).to_have_count(0)

    form = await open_form(owner, address)
    assert await axe_findings(owner) == []
    await expect(state(owner)).to_have_text("Visible to: everyone")
    box = form.get_by_label("Everyone with an account, too")
    await form.get_by_role("radio", name=PUBLIC).focus()
    await expect(box).to_be_hidden()
    for _ in range(2):
        await owner.keyboard.press("ArrowDown")
    await expect(form.get_by_role("radio", name=PRIVATE)).to_be_checked()
    await owner.keyboard.press("Tab")
    await expect(box).to_be_focused()
    await owner.keyboard.press("Tab")
    await expect(form.get_by_label("Sites that may embed it")).to_be_focused()
    await owner.keyboard.type("https://blog.example.org")
    await owner.keyboard.press("Tab")
    may_go_on = await hold_requests(owner, "**/access/panel")
    await owner.keyboard.press("Enter")
    await expect(form.get_by_role("button", name="Saving…")).to_be_focused()
    may_go_on.set()

    # The page says it in its other places, too, and the keyboard stays where it was.
    await expect(state(owner)).to_have_text(YOURS)
    await expect(owner.locator("[data-detail-live]")).to_have_text(f"Saved. {YOURS}")
    await expect(form.get_by_text("Saved")).to_be_visible()
    await expect(form.get_by_role("button", name="Save")).to_be_focused()
    await expect(owner.locator(".summary__title")).to_have_text("By keyboard Private")
    response = await other.reload()
    assert response is not None
    assert response.status == 404
    await expect(other.get_by_text("By keyboard")).to_have_count(0)
    await owner.reload()
    await expect(state(owner)).to_have_text(YOURS)
    await expect(form.get_by_text("Saved")).to_have_count(0)

    # And back.
    await form.get_by_role("radio", name=UNLISTED).check()
    await form.get_by_role("button", name="Save").click()
    await expect(state(owner)).to_have_text("Visible to: everyone who has the address")
    await other.goto(address)
    await expect(other.locator(".summary__title")).to_have_text("By keyboard Unlisted")


@pytest.mark.slow
async def test_playback_link_is_made_copied_and_revoked(
    owner: Page, portal: LivePortal, short_video: Path
) -> None:
    address = await publish(owner, portal, short_video, "Linked")
    await expect(owner.locator("video")).to_be_visible(timeout=TRANSCODE_TIMEOUT_MS)
    await owner.goto(f"{address}/edit")
    links = owner.get_by_role("region", name="Playback links")
    await expect(links.get_by_role("listitem")).to_have_count(0)
    for life in ("30 days", "1 hour"):
        await links.get_by_label("It works for").select_option(life)
        await links.get_by_role("button", name="Make a link").click()
        await owner.wait_for_url("**/edit?link=*")
    await expect(links.get_by_role("listitem")).to_have_count(2)
    entry = links.get_by_role("listitem").first
    stream = entry.get_by_label("Stream address (HLS)", exact=True)
    assert f"/hls/{address.rpartition('/')[2]}/" in await stream.input_value()
    await entry.get_by_role("button", name="Copy: Player address").click()
    await expect(owner.locator("[data-detail-live]")).to_have_text("Player address copied")
    for _ in range(2):
        # By keyboard.
        await links.get_by_role("button", name="Revoke the link").first.press("Enter")
        await owner.wait_for_url(f"{address}/edit#links")
    await expect(links.get_by_role("listitem")).to_have_count(0)
