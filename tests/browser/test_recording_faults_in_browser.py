"""Faults during a recording: each ends with a film or a plain sentence, never with a lost take."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from chromium import OWNER, PASSWORD, OpenPage
from playwright.async_api import Browser, ConsoleMessage, Page, Route, expect
from record_page import (
    address_of,
    capturing_browser,
    choose_sources,
    duration_s_of,
    open_recorder,
    record_past,
    slow_down_processor,
    video_id_of,
)
from running_portal import LivePortal

# Devices that pages open, so that a test can unplug them.
KEEP_STREAMS = """
const open = navigator.mediaDevices?.getUserMedia.bind(navigator.mediaDevices);
globalThis.streams = [];
if (open) navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = await open(wanted);
    streams.push(stream);
    return stream;
};
const share = navigator.mediaDevices?.getDisplayMedia.bind(navigator.mediaDevices);
if (share) navigator.mediaDevices.getDisplayMedia = async (wanted) => {
    globalThis.screen_ = await share(wanted);
    return screen_;
};
"""
FAIL_AT_FLUSH = """
let flushes = 0;
const flush = FileSystemSyncAccessHandle.prototype.flush;
FileSystemSyncAccessHandle.prototype.flush = function () {
    if ((flushes += 1) > 3) throw new DOMException("no space", "InvalidStateError");
    flush.call(this);
};
"""
UNPLUG_LAST = "() => streams.at(-1).getTracks()[0].dispatchEvent(new Event('ended'))"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with capturing_browser() as browser:
        yield browser


@pytest.fixture
async def page(open_page: OpenPage) -> Page:
    page = await open_page()
    await slow_down_processor(page)
    await page.add_init_script(KEEP_STREAMS)
    return page


# Browsers log refused requests as errors.
@pytest.mark.slow
@pytest.mark.complaint("status of (401|409)")
async def test_session_that_ends_during_a_recording_keeps_the_take(owner: Page) -> None:
    await slow_down_processor(owner)
    await open_recorder(owner)
    await choose_sources(owner, "Camera", "Microphone")
    await record_past(owner, 4)
    headers = {"Origin": str(await owner.evaluate("location.origin"))}
    assert (await owner.context.request.post("/sign-out", headers=headers)).ok
    await owner.keyboard.press("s")
    dialog = owner.get_by_role("dialog", name="Sign in again")
    await dialog.wait_for()
    await owner.keyboard.press("Escape")
    sending = owner.locator("[data-sending]")
    await expect(sending).to_contain_text("The recording is kept on this computer.")
    await expect(sending).to_contain_text("You are signed out. Sign in to continue.")
    await expect(owner.get_by_role("link", name="Save a copy")).to_be_visible()
    await owner.get_by_role("button", name="Try again", exact=True).click()
    await dialog.get_by_label("Email address").fill(OWNER)
    await dialog.get_by_role("textbox", name="Password").fill(PASSWORD)
    await dialog.get_by_role("button", name="Sign in", exact=True).click()
    await expect(address_of(owner)).to_be_visible()


@pytest.mark.slow
async def test_two_tabs_record_at_once(page: Page, live_portal: LivePortal) -> None:
    other = await page.context.new_page()
    for tab in (page, other):
        await open_recorder(tab)
        await choose_sources(tab, "Camera", "Microphone")
    await asyncio.gather(*(record_past(tab, 4) for tab in (page, other)))
    ids = []
    for tab in (page, other):
        await tab.keyboard.press("s")
        await expect(address_of(tab)).to_be_visible()
        ids.append(await video_id_of(tab))
    assert len(set(ids)) == 2
    for video_id in ids:
        assert await duration_s_of(live_portal, video_id) >= 3
    # Neither tab takes the recording of the other.
    await expect(page.get_by_role("button", name="Continue with")).to_have_count(0)


async def test_unplugged_devices_are_named_and_what_was_recorded_is_kept(page: Page) -> None:
    await open_recorder(page)
    await choose_sources(page, "Camera", "Microphone")
    warnings = page.locator("[data-warnings] li")
    await record_past(page, 3)
    await page.evaluate(UNPLUG_LAST)
    await expect(warnings).to_have_text(re.compile("^The microphone was unplugged. Choose another"))
    await choose_sources(page, "Microphone")
    await expect(warnings).to_have_count(0)
    await page.evaluate("streams.reverse()")
    await page.evaluate(UNPLUG_LAST)
    await expect(address_of(page)).to_be_visible()
    await expect(warnings).to_have_text(
        ["The camera was unplugged, so the recording has stopped. What was recorded is kept."]
    )


@pytest.mark.slow
async def test_camera_can_be_hidden_after_the_screen_has_ended(page: Page) -> None:
    await open_recorder(page)
    await choose_sources(page, "Screen, window or tab", "Camera")
    await record_past(page, 1)
    await page.evaluate("() => screen_.getVideoTracks()[0].dispatchEvent(new Event('ended'))")
    await expect(page.locator("[data-warnings] li")).to_have_text(
        "The screen is no longer shared. The recording goes on without it."
    )
    await expect(page.get_by_role("group", name="Camera in the picture")).to_be_hidden()
    await page.keyboard.press("c")
    await expect(page.get_by_role("button", name="Hide camera", pressed=True)).to_be_visible()
    await page.keyboard.press("s")
    await expect(address_of(page)).to_be_visible()


async def test_camera_that_ends_while_the_page_counts_down_starts_no_recording(page: Page) -> None:
    await open_recorder(page)
    await choose_sources(page, "Camera")
    await page.keyboard.press("r")
    await expect(page.locator("[data-countdown]")).to_be_visible()
    await page.evaluate(UNPLUG_LAST)
    await expect(page.locator("[data-warnings]")).to_contain_text("no picture came")
    await expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()


@pytest.mark.slow
async def test_disk_that_is_full_from_the_beginning_is_named(page: Page) -> None:
    await open_recorder(page)
    await choose_sources(page, "Camera")
    session = await page.context.new_cdp_session(page)
    origin = await page.evaluate("() => origin")
    await session.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 1})
    await page.keyboard.press("r")
    await expect(page.locator("[data-warnings]")).to_contain_text(
        re.compile("no space left|keeps no files")
    )
    await expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()


# The worker's error, which is meant, is logged.
@pytest.mark.slow
@pytest.mark.complaint("no space")
async def test_disk_that_fails_is_named_and_a_reload_continues(page: Page) -> None:
    script = re.compile(r"/spool-\w+\.js$")

    async def fail_later(route: Route) -> None:
        response = await route.fetch()
        body = await response.text() + FAIL_AT_FLUSH
        await route.fulfill(response=response, body=body)

    await page.route(script, fail_later)
    await open_recorder(page)
    await choose_sources(page, "Camera")
    await record_past(page, 4)
    await page.keyboard.press("s")
    warnings = page.locator("[data-warnings]")
    await expect(warnings).to_contain_text("Then reload this page to continue")
    await expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()
    await page.unroute(script)
    await page.reload()
    await page.get_by_role("button", name="Continue with what was recorded").click()
    await expect(address_of(page)).to_be_visible()


@pytest.mark.slow
async def test_console_stays_empty_during_a_recording(page: Page) -> None:
    messages: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("warning", "error"):
            messages.append(message.text)

    page.on("console", note)
    await open_recorder(page)
    await choose_sources(page, "Screen, window or tab", "Camera", "Microphone")
    session = await page.context.new_cdp_session(page)
    await record_past(page, 15)
    # Chromium reports a frame that was not closed when it is collected.
    await session.send("HeapProfiler.collectGarbage")
    await page.keyboard.press("s")
    await expect(address_of(page)).to_be_visible()
    await session.send("HeapProfiler.collectGarbage")
    await page.evaluate("() => new Promise((resolve) => requestAnimationFrame(resolve))")
    assert messages == []
