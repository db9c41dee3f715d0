"""What the browser tests share besides fixtures: the browser, and a record of its complaints."""

import asyncio
import io
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
from front_end import install_tools
from playwright.async_api import BrowserContext, ConsoleMessage, Error, Page

OpenContext = Callable[..., Awaitable[BrowserContext]]
Publish = Callable[[Path, str], Awaitable[str]]
Finish = Callable[[str], Awaitable[str]]

# Finds the `ready_video`: videos of other tests may fill the first page of the whole library.
READY_SEARCH = "/?q=A+ready+video"
PLAY_TIMEOUT_S = 180
SCREENSHOTS = Path(__file__).with_name("screenshots")
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

    messages: list[str] = field(default_factory=list)
    expected: list[re.Pattern[str]] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """Allow what matches: a test that breaks something makes the browser say so."""
        self.expected.append(re.compile(pattern))

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", self._page_error)

    def unexpected(self) -> list[str]:
        return [
            message
            for message in self.messages
            if not any(pattern.search(message) for pattern in self.expected)
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
    """What axe-core objects to on a page as it is now."""
    await page.evaluate(_axe())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']}: {[node['html'] for node in violation['nodes']]}"
        for violation in found["violations"]
    ]


@cache
def _axe() -> str:
    return (install_tools() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


async def publish_file(session: aiohttp.ClientSession, path: Path, title: str) -> str:
    """Publish a file through the API, as an integrator does; answers the video's id."""
    request = {"fileName": path.name, "contentType": "video/mp4"}
    upload = await _post(session, "/api/videos/presign", request)
    data = io.BytesIO(await asyncio.to_thread(path.read_bytes))
    headers = {"Content-Type": "video/mp4"}
    async with session.put(upload["uploadUrl"], data=data, headers=headers) as answer:
        assert answer.status == 200
    details = {
        "title": title,
        "description": "First line.\nSecond line with <b>markup</b>.",
        "categoryIds": [1, 2],
        "tags": "test, browser",
        "fileName": path.name,
        "key": upload["key"],
    }
    return str((await _post(session, "/api/videos", details))["id"])


async def _post(session: aiohttp.ClientSession, path: str, body: Any) -> Any:
    async with session.post(path, json=body) as answer:
        assert answer.status in (200, 201), await answer.text()
        return await answer.json()
