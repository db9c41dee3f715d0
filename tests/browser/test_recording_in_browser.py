"""Journeys of the page that records, with Chromium's fake camera, screen and microphone."""

import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from chromium import (
    TRANSCODE_TIMEOUT_MS,
    hold_requests,
    play_past,
    record_requests,
    suits_everyone,
)
from playwright.async_api import Browser, Locator, Page, Route, expect
from record_page import (
    address_of,
    capturing_browser,
    choose_sources,
    crash,
    duration_s_of,
    open_recorder,
    record_past,
    video_id_of,
)
from running_portal import LivePortal, final_status
from upload_page import choose_category, details, open_upload

from portal.transcoding.planning.kept import MOST_MOVED_S, ROUNDING_S


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with capturing_browser() as browser:
        yield browser


# The request that publishes for oneself is repeated with the chosen visibility.
@pytest.mark.complaint("status of 409")
async def test_recording_plays_soon_after_its_end_and_is_published(
    page: Page, live_portal: LivePortal
) -> None:
    await open_recorder(page)
    await suits_everyone(page, "record")
    await choose_sources(page, "Camera", "Microphone")
    await suits_everyone(page, "record-sources")
    await record_past(page, 4)
    await page.keyboard.press("p")
    await expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    await page.keyboard.press("p")
    await page.keyboard.press("s")
    await expect(address_of(page)).to_be_visible()
    video_id = await video_id_of(page)
    await expect(details(page).get_by_label("Title")).to_have_value(re.compile("^Recording of "))
    await suits_everyone(page, "record-details")
    await details(page).get_by_label("Title").fill("How to press R")
    await choose_category(page)
    await page.get_by_role("button", name="Publish", exact=True).click()
    await expect(page.locator("[data-note]")).to_have_text("“How to press R” is published.")
    assert await final_status(live_portal.base_url, video_id) == "ready"
    await address_of(page).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("How to press R")
    await play_past(page, 3)


async def test_recording_of_a_killed_tab_is_continued_by_another(
    page: Page, live_portal: LivePortal
) -> None:
    await open_recorder(page)
    await choose_sources(page, "Camera", "Microphone")
    await record_past(page, 10)
    other = await page.context.new_page()
    await open_upload(other)
    link = other.get_by_role("link", name="Continue with what was recorded")
    # While its tab lives, no other one takes a recording.
    await expect(link).to_be_hidden()
    await crash(page)
    await link.click()
    await other.get_by_role("button", name="Continue with what was recorded").click()
    await expect(address_of(other)).to_be_visible()
    # A crash loses at most 5 s.
    assert await duration_s_of(live_portal, await video_id_of(other)) >= 5
    await other.get_by_role("button", name="Discard", exact=True).click()
    await other.get_by_role("dialog").get_by_role("button", name="Discard").click()
    await expect(other.get_by_role("button", name="Record", exact=True)).to_be_visible()
    await expect(address_of(other)).to_be_hidden()
    await open_recorder(other)
    await expect(other.get_by_role("button", name="Continue")).to_be_hidden()


@pytest.mark.complaint("ERR_INTERNET_DISCONNECTED")
async def test_recording_goes_on_without_a_connection(page: Page) -> None:
    await open_recorder(page)
    await choose_sources(page, "Camera")
    await record_past(page, 1)
    await page.context.set_offline(True)
    await expect(page.locator("[data-meanwhile]")).to_contain_text("Kept on this computer: ")
    await page.keyboard.press("s")
    await expect(page.get_by_text("The recording is kept on this computer.")).to_be_visible()
    await page.context.set_offline(False)
    await expect(address_of(page)).to_be_visible()
    await page.wait_for_function("() => document.querySelector('[data-recorded]').duration > 0.5")


async def test_camera_over_the_screen_is_moved_and_hidden(page: Page) -> None:
    await open_recorder(page)
    await choose_sources(page, "Screen, window or tab", "Camera")
    bubble = page.get_by_role("group", name="Camera in the picture")
    before = await bubble.bounding_box()
    assert before is not None
    await bubble.focus()
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("-")
    moved = await bubble.bounding_box()
    assert moved is not None
    assert moved["x"] < before["x"]
    assert moved["width"] < before["width"]
    await bubble.drag_to(page.locator("[data-picture]"))
    dragged = await bubble.bounding_box()
    assert dragged is not None
    assert dragged["x"] < moved["x"]
    await page.keyboard.press("c")
    await expect(page.get_by_role("button", name="Hide camera", pressed=True)).to_be_visible()


async def test_full_disk_ends_a_recording_that_is_kept(page: Page) -> None:
    await open_recorder(page)
    await choose_sources(page, "Camera")
    session = await page.context.new_cdp_session(page)
    origin = await page.evaluate("() => origin")
    await record_past(page, 4)
    await session.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 1})
    await expect(page.get_by_text("There is no space left on this computer")).to_be_visible()
    await expect(address_of(page)).to_be_visible()


async def test_refused_camera_is_explained(page: Page) -> None:
    await open_recorder(page)
    refused = "() => Promise.reject(new DOMException('', 'NotAllowedError'))"
    await page.evaluate(f"() => {{ navigator.mediaDevices.getUserMedia = {refused}; }}")
    await page.get_by_role("button", name="Camera", exact=True).click()
    place = page.locator("[data-source=camera] [data-source-error]")
    await expect(place).to_have_text(re.compile("^The camera isn.t allowed"))
    await page.get_by_role("button", name="Record", exact=True).click()
    await expect(page.locator("[data-warnings]")).to_contain_text("Choose a screen or a camera")


