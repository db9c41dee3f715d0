"""The page of a video for who watches it: nothing of the workshop, and all that a viewer wants."""

import re
from pathlib import Path

import pytest
from chromium import play_past
from player_page import wait_for
from playwright.async_api import Page, expect
from running_portal import LivePortal, create, final_status


@pytest.fixture(scope="module")
async def videos(live_portal: LivePortal, short_video: Path) -> list[str]:
    """The ids of two videos with a tag in common; the first has times in its description."""
    portal = live_portal.base_url
    words = {"description": "0:00 Begins\n0:01 Goes on\n9:59 Never", "tags": "harbour, ships"}
    made = [
        await create(portal, short_video, title="Watched", categoryIds=[3], **words),
        await create(
            portal,
            short_video,
            title="Harbour again",
            categoryIds=[1],
            description="",
            tags="Harbour",
        ),
    ]
    for video in made:
        assert await final_status(portal, video["id"]) == "ready"
    return [video["id"] for video in made]


@pytest.fixture
async def watched(page: Page, videos: list[str]) -> str:
    """The address of the first of them, whose page is open."""
    await page.goto(f"/videos/{videos[0]}")
    await expect(page.locator("video")).to_be_visible()
    await page.wait_for_load_state("networkidle")
    return page.url


async def test_times_in_the_description_lead_the_player(page: Page, watched: str) -> None:
    times = page.locator(".video-page__description a")
    await expect(times).to_have_text(["0:00", "0:01"])
    await times.last.click()
    await play_past(page, 1.0)
    assert page.url == watched
    # The link has the focus; the player still hears its keys.
    await page.keyboard.press("m")
    await wait_for(page, "!video.muted && video.currentTime >= 1")
    await page.locator("video").evaluate("video => video.pause()")
    await page.keyboard.press("0")
    await wait_for(page, "video.currentTime < 1")


async def test_address_is_shared_with_a_time_and_the_frame_with_its_options(
    page: Page, watched: str
) -> None:
    await page.get_by_text("Share").click()
    share = page.locator("#share")
    address, code = (share.get_by_label(it, exact=True) for it in ("Page address", "Embed code"))
    plain = await code.input_value()
    await share.get_by_label("Time to start at").fill("0:01")
    await expect(share.get_by_label("Start at", exact=True)).to_be_checked()
    await expect(address).to_have_value(f"{watched}?t=1")
    await share.get_by_label("Autoplay").check()
    await share.get_by_label("Embedded size").select_option("960")
    await expect(code).to_have_value(
        re.compile(r'src="[^"]+\?t=1&amp;autoplay=1&amp;muted=1" width="960" height="540"')
    )
    await share.get_by_label("Embedded size").select_option("full")
    await expect(code).to_have_value(re.compile(r'style="width: 100%; aspect-ratio: 640 / 360"'))
    time = share.get_by_label("Time to start at")
    # No time at all, none that a clock shows, and one after the end.
    for wrong in ("soon", "0:99", "9:59"):
        await time.fill(wrong)
        await expect(time).to_have_attribute("aria-invalid", "true")
        await expect(address).to_have_value(watched)
        await time.fill("0:01")
        await expect(time).to_have_attribute("aria-invalid", "false")
    await share.get_by_label("Start at", exact=True).uncheck()
    await share.get_by_label("Autoplay").uncheck()
    await share.get_by_label("Embedded size").select_option("")
    await expect(code).to_have_value(plain)


@pytest.mark.slow
async def test_share_stays_open_with_what_was_chosen_when_it_is_replaced(
    page: Page, watched: str
) -> None:
    await page.get_by_text("Share").click()
    share = page.locator("#share")
    opened = await share.element_handle()
    assert opened is not None
    await share.get_by_label("Time to start at").fill("0:01")
    await share.get_by_label("Autoplay").check()
    code = await share.get_by_label("Embed code", exact=True).input_value()
    await share.get_by_label("Autoplay").focus()
    async with page.expect_response("**/share"):
        # As at the end of processing.
        await page.evaluate("document.body.dispatchEvent(new Event('video-final'))")
    # It is the same, which was not folded up for a moment either.
    assert await opened.evaluate("it => it.isConnected && it.open")
    await expect(share.get_by_label("Start at", exact=True)).to_be_checked()
    await expect(share.get_by_label("Autoplay")).to_be_checked()
    await expect(share.get_by_label("Autoplay")).to_be_focused()
    await expect(share.get_by_label("Page address", exact=True)).to_have_value(f"{watched}?t=1")
    await expect(share.get_by_label("Embed code", exact=True)).to_have_value(code)


@pytest.mark.slow
async def test_others_with_the_same_tags_and_categories_come_next(page: Page, watched: str) -> None:
    following = page.get_by_role("region", name="Up next")
    link = following.get_by_role("link", name="Harbour again")
    await expect(link).to_be_visible()
    await expect(following.get_by_role("link", name="Watched")).to_have_count(0)
    await link.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Harbour again")
