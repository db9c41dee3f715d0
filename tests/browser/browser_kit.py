"""What the browser tests share besides fixtures: the browser, and a record of its complaints."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.async_api import BrowserContext, Page

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage

OpenContext = Callable[..., Awaitable[BrowserContext]]
Publish = Callable[[Path, str], Awaitable[str]]
Finish = Callable[[str], Awaitable[str]]

PLAY_TIMEOUT_S = 20
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
        page.on("pageerror", lambda error: self.messages.append(f"page error: {error}"))

    def unexpected(self) -> list[str]:
        return [
            message
            for message in self.messages
            if not any(pattern.search(message) for pattern in self.expected)
        ]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.messages.append(f"console: {message.text}")


def find_chromium() -> str | None:
    """Path of a browser that is installed already."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def run(*command: str) -> None:
    """Run a command to its end, or fail."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


async def play_past(page: Page, position_s: float) -> None:
    """Play the page's video, muted, until its clock has passed this position."""
    async with asyncio.timeout(PLAY_TIMEOUT_S):
        await page.locator("video").evaluate(
            """async (video, position) => {
                video.muted = true;
                await video.play();
                await new Promise((resolve) => {
                    const check = () => video.currentTime > position && resolve();
                    video.addEventListener("timeupdate", check);
                    check();
                });
            }""",
            position_s,
        )