# Lets the camera have a size with one quality, which is transcoded and cut soon.
SMALL_CAMERA = """
    const devices = navigator.mediaDevices;
    const open = devices.getUserMedia.bind(devices);
    devices.getUserMedia = (asked) =>
        open(asked.video ? { ...asked, video: { width: 320, height: 180 } } : asked);
"""


async def cuts_of(live_portal: LivePortal, video_id: str) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession(live_portal.base_url) as session,
        session.get(f"/api/videos/{video_id}/cuts") as response,
    ):
        record: dict[str, Any] = await response.json()
    return record


async def record_small_film(page: Page, seconds: int, *sources: str) -> None:
    """Record so many seconds of a small camera picture, and wait for the address of the video."""
    await page.add_init_script(SMALL_CAMERA)
    await open_recorder(page)
    await choose_sources(page, *sources)
    await record_past(page, seconds)
    await page.keyboard.press("s")
    await expect(address_of(page)).to_be_visible()


def handle(page: Page, bound: str) -> Locator:
    """Return the handle of the start or the end of the part to publish."""
    return page.get_by_role("slider", name=f"{bound} of the selection")


async def bounds_s(page: Page) -> tuple[float, float]:
    """Return the start and the end of the part to publish."""
    return (
        float(await handle(page, "Start").input_value()),
        float(await handle(page, "End").input_value()),
    )


# The request that publishes for oneself is repeated with the chosen visibility.
@pytest.mark.complaint("status of 409")
async def test_only_the_part_between_the_handles_is_ever_public(
    page: Page, live_portal: LivePortal
) -> None:
    live_at_publication = []

    async def read_cuts(route: Route) -> None:
        if route.request.method == "PUT":
            live_at_publication.append((await cuts_of(live_portal, video_id))["liveKeep"])
        await route.continue_()

    await page.route("**/api/videos/*/access", read_cuts)
    await record_small_film(page, 4, "Camera", "Microphone")
    video_id = await video_id_of(page)
    await handle(page, "Start").focus()
    await page.keyboard.press("Shift+ArrowRight")
    await page.keyboard.press("Shift+ArrowRight")
    await page.keyboard.press("ArrowRight")
    await handle(page, "End").focus()
    await page.keyboard.press("Shift+ArrowLeft")
    await expect(page.get_by_text("Only this part is published.")).to_be_visible()
    start_s, end_s = await bounds_s(page)
    assert 2 < start_s < end_s
    await choose_category(page)
    await suits_everyone(page, "record-part")
    released = await hold_requests(page, "**/api/videos/*/cuts")
    await page.get_by_role("button", name="Publish", exact=True).click()
    await expect(page.get_by_text("It is cut and published after that.")).to_be_visible()
    await suits_everyone(page, "record-cutting")
    released.set()
    # The film and its cut are made one after the other.
    await expect(page.locator("[data-note]")).to_contain_text(
        "is published", timeout=2 * TRANSCODE_TIMEOUT_MS
    )
    await suits_everyone(page, "record-done")
    assert live_at_publication == [(await cuts_of(live_portal, video_id))["keep"]]
    # Each bound moves to the nearest frame.
    moved_s = pytest.approx(0, abs=MOST_MOVED_S + ROUNDING_S)
    [interval] = live_at_publication[0]
    assert interval["startSeconds"] - start_s == moved_s
    assert interval["endSeconds"] - end_s == moved_s
    duration_s = await duration_s_of(live_portal, video_id)
    length_s = interval["endSeconds"] - interval["startSeconds"]
    assert duration_s == pytest.approx(length_s, abs=ROUNDING_S)
    await address_of(page).click()
    await play_past(page, duration_s - 0.5)
    played_s = await page.locator("video").evaluate("(video) => video.duration")
    assert played_s == pytest.approx(duration_s, abs=MOST_MOVED_S)


@pytest.mark.complaint("status of 409")
async def test_recording_whose_cut_is_refused_is_not_published(
    page: Page, live_portal: LivePortal
) -> None:
    async def refuse(route: Route) -> None:
        problem = {"code": "storage_quota_exceeded", "detail": "There is no room."}
        if route.request.method == "PUT":
            await route.fulfill(status=409, json=problem)
        else:
            await route.continue_()

    await page.route("**/api/videos/*/cuts", refuse)
    changes = record_requests(page, "/access", method="PUT")
    await record_small_film(page, 2, "Camera")
    whole_s = await bounds_s(page)
    await handle(page, "Start").focus()
    await page.keyboard.press("Shift+ArrowRight")
    await choose_category(page)
    publish = page.get_by_role("button", name="Publish", exact=True)
    await publish.click()
    fault = page.locator("[data-submit-trouble]")
    await expect(fault).to_contain_text("so it isn", timeout=TRANSCODE_TIMEOUT_MS)
    assert changes == []
    # The whole recording is published once it is chosen again.
    await handle(page, "Start").focus()
    await page.keyboard.press("Home")
    assert await bounds_s(page) == whole_s
    await page.unroute("**/api/videos/*/cuts")
    await publish.click()
    await expect(page.locator("[data-note]")).to_contain_text("is published")
    assert len(changes) == 1
    assert (await cuts_of(live_portal, await video_id_of(page)))["liveKeep"] is None
