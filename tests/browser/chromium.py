"""Helpers of the browser tests: playing, requests, accessibility, screenshots."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import aiohttp
import pytest
from front_end import in_turn, install_tools
from playwright.async_api import Locator, Page, Request, Route, expect
from running_portal import create

OpenPage = Callable[..., Awaitable[Page]]
Publish = Callable[..., Awaitable[str]]

# Accounts of a portal's owner and of an editor, with their password.
OWNER = "ann@example.org"
EDITOR = "ed@example.org"
PASSWORD = "four calm green boats"
# Address that lists the `ready_video`; others may fill the first page of the library.
READY_SEARCH = "/?q=A+ready+video"
# Only a failure takes this long, even on a busy machine.
TIMEOUT_MS = 120_000
# Limit for waits that include a transcode; ffmpeg has the lowest priority.
TRANSCODE_TIMEOUT_MS = 180_000
# Factor by which Chromium slows its work, to find what depends on a fast machine.
CPU_SLOWDOWN = float(os.environ.get("PORTAL_CPU_SLOWDOWN", "1"))
# Ends finite animations: transitions of colours, and panels that open. The end of one can begin
# another, of inherited colours. Chromium would never end those of a page that it doesn't draw.
FINISH_ANIMATIONS = """() => {
    const running = () => document.getAnimations().filter(({ effect, playState }) =>
        playState === "running" && effect.getComputedTiming().endTime < Infinity);
    for (let left = running(); left.length; left = running()) {
        for (const animation of left) animation.finish();
    }
}"""
# Playback of the element, to explain why it does not go on.
PLAYBACK_STATE = """(video) => ({
    position: video.currentTime, readyState: video.readyState, networkState: video.networkState,
    paused: video.paused, seeking: video.seeking, error: video.error?.message, src: video.src,
    hidden: document.hidden, buffered: Array.from({ length: video.buffered.length },
        (_, index) => [video.buffered.start(index), video.buffered.end(index)]),
})"""
# Controls below 44 px, by the area that takes the press (a label, for a hidden box). Links within
# text are as high as its lines, and names in a list open by all of their line.
SMALL_TARGETS = """() => [...document.querySelectorAll("button:not([data-open]), select, summary, "
    + "input:not([type=hidden]), textarea, [role=option], nav a, a.button")]
    .map((element) => element.matches("input:is([type=checkbox], [type=radio], [type=file])")
        ? element.closest("label") ?? element : element)
    .filter((element) => element.checkVisibility(
        { visibilityProperty: true, opacityProperty: true }))
    .filter((element) => !element.closest("media-controller, .visually-hidden"))
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([, box]) => box.height && (box.height < 44 || box.width < 44))
    .map(([element, box]) => `${element.outerHTML.slice(0, 90)} ${box.width} x ${box.height}`)"""
# Screenshots take a third of the time of an accessibility check.
SAVES_SCREENSHOTS = bool(os.environ.get("PORTAL_SCREENSHOTS"))
SCREENSHOTS = Path(__file__).with_name("screenshots")
WIDTHS = (320, 768, 1440)
SCREENSHOT_WIDTHS = (360, 1440)
# Rules of axe-core whose result depends on colours.
COLOUR_RULES = ("color-contrast", "link-in-text-block")


def find_or_install(package: str, *names: str) -> str | None:
    """Return the path of a program, installed from Debian's package if needed."""
    with in_turn():
        if not any(map(shutil.which, names)) and shutil.which("apt-get") and os.geteuid() == 0:
            run("apt-get", "update")
            run("apt-get", "install", "--yes", package)
        return next(filter(None, map(shutil.which, names)), None)


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


async def play_past(page: Page, position_s: float, *, timeout_s: float = 120) -> None:
    """Play the page's video, muted, until its clock has passed this position."""
    playing = page.locator("video").evaluate(
        """async (video, position) => {
            video.muted = true;
            const event = (name) => new Promise((resolve) =>
                video.addEventListener(name, resolve, { once: true }));
            // While the player opens its stream play() would be rejected.
            if (video.readyState < 1) await event("loadedmetadata");
            await video.play();
            while (video.currentTime <= position) await event("timeupdate");
        }""",
        position_s,
    )
    try:
        await asyncio.wait_for(playing, timeout_s)
    except TimeoutError:
        state = await page.locator("video").evaluate(PLAYBACK_STATE)
        pytest.fail(f"After {timeout_s} s the video has not passed {position_s} s: {state}")


