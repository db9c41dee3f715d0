"""What the browser tests share besides fixtures: the browser, and a record of its complaints."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from front_end import install_tools
from playwright.async_api import ConsoleMessage, Error, Locator, Page, Request, Route
from running_portal import create

OpenPage = Callable[..., Awaitable[Page]]
Publish = Callable[..., Awaitable[str]]

# Finds the `ready_video`: videos of other tests may fill the first page of the whole library.
READY_SEARCH = "/?q=A+ready+video"
PLAY_TIMEOUT_S = 180
# Only a failure waits that long, also where the machine has other things to do.
TIMEOUT_MS = 120_000
# The same where a video is made first: ffmpeg has the lowest priority.
TRANSCODE_TIMEOUT_MS = 180_000
# Infinite ones go on; the others are colours that change over, and panels that open.
AWAIT_ANIMATIONS = """async () => {
    const ending = () => document.getAnimations().filter((it) =>
        it.playState === "running" && it.effect.getComputedTiming().endTime < Infinity);
    while (ending().length) await Promise.allSettled(ending().map((it) => it.finished));
}"""
SCREENSHOTS = Path(__file__).with_name("screenshots")
WIDTHS = (320, 360, 768, 1440)
SCREENSHOT_WIDTHS = (360, 1440)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]


@dataclass
class Complaints:
    """What pages wrote to the console as an error, or threw; policy violations are among them."""

    expected: list[str]
    """Patterns of what a test makes browsers say."""
    messages: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", self._page_error)

    def unexpected(self) -> list[str]:
        return [
            message
            for message in self.messages
            if not any(re.search(pattern, message) for pattern in self.expected)
        ]

    def _page_error(self, error: Error) -> None:
        self.messages.append(f"page error: {error}\n{error.stack or ''}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.messages.append(f"console: {message.text}")


def find_chromium() -> str | None:
    """Path of a browser that is installed already."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def run(*command: str) -> None:
    """Run a command to its end, or fail."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


async def play_past(page: Page, position_s: float, *, timeout_s: float = PLAY_TIMEOUT_S) -> None:
    """Play the page's video, muted, until its clock has passed this position."""
    async with asyncio.timeout(timeout_s):
        await page.locator("video").evaluate(
            """async (video, position) => {
                video.muted = true;
                const has = (name) => new Promise((resolve) =>
                    video.addEventListener(name, resolve, { once: true }));
                // A player that is still (re)opening its stream would break play() off.
                if (video.readyState < 1) await has("loadedmetadata");
                await video.play();
                await new Promise((resolve) => {
                    const check = () => video.currentTime > position && resolve();
                    video.addEventListener("timeupdate", check);
                    check();
                });
            }""",
            position_s,
        )


def record_requests(page: Page, part: str = "", *, method: str = "") -> list[str]:
    """The addresses with this in them that the page asks for from now on, by this method."""
    asked: list[str] = []

    def note(request: Request) -> None:
        if part in request.url and method in request.method:
            asked.append(request.url)

    page.on("request", note)
    return asked


async def hold_requests(page: Page, address: str | re.Pattern[str]) -> asyncio.Event:
    """Hold what the page asks for there from now on, until the event is set."""
    may_go_on = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_go_on.wait()
        await route.continue_()

    await page.route(address, hold)
    return may_go_on


async def photograph(page: Page, name: str) -> None:
    """Keep a picture of the whole page as it is now, for people to look at."""
    path = SCREENSHOTS / f"{name}.png"
    await page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 0


async def photograph_at_widths(page: Page, name: str) -> None:
    """The same on a phone and on a desk."""
    for width in SCREENSHOT_WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        await photograph(page, f"{name}-{width}")


async def axe_findings(page: Page) -> list[str]:
    """What axe-core objects to on a page as it is now, once its colours have changed over."""
    await page.evaluate(_axe())
    await page.evaluate(AWAIT_ANIMATIONS)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']}: {[node['html'] for node in violation['nodes']]}"
        for violation in found["violations"]
    ]


async def suits_everyone(page: Page, name: str) -> None:
    """Nothing is cut off, axe objects to nothing, and there is a picture to look at."""
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        surplus = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert surplus <= 0, f"{name} at {width}"
    findings = await axe_findings(page)
    assert findings == [], f"{name}: {findings}"
    await photograph_at_widths(page, name)


@cache
def _axe() -> str:
    return (install_tools() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


async def publish_file(portal_url: str, path: Path, title: str) -> str:
    """Publish a file through the API, as an integrator does; answers the video's id."""
    description = "First line.\nSecond line with <b>markup</b>."
    details = {"description": description, "categoryIds": [1, 2], "tags": "test, browser"}
    return str((await create(portal_url, path, title=title, **details))["id"])


async def open_workshop(page: Page, address: str, form: str) -> Locator:
    """Open the workshop of the video at this address, and wait for its scripts; answers a form."""
    await page.goto(f"{address}/edit")
    await page.wait_for_load_state("networkidle")
    return page.get_by_role("form", name=form)
