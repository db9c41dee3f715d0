"""Playback links in a video's workshop, as who may edit it meets them."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from chromium import OpenPage, publish_file
from playwright.async_api import Locator, Page, expect
from running_portal import LivePortal, final_status, fresh_portal

EMAIL = "ann@example.org"
PASSWORD = "four calm green boats"


@dataclass
class Place:
    """A portal that its owner has closed, and a video on it that can be played."""

    portal: LivePortal
    video_id: str

    @property
    def address(self) -> str:
        return f"{self.portal.base_url}/videos/{self.video_id}/edit"


@pytest.fixture(scope="module")
async def place(
    services: dict[str, str], short_video: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Place]:
    work_dir = str(tmp_path_factory.mktemp("work"))
    async with fresh_portal(services, worker=True, WORK_DIR=work_dir) as portal:
        video_id = await publish_file(portal.base_url, short_video, "A private film")
        assert await final_status(portal.base_url, video_id) == "ready"
        yield Place(portal, video_id)


async def sign_in(page: Page, place: Place) -> Page:
    """Open the video's workshop as the owner, whose account the first test makes."""
    form = {"email": EMAIL, "password": PASSWORD, "next": "/"}
    await page.context.request.post(f"{place.portal.base_url}/set-up", form=form)
    await page.context.request.post(f"{place.portal.base_url}/sign-in", form=form)
    await page.goto(place.address)
    return page


def links(page: Page) -> Locator:
    return page.get_by_role("region", name="Playback links")


async def make(page: Page, life: str) -> Locator:
    """Make a link by the form; returns its entry, the first."""
    await links(page).get_by_label("It works for").select_option(life)
    await links(page).get_by_role("button", name="Make a link").click()
    await page.wait_for_url(re.compile(r"/edit\?link="))
    return links(page).get_by_role("listitem").first


async def test_link_is_made_copied_and_revoked(open_page: OpenPage, place: Place) -> None:
    page = await sign_in(await open_page(), place)
    await expect(links(page).get_by_role("listitem")).to_have_count(0)
    entry = await make(page, "30 days")
    stream = entry.get_by_label("Stream address (HLS)", exact=True)
    await expect(stream).to_be_visible()
    assert f"/hls/{place.video_id}/" in await stream.input_value()
    await entry.get_by_role("button", name="Copy: Player address").click()
    await expect(page.locator("[data-detail-live]")).to_have_text("Player address copied")
    await make(page, "1 hour")
    await expect(links(page).get_by_role("listitem")).to_have_count(2)
    await expect(stream).to_be_visible()
    closed = links(page).get_by_role("listitem").last
    await expect(closed.get_by_label("Player address", exact=True)).to_be_hidden()
    for _ in range(2):
        # By keyboard.
        await links(page).get_by_role("button", name="Revoke the link").first.press("Enter")
        await page.wait_for_url(f"{place.address}#links")
    await expect(links(page).get_by_role("listitem")).to_have_count(0)
