"""The player.js protocol: a site controls the player in its frame, and receives its events."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from embedding_site import SITE, tell, wait_until
from framing_site import framing_site, show_framed
from player_page import FILM_S, read, wait_for
from playwright.async_api import Page, expect
from running_portal import LivePortal, create, fresh_portal, process

METHODS = {
    "play",
    "pause",
    "getPaused",
    "mute",
    "unmute",
    "getMuted",
    "setVolume",
    "getVolume",
    "getDuration",
    "setCurrentTime",
    "getCurrentTime",
    "setLoop",
    "getLoop",
    "addEventListener",
    "removeEventListener",
    "getCaptions",
    "setCaptions",
}
EVENTS = {
    "ready",
    "play",
    "pause",
    "ended",
    "timeupdate",
    "progress",
    "seeked",
    "error",
    "captionschange",
}
CAPTIONS = "[data-player-captions]"
REFUSED_PLAYBACK = """HTMLMediaElement.prototype.play = () =>
    Promise.reject(new DOMException("No gesture of the viewer.", "NotAllowedError"));"""
# Each must change nothing, and stop nothing.
MALFORMED = [
    *("", "null", "7", "[]", "{", '"player.js"', '{"context": "player.js"}'),
    *('{"method": "play"}', '{"context": "other", "method": "play"}'),
    *(
        json.dumps({"context": "player.js", "method": method, "value": value})
        for method, value in [
            *((method, None) for method in (None, 7, ["play"], {}, "constructor", "__proto__")),
            *(("setVolume", value) for value in (-1, 101, "50", None, True, [50], {})),
            *(("setCurrentTime", value) for value in (-1, FILM_S + 9, "5", None, [5], 1e300)),
            *(("setLoop", value) for value in (1, "true", None)),
            *(("setCaptions", value) for value in ("xx", None, 7, ["en"])),
            *(("addEventListener", value) for value in ("constructor", None, {}, "nothing")),
            ("removeEventListener", "nothing"),
        ]
    ),
    '{"context": "player.js", "method": "setVolume", "value": 1e999}',
]
STATE = """Promise.all(["getPaused", "getVolume", "getMuted", "getCurrentTime", "getLoop",
    "getCaptions"].map(ask))"""
# Chromium gives frames of other sites no storage.
STORAGE = """
window.saved = {};
Object.defineProperty(window, "localStorage", { value: {
    getItem: (name) => saved[name] ?? null,
    setItem: (name, value) => { saved[name] = value; },
    removeItem: (name) => { delete saved[name]; },
} });
"""


@pytest.fixture
async def site_page(page: Page) -> Page:
    """Page whose sites have the script."""
    await page.add_init_script(SITE)
    return page


async def hear(page: Page, *events: str) -> None:
    for event in events:
        await tell(page, "addEventListener", event)


async def values(page: Page, event: str) -> list[Any]:
    heard: list[Any] = await page.evaluate("(event) => valuesOf(event)", event)
    return heard


async def test_site_controls_the_player_and_receives_its_events(
    site_page: Page, live_portal: LivePortal, film: str
) -> None:
    page = site_page
    await page.add_init_script(STORAGE)
    embed = f"{live_portal.base_url}/embed/{film}?t=3"
    async with framing_site() as site:
        frame = await show_framed(page, site, embed)
        await wait_until(page, "valuesOf('ready').length === 1")
        [ready] = await values(page, "ready")
        assert ready["src"] == embed
        assert set(ready["methods"]) == METHODS
        assert set(ready["events"]) == EVENTS
        # Nothing else is sent without a listener.
        assert len(await page.evaluate("received")) == 1
        assert await page.evaluate("ask('getCurrentTime')") == pytest.approx(3, abs=0.1)
        assert await page.evaluate("ask('getDuration')") == pytest.approx(FILM_S, abs=0.2)

        await hear(page, *EVENTS - {"ready"})
        await tell(page, "mute")
        await tell(page, "setVolume", 30)
        await tell(page, "play")
        await wait_until(page, "valuesOf('timeupdate').some(({ seconds }) => seconds > 3.2)")
        assert await page.evaluate(
            "Promise.all(['getPaused', 'getMuted', 'getVolume'].map(ask))"
        ) == [
            False,
            True,
            30,
        ]
        assert await read(frame, "[video.muted, video.volume]") == [True, 0.3]
        # What the site chooses isn't saved as a choice of the viewer.
        assert "portal.player" not in await frame.evaluate("saved")
        assert await values(page, "play")
        assert all(value["duration"] > FILM_S - 0.2 for value in await values(page, "progress"))
        await tell(page, "pause")
        await wait_until(page, "valuesOf('pause').length === 1 && await ask('getPaused')")
        await tell(page, "unmute")
        await wait_for(frame, "!video.muted")
        await frame.locator("media-mute-button").press("Enter")
        await wait_for(frame, "saved['portal.player']?.includes('\"isMuted\":true')")

        await tell(page, "setCurrentTime", 12.5)
        await wait_until(page, "valuesOf('seeked').at(-1)?.seconds === 12.5")
        assert await read(frame, "video.currentTime") == 12.5
        await tell(page, "setCaptions", "de")
        await wait_until(page, "valuesOf('captionschange').at(-1) === 'de'")
        await expect(frame.locator(CAPTIONS)).to_have_text("Guten Morgen.")
        await frame.locator("media-captions-button").press("Enter")
        await wait_until(page, "valuesOf('captionschange').at(-1) === ''")
        await tell(page, "setCaptions", "en")
        await expect(frame.locator(CAPTIONS)).to_have_text("Good morning.")
        assert await page.evaluate("ask('getCaptions')") == "en"
        await tell(page, "setCaptions", "")
        await wait_until(page, "valuesOf('captionschange').at(-1) === ''")

        await tell(page, "removeEventListener", "play")
        await tell(page, "setCurrentTime", FILM_S - 0.5)
        await tell(page, "mute")
        await tell(page, "play")
        await wait_until(page, "valuesOf('ended').length === 1")
        assert len(await values(page, "play")) == 1
        await tell(page, "setLoop", True)
        assert await page.evaluate("ask('getLoop')")
        await tell(page, "setCurrentTime", FILM_S - 0.5)
        await tell(page, "play")
        await wait_until(page, "await ask('getCurrentTime') < 5 && !await ask('getPaused')")
        assert len(await values(page, "ended")) == 1
        assert await values(page, "error") == []


async def test_late_site_gets_ready_and_other_windows_are_ignored(
    page: Page, live_portal: LivePortal, film: str
) -> None:
    async with framing_site() as site:
        frame = await show_framed(page, site, f"{live_portal.base_url}/embed/{film}")
        await wait_for(frame, "video?.readyState >= 2")
        await page.evaluate(f"() => {{ {SITE} }}")
        assert await page.evaluate("received") == []
        await tell(page, "addEventListener", "ready", "late")
        await wait_until(page, "received.some(({ listener }) => listener === 'late')")
        await tell(page, "setVolume", 40)
        before = await page.evaluate(STATE)
        assert before == [True, 40, False, 0, False, ""]
        await page.evaluate(
            "(texts) => texts.forEach((text) => frames[0].postMessage(text, '*'))", MALFORMED
        )
        await page.evaluate("frames[0].postMessage({ context: 'player.js', method: 'play' }, '*')")
        play = """(frame) => frame.postMessage(
            '{"context": "player.js", "method": "setVolume", "value": 1}', "*")"""
        # A message has the window whose script sends it as its source.
        await page.evaluate(
            """(send) => {
                const other = document.body.appendChild(document.createElement("iframe"));
                other.contentWindow.eval(`(${send})`)(frames[0]);
            }""",
            play,
        )
        await frame.evaluate(f"({play})(window)")
        assert await page.evaluate(STATE) == before

        await hear(page, "error")
        await tell(page, "fly")
        await wait_until(page, "valuesOf('error').length")
        assert await values(page, "error") == [{"code": 2, "msg": "method"}]


async def test_refused_playback_is_an_error(
    site_page: Page, live_portal: LivePortal, film: str
) -> None:
    page = site_page
    await page.add_init_script(REFUSED_PLAYBACK)
    async with framing_site() as site:
        await show_framed(page, site, f"{live_portal.base_url}/embed/{film}")
        await wait_until(page, "valuesOf('ready').length")
        await hear(page, "error", "play")
        await tell(page, "play")
        await wait_until(page, "valuesOf('error').length")
        assert await values(page, "error") == [{"code": -1, "msg": "autoplay"}]
        assert await values(page, "play") == []
        assert await page.evaluate("ask('getPaused')")


async def test_clip_has_the_times_of_the_player(
    site_page: Page, live_portal: LivePortal, film: str
) -> None:
    page = site_page
    clip = quote(f"{live_portal.base_url}/embed/{film}?start=4.5&end=6")
    async with framing_site() as site:
        await show_framed(page, site, clip)
        await wait_until(page, "valuesOf('ready').length")
        assert await page.evaluate("ask('getCurrentTime')") == pytest.approx(4.5, abs=0.05)
        assert await page.evaluate("ask('getDuration')") == 6
        await hear(page, "pause", "ended", "seeked")
        await tell(page, "setCurrentTime", 5.5)
        await wait_until(page, "valuesOf('seeked').at(-1)?.seconds === 5.5")
        await tell(page, "setCurrentTime", 20)
        await tell(page, "setCurrentTime", 1)
        await wait_until(page, "valuesOf('seeked').at(-1)?.seconds === 4.5")
        await tell(page, "mute")
        await tell(page, "play")
        await wait_until(page, "valuesOf('ended').length === 1")
        assert len(await values(page, "pause")) == 1
        assert await page.evaluate("ask('getCurrentTime')") == pytest.approx(6, abs=0.05)
        await tell(page, "setLoop", True)
        await hear(page, "timeupdate")
        await tell(page, "play")
        # It begins again after its end.
        times = "valuesOf('timeupdate').map(({ seconds }) => seconds)"
        await wait_until(page, f"{times}.some((time, at, all) => time < 5 && all[at - 1] > 5.8)")
        assert len(await values(page, "ended")) == 1


@pytest.mark.slow
async def test_player_of_a_processed_video_becomes_ready(
    site_page: Page, services: dict[str, str], short_video: Any
) -> None:
    page = site_page
    async with fresh_portal(services) as portal, framing_site() as site:
        video_id = (await create(portal.base_url, short_video))["id"]
        frame = await show_framed(page, site, f"{portal.base_url}/embed/{video_id}")
        await expect(frame.get_by_role("heading")).to_have_text("This video is being processed")
        assert await values(page, "ready") == []
        async with process("worker", portal.environ):
            await wait_until(page, "valuesOf('ready').length === 1")
        assert await page.evaluate("ask('getDuration')") > 0
