"""The player when things go wrong: it goes on by itself, or says what happened in plain words."""

import pytest
from chromium import OpenPage, hold_requests, photograph, photograph_at_widths, play_past
from player_page import NO_MEDIA_SOURCE, open_player, read, wait_for
from playwright.async_api import Page, Route, expect

# Browsers report each address that failed.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("Failed to load resource")]

SEGMENTS = "**/*.m4s*"


async def test_goes_on_by_itself_when_segments_failed_for_a_while(page: Page, film: str) -> None:
    refused = []

    async def refuse(route: Route) -> None:
        refused.append(route.request.url)
        await route.abort()

    await page.route(SEGMENTS, refuse)
    await page.goto(f"/videos/{film}")
    waiting = page.locator("[data-player-waiting]")
    await expect(waiting).to_be_visible()
    await expect(waiting).to_have_text("Reconnecting…")
    await photograph(page, "player-reconnecting")
    await page.unroute(SEGMENTS)
    # The next try may be a quarter of a minute away.
    await play_past(page, 1)
    assert refused
    await expect(waiting).to_be_hidden()
    await expect(page.locator("[data-player-trouble]")).to_be_hidden()


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
async def test_wait_for_the_stream_is_shown_until_it_goes_on(
    open_page: OpenPage, film: str, motion: str
) -> None:
    page = await open_page(reduced_motion=motion)
    await open_player(page, f"/videos/{film}")
    loading = page.locator("media-controller").get_by_role("status").filter(has_text="Loading")
    await expect(loading).to_have_count(1)
    shown = loading.locator("span")
    await expect(shown).to_be_hidden()
    may_go_on = await hold_requests(page, SEGMENTS)
    await read(page, "void ((video.muted = true), (video.currentTime = 20), video.play())")
    await expect(shown).to_be_visible()
    count = await shown.evaluate("it => it.getAnimations().length")
    assert count == (0 if motion == "reduce" else 1)
    waiting = page.locator("[data-player-waiting]")
    await expect(waiting).to_have_text("Waiting for the video…", timeout=5_000)
    await expect(waiting).to_be_visible()
    await photograph_at_widths(page, f"player-loading-{motion}")
    may_go_on.set()
    await expect(shown).to_be_hidden()
    await expect(waiting).to_be_empty()
    await play_past(page, 20.3)


async def test_stream_out_of_reach_is_asked_for_again_and_found_by_itself(
    page: Page, film: str
) -> None:
    await page.route("**/*.m3u8", lambda route: route.abort())
    await page.goto(f"/videos/{film}")
    trouble = page.locator("[data-player-trouble]")
    await expect(trouble).to_contain_text("The connection was lost")
    async with page.expect_request("**/master.m3u8"):
        await trouble.get_by_role("button", name="Try again").click()
    await page.unroute("**/*.m3u8")
    await expect(trouble).to_be_hidden()
    await play_past(page, 0.3)


async def test_video_that_is_gone_is_told_from_one_out_of_reach(page: Page, film: str) -> None:
    await page.route("**/*.m3u8", lambda route: route.fulfill(status=404))
    await page.goto(f"/videos/{film}")
    trouble = page.locator("[data-player-trouble]")
    await expect(trouble).to_contain_text("This video isn’t available")  # noqa: RUF001
    await page.unroute("**/*.m3u8")
    await trouble.get_by_role("button", name="Check again").click()
    await expect(trouble).to_be_hidden()
    await play_past(page, 0.3)


async def test_data_that_cannot_be_decoded_is_told_apart(page: Page, film: str) -> None:
    await page.route("**/init.mp4*", lambda route: route.fulfill(status=200, body=b"\x00" * 900))
    await page.goto(f"/videos/{film}")
    trouble = page.locator("[data-player-trouble]")
    await expect(trouble).to_contain_text("couldn’t decode")  # noqa: RUF001
    await photograph_at_widths(page, "player-trouble")


async def test_expired_addresses_are_fetched_anew(page: Page, film: str) -> None:
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


async def test_browser_without_media_source_is_given_the_stream_itself(
    open_page: OpenPage, film: str
) -> None:
    page = await open_page()
    await page.add_init_script(NO_MEDIA_SOURCE)
    await page.goto(f"/videos/{film}?t=3")
    if await read(page, "video.canPlayType('application/vnd.apple.mpegurl')"):
        await wait_for(page, "video.src.endsWith('/master.m3u8') && video.currentTime >= 3")
        await play_past(page, 3.3)
        await expect(page.locator("media-play-button").first).to_be_attached()
    else:
        trouble = page.locator("[data-player-trouble]")
        await expect(trouble).to_contain_text("This browser can’t play the video")  # noqa: RUF001
        await expect(trouble.get_by_role("link", name="Open the stream")).to_be_visible()