def record_requests(page: Page, part: str = "", *, method: str = "") -> list[str]:
    """Return a growing list of requested URLs with this part and method."""
    urls: list[str] = []

    def note(request: Request) -> None:
        if part in request.url and method in request.method:
            urls.append(request.url)

    page.on("request", note)
    return urls


async def hold_requests(page: Page, address: str | re.Pattern[str]) -> asyncio.Event:
    """Hold the page's requests to an address until the returned event is set."""
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await page.route(address, hold)
    return released


async def axe_findings(page: Page, *rules: str, part: str = "html") -> list[str]:
    """Return the violations of these rules of axe-core, by default all.

    `part` is the selector of the element that is examined.
    """
    axe = install_tools() / "axe-core" / "axe.min.js"
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(axe.read_text(encoding="utf-8"))
    # Colours between two states may lack contrast.
    await page.evaluate(FINISH_ANIMATIONS)
    options: dict[str, object] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = rules
    result = await page.evaluate("arguments => axe.run(...arguments)", [part, options])
    return [
        f"{violation['id']}: {[node['html'] for node in violation['nodes']]}"
        for violation in result["violations"]
    ]


async def fits(page: Page, name: str, widths: Sequence[int] = WIDTHS) -> None:
    """Check that the page is not wider than the window, at these widths."""
    for width in widths:
        await page.set_viewport_size({"width": width, "height": 900})
        # Without motion, styles that depend on the width still take a moment to change.
        await page.evaluate(FINISH_ANIMATIONS)
        surplus = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert surplus <= 0, f"{name} at {width} px: {surplus} px too wide"


async def suits_everyone(page: Page, name: str, *, part: str = "html") -> None:
    """Check that nothing is cut off and axe finds no violations; save screenshots if asked for.

    `part` is the selector of the element that axe examines. axe takes seconds for a workshop, so
    the state of one of its panels is examined alone.

    The dark scheme has other colours and the same layout, so only its colours are checked.
    """
    # Chromium takes seconds to photograph a page behind another.
    await page.bring_to_front()
    # The font in place of one that is still loading has other widths.
    await page.evaluate("document.fonts.ready.then(() => {})")
    await page.emulate_media(color_scheme="light")
    await fits(page, name)
    await save_screenshots(page, f"{name}-light")
    findings = await axe_findings(page, part=part)
    await page.emulate_media(color_scheme="dark")
    await save_screenshots(page, f"{name}-dark")
    findings += await axe_findings(page, *COLOUR_RULES, part=part)
    assert findings == [], f"{name}: {findings}"


async def save_screenshots(page: Page, name: str) -> None:
    """Save the page as seen on a phone and on a desktop, if screenshots are asked for."""
    for width in SCREENSHOT_WIDTHS if SAVES_SCREENSHOTS else ():
        await page.set_viewport_size({"width": width, "height": 900})
        await page.screenshot(path=SCREENSHOTS / f"{name}-{width}.png", full_page=True)


async def publish_file(portal_url: str, path: Path, title: str) -> str:
    """Publish a file through the API, and return the video's id."""
    details = {"categoryIds": [1, 2], "tags": "test, browser"}
    return str((await create(portal_url, path, title=title, **details))["id"])


async def make_series(portal_url: str, title: str, video_ids: Sequence[str]) -> str:
    """Make a series of videos through the API, and return its id."""
    async with aiohttp.ClientSession(portal_url) as session:
        async with session.post("/api/series", json={"title": title}) as response:
            series_id = str((await response.json())["id"])
        videos = {"json": {"videoIds": list(video_ids)}, "headers": {"If-Match": "*"}}
        async with session.put(f"/api/series/{series_id}/videos", **videos) as response:
            assert response.status == 200, await response.text()
    return series_id


async def save_panel(page: Page, panel_id: str) -> None:
    """Save the form of a panel of the workshop, and wait until the panel says so."""
    panel = page.locator(f"#{panel_id}")
    button = panel.get_by_role("button", name="Save")
    async with page.expect_response(f"**/{panel_id}/panel"):
        await button.click()
    await expect(panel.get_by_text("Saved.")).to_be_visible()
    await expect(button).to_be_focused()


async def open_workshop(page: Page, address: str, form: str) -> Locator:
    """Open a video's workshop, wait for its scripts, and return one of its forms."""
    await page.goto(f"{address}/edit")
    await page.wait_for_load_state("networkidle")
    return page.get_by_role("form", name=form)
