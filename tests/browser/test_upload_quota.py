"""Quotas as an editor meets them: before a file is chosen, in its details, and from a shell."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from api_client import run_sql
from chromium import OpenPage, record_requests, suits_everyone
from front_end import install_tools, run_node
from playwright.async_api import Page, expect
from running_portal import LivePortal, fresh_portal
from upload_page import (
    choose,
    fill_in,
    is_published,
    is_uploaded,
    line,
    publish_button,
)

# Browsers report answers that refuse something.
pytestmark = pytest.mark.complaint("status of 409")

STATE_TESTS = Path(__file__).with_name("upload_quota.test.mjs")
OWNER = {"email": "ann@example.org", "password": "four calm green boats", "next": "/"}
USED_UP = "publish any more for now"
A_DAY_LATER = "UPDATE videos SET created_at = created_at - interval '24 hours'"


def test_quotas_are_kept_without_a_browser() -> None:
    install_tools()
    run_node("--test", str(STATE_TESTS))


@asynccontextmanager
async def limited(services: dict[str, str], **quotas: int) -> AsyncIterator[LivePortal]:
    """A portal of its own with these quotas."""
    settings = {name.upper(): str(value) for name, value in quotas.items()}
    async with fresh_portal(services, **settings) as portal:
        yield portal


async def owners_page(open_page: OpenPage, portal: LivePortal) -> Page:
    """A page in a browser in which the portal's owner is signed in."""
    page = await open_page()
    await page.context.request.post(f"{portal.base_url}/set-up", form=OWNER)
    return page


async def opened(page: Page, portal: LivePortal) -> Page:
    """The upload page, in another tab of the same browser."""
    tab = await page.context.new_page()
    await tab.goto(f"{portal.base_url}/upload")
    await tab.locator("[data-upload-form][data-ready]").wait_for()
    return tab


async def uploaded(page: Page, file: Path) -> None:
    """A file is in storage, and its details are filled in."""
    await choose(page, file)
    await is_uploaded(page)
    await fill_in(page)


async def publish(page: Page) -> None:
    await publish_button(page).click()


async def test_editor_sees_the_day_fill_up_and_waits(
    services: dict[str, str], open_page: OpenPage, short_video: Path, upload_files: dict[str, Path]
) -> None:
    async with limited(services, max_videos_per_day=1) as portal:
        page = await owners_page(open_page, portal)
        first, second, third = [await opened(page, portal) for _ in range(3)]
        quota = first.locator(".quota")
        await expect(quota).to_contain_text("0 of 1 video in the last 24 hours")
        await uploaded(second, upload_files["plain.mp4"])
        # More files than there are places are not even uploaded.
        await choose(first, short_video, upload_files["silent.mp4"])
        fault = first.locator("#file-error")
        await expect(fault).to_contain_text("may publish only 1 more.")
        await expect(line(first, "silent.mp4")).to_have_count(0)
        await fill_in(first)
        await publish(first)
        await is_published(first)

        # Too late for a file that is uploaded: it stays, and so does what was typed.
        await publish(second)
        refusal = second.locator("[data-submit-trouble]")
        await expect(refusal).to_contain_text("as many videos in 24 hours as it may")
        await expect(refusal).to_contain_text("what is uploaded is kept until then")
        await suits_everyone(second, "quota-details-videos")
        # Too late for one that is not.
        await choose(third, short_video)
        await expect(third.get_by_role("alert")).to_contain_text("No more videos can be published")

        full = await opened(page, portal)
        await expect(full.locator(".quota")).to_contain_text(USED_UP)
        await expect(full.locator(".quota time")).to_be_visible()
        asked = record_requests(full, "/presign")
        await choose(full, short_video)
        await expect(full.locator("#file-error")).to_contain_text("may publish no more videos")
        assert asked == []
        await suits_everyone(full, "quota-full-videos")

        await run_sql(portal.environ["DATABASE_URL"], A_DAY_LATER)
        await publish(second)
        await is_published(second)
        # Its pages would ask on after the end of the portal.
        await page.context.close()
