"""The player when things go wrong, when qualities come later, and with copied renditions."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from chromium import TRANSCODE_TIMEOUT_MS, hold_requests, play_past
from passes import make_source
from player_page import open_player, read, wait_for
from playwright.async_api import Page, Route, expect
from running_portal import LivePortal, create, process

# Browsers report each address that failed.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("Failed to load resource")]

SEGMENTS = "**/*.m4s*"
NO_MEDIA_SOURCE = """
for (const name of ["MediaSource", "ManagedMediaSource", "WebKitMediaSource"]) delete window[name];
"""
# hls.js nudges the decoder of a busy machine by a tenth of a second, which is no interruption.
INTERRUPTIONS = """() => {
    window.interruptions = [];
    const video = document.querySelector("video");
    let shown_s = video.currentTime;
    video.addEventListener("timeupdate", () => { shown_s = video.currentTime; });
    for (const name of ["emptied", "seeking", "error", "pause"]) {
        video.addEventListener(name, () => {
            const isNudge = name === "seeking" && Math.abs(video.currentTime - shown_s) < 1;
            if (!isNudge) window.interruptions.push([name, video.currentTime]);
        });
    }
}"""


async def test_wait_for_the_stream_is_shown_until_it_continues(page: Page, film: str) -> None:
    await open_player(page, f"/videos/{film}")
    loading = page.locator("media-controller").get_by_role("status").filter(has_text="Loading")
    await expect(loading).to_have_count(1)
    text = loading.locator("span")
    await expect(text).to_be_hidden()
    may_go_on = await hold_requests(page, SEGMENTS)
    await read(page, "void ((video.muted = true), (video.currentTime = 20), video.play())")
    await expect(text).to_be_visible()
    waiting = page.locator("[data-player-waiting]")
    # A busy machine may show the first text only after hls.js has given up its first request.
    await expect(waiting).to_have_text(re.compile("Waiting for the video…|Reconnecting…"))
    await expect(waiting).to_be_visible()
    may_go_on.set()
    await expect(text).to_be_hidden()
    await expect(waiting).to_be_empty()
    await play_past(page, 20.3)


@pytest.mark.parametrize(
    ("address", "answer", "words"),
    [
        ("**/*.m3u8", None, "The connection was lost"),
        (SEGMENTS, None, "Reconnecting…"),
        ("**/*.m3u8", {"status": 404}, "This video isn’t available"),  # noqa: RUF001
        ("**/init.mp4*", {"body": b"\0" * 900}, "couldn’t decode"),  # noqa: RUF001
    ],
)
async def test_error_is_shown_until_an_automatic_or_manual_retry_succeeds(
    page: Page, film: str, address: str, answer: dict[str, Any] | None, words: str
) -> None:
    await page.route(
        address, lambda route: route.abort() if answer is None else route.fulfill(**answer)
    )
    await page.goto(f"/videos/{film}")
    messages = page.locator("[data-player-trouble], [data-player-waiting]")
    trouble = messages.filter(has_text=words)
    await expect(trouble).to_be_visible()
    await page.unroute(address)
    if answer is not None:
        await trouble.get_by_role("button", name="Try again").click()
    await expect(trouble).to_be_hidden()
    await play_past(page, 0.3)


async def test_expired_addresses_are_fetched_again(page: Page, film: str) -> None:
    refused = []

    async def refuse_once(route: Route) -> None:
        if len(refused) < 2:
            refused.append(route.request.url)
            await route.fulfill(status=403)
        else:
            await route.continue_()

    await page.route("**/00000.m4s*", refuse_once)
    await page.goto(f"/videos/{film}")
    await play_past(page, 1)
    assert len(refused) == 2
    await expect(page.locator("[data-player-trouble]")).to_be_hidden()


async def test_part_of_a_segment_in_the_cache_is_fetched_again(page: Page, film: str) -> None:
    parts = itertools.cycle([b"\0", b"\0\0\x10\0mdat", b""])
    requested = set()

    async def answer_with_a_part_once(route: Route) -> None:
        if route.request.url in requested:
            await route.continue_()
        else:
            requested.add(route.request.url)
            await route.fulfill(body=next(parts), headers={"Cache-Control": "max-age=31536000"})

    await page.route(re.compile(r"/(init\.mp4|\w+\.m4s)"), answer_with_a_part_once)
    await page.goto(f"/videos/{film}")
    # Loading a stream sets the rate to the default one.
    await wait_for(page, "(video.playbackRate = video.defaultPlaybackRate = 8)")
    await play_past(page, 13)
    assert len([url for url in requested if "init.mp4" in url]) >= 2
    assert len([url for url in requested if ".m4s" in url]) >= 2
    await expect(page.locator("[data-player-trouble]")).to_be_hidden()


async def test_browser_without_media_source_plays_the_stream_itself(page: Page, film: str) -> None:
    await page.add_init_script(NO_MEDIA_SOURCE)
    await page.goto(f"/videos/{film}?t=3")
    await wait_for(page, "video.src.endsWith('/master.m3u8') && video.currentTime >= 3")
    # Chromium's own HLS sometimes fails to decode sound after a seek, so play from the beginning.
    await page.goto(f"/videos/{film}")
    await play_past(page, 0.3)


async def test_browser_that_cannot_stream_gets_a_link_to_the_stream(page: Page, film: str) -> None:
    await page.add_init_script(NO_MEDIA_SOURCE)
    await page.add_init_script('HTMLMediaElement.prototype.canPlayType = () => "";')
    await page.goto(f"/videos/{film}")
    trouble = page.locator("[data-player-trouble]")
    await expect(trouble).to_contain_text("This browser can’t play the video")  # noqa: RUF001
    await expect(trouble.get_by_role("link", name="Open the stream")).to_be_visible()


@pytest.mark.soak
async def test_added_qualities_are_adopted_during_playback(
    portal: LivePortal, page: Page, tmp_path: Path
) -> None:
    # The film can be copied, so it plays before the lower qualities are encoded.
    film = make_source(tmp_path / "film.mp4", "-g", "20", seconds=60, size="854x480", rate=5)
    video_id = (await create(portal.base_url, film))["id"]
    await page.goto(f"{portal.base_url}/embed/{video_id}")
    await expect(page.get_by_role("heading")).to_have_text("This video is being processed")
    async with process("worker", portal.environ):
        await wait_for(page, "video?.readyState >= 2")

    await open_player(page, f"{portal.base_url}/videos/{video_id}")
    remaining = page.locator("#remaining")
    await expect(remaining).to_contain_text("240p")
    before = await read(page, "video.videoRenditions.length")
    player = await page.locator("video").element_handle()
    assert player is not None
    await play_past(page, 0.5)
    await wait_for(page, "video.buffered.length && video.buffered.end(0) > 20")
    await page.evaluate(INTERRUPTIONS)

    async with process("worker", portal.environ):
        await expect(remaining).to_be_hidden(timeout=TRANSCODE_TIMEOUT_MS)

    assert await player.evaluate("video => video.isConnected"), "the player was replaced"
    await wait_for(page, f"video.videoRenditions.length > {before}")
    at_s = await read(page, "video.currentTime")
    await wait_for(page, f"video.currentTime > {at_s + 1}")
    assert await page.evaluate("window.interruptions") == []
    await read(page, "void (video.videoRenditions.selectedIndex = 0)")
    await wait_for(page, "Math.abs(video.videoHeight - 240) <= 4")
