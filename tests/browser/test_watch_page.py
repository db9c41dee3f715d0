"""The watch page: times in the description, and sharing."""

import re
from pathlib import Path

import av
import pytest
from chromium import play_past
from player_page import wait_for
from playwright.async_api import Page, expect
from running_portal import LivePortal, create, final_status


@pytest.fixture(scope="module")
async def video(live_portal: LivePortal, short_video: Path) -> str:
    """The id of a video with times in its description."""
    times = "Begins at 0:00, goes on at 0:01, and never gets to 9:59"
    record = await create(live_portal.base_url, short_video, title="Watched", description=times)
    assert await final_status(live_portal.base_url, record["id"]) == "ready"
    return str(record["id"])


@pytest.fixture
async def watched(page: Page, video: str) -> str:
    """Address of the video, whose page is open."""
    await page.goto(f"/videos/{video}")
    await expect(page.locator("video")).to_be_visible()
    await page.wait_for_load_state("networkidle")
    return page.url


async def test_times_seek_the_player_and_search_leads_to_the_library(
    page: Page, watched: str
) -> None:
    times = page.locator(".video-page__description a")
    await expect(times).to_have_text(["0:00", "0:01"])
    await times.last.click()
    await play_past(page, 1.0)
    assert page.url == watched
    # The player still handles its keys while the link has the focus.
    await page.keyboard.press("m")
    await wait_for(page, "!video.muted && video.currentTime >= 1")

    # The player takes the free width.
    related = page.locator(".related")
    await related.evaluate_all("them => them.forEach((element) => element.remove())")
    stage = await page.locator("#status").bounding_box()
    summary = await page.locator("#summary").bounding_box()
    assert stage is not None
    assert summary is not None
    assert stage["width"] == summary["width"] >= 0.7 * (page.viewport_size or {})["width"]

    search = page.get_by_role("banner").get_by_role("searchbox", name="Search videos")
    await search.fill("nothing like it")
    await search.press("Enter")
    await expect(page.get_by_text("No videos found for “nothing like it”")).to_be_visible()


async def test_link_and_embed_code_have_the_chosen_options(page: Page, watched: str) -> None:
    await page.get_by_text("Share", exact=True).click()
    share = page.locator("#share")
    await expect(share.get_by_label("Embedded size")).to_be_in_viewport()
    address = share.get_by_label("Page link", exact=True)
    code = share.get_by_label("Embed code", exact=True)
    time = share.get_by_label("Start time")
    starts = share.get_by_label("Start at", exact=True)
    autoplay = share.get_by_label("Autoplay")
    size = share.get_by_label("Embedded size")
    plain = await code.input_value()
    # The first text is not a time; the second is a time after the end.
    for wrong in ("soon", "9:59"):
        await time.fill(wrong)
        await expect(time).to_have_attribute("aria-invalid", "true")
        await expect(address).to_have_value(watched)
    await time.fill("0:01")
    await expect(starts).to_be_checked()
    await expect(address).to_have_value(f"{watched}?t=1")
    await size.select_option("full")
    await expect(code).to_have_value(re.compile(r'style="width: 100%; aspect-ratio: 640 / 360"'))
    await size.select_option("960")
    await autoplay.check()
    chosen = re.compile(r'src="[^"]+\?t=1&amp;autoplay=1&amp;muted=1" width="960" height="540"')
    await expect(code).to_have_value(chosen)

    opened = await share.element_handle()
    assert opened is not None
    async with page.expect_response("**/share"):
        # The end of processing sends this event.
        await page.evaluate("document.body.dispatchEvent(new Event('video-final'))")
    # The element was not replaced, and stayed open.
    assert await opened.evaluate("element => element.isConnected && element.open")
    await expect(autoplay).to_be_focused()
    await expect(address).to_have_value(f"{watched}?t=1")
    await expect(code).to_have_value(chosen)
    await starts.uncheck()
    await autoplay.uncheck()
    await size.select_option("")
    await expect(code).to_have_value(plain)


async def test_quality_is_saved_as_a_file_once_it_is_prepared(
    page: Page, watched: str, tmp_path: Path
) -> None:
    """The file is requested by keyboard, and the focus stays on it when it becomes ready."""
    await page.locator("#download-summary").focus()
    await page.keyboard.press("Enter")
    download = page.locator("#download")
    prepare = download.get_by_role("button", name="Prepare: Video (MP4): 180p")
    await prepare.focus()
    await page.keyboard.press("Enter")
    save = download.get_by_role("link", name="Download Video (MP4): 180p")
    await expect(save).to_be_focused()
    async with page.expect_download() as saving:
        await page.keyboard.press("Enter")
    saved = await saving.value
    assert saved.suggested_filename == "Watched 180p.mp4"
    path = tmp_path / saved.suggested_filename
    await saved.save_as(path)
    with av.open(str(path)) as film:
        assert film.metadata["title"] == "Watched"
        assert len(film.streams.audio) == 1
        assert len(list(film.decode(video=0))) == 60
    assert page.url == watched
