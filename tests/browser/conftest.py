"""A real Chromium against a running portal; a page that complains fails its test."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chromium import (
    CHROMIUM_ARGUMENTS,
    TIMEOUT_MS,
    Complaints,
    OpenPage,
    Publish,
    find_chromium,
    publish_file,
    run,
)
from front_end import in_turn
from player_page import make_film
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from running_portal import LivePortal, final_status, storyboard
from upload_page import make_files

expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="session")
def chromium() -> str | None:
    """Path of a browser on this machine, installed if need be; None means Playwright's own."""
    with in_turn():
        found = find_chromium()
        if found is None and shutil.which("apt-get") and os.geteuid() == 0:
            run("apt-get", "update")
            run("apt-get", "install", "--yes", "chromium")
            found = find_chromium()
        if found is None:
            run(sys.executable, "-m", "playwright", "install", "chromium")
        return found


@pytest.fixture(scope="session")
async def browser(chromium: str | None) -> AsyncIterator[Browser]:
    """One browser for all tests."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=CHROMIUM_ARGUMENTS
        )
        yield browser
        await browser.close()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "complaint(pattern): what pages may write as an error")


@pytest.fixture
def complaints(request: pytest.FixtureRequest) -> Complaints:
    """What the pages of this test complained about."""
    return Complaints([mark.args[0] for mark in request.node.iter_markers("complaint")])


@pytest.fixture
async def open_page(
    browser: Browser, live_portal: LivePortal, complaints: Complaints
) -> AsyncIterator[OpenPage]:
    """Opens pages of browsers of their own; afterwards none may have complained."""
    contexts: list[BrowserContext] = []

    async def open_page(*, width: int = 1280, height: int = 900, **options: Any) -> Page:
        viewport = {"width": width, "height": height}
        base_url = live_portal.base_url
        context = await browser.new_context(base_url=base_url, viewport=viewport, **options)
        context.set_default_timeout(TIMEOUT_MS)
        context.on("page", complaints.watch)
        contexts.append(context)
        return await context.new_page()

    yield open_page
    for context in contexts:
        await context.close()
    assert complaints.unexpected() == []


@pytest.fixture
async def page(open_page: OpenPage) -> Page:
    """A page on the portal."""
    return await open_page()


@pytest.fixture(scope="session")
def publish(live_portal: LivePortal) -> Publish:
    """Publishes a file, and waits for its end if it is to have one; answers the video's id.

    That of one that becomes ready is its storyboard.
    """

    async def publish(path: Path, title: str, *, until: str = "") -> str:
        video_id = await publish_file(live_portal.base_url, path, title)
        if until:
            assert await final_status(live_portal.base_url, video_id) == until
        if until == "ready":
            await storyboard(live_portal.base_url, video_id)
        return video_id

    return publish


@pytest.fixture(scope="session")
def upload_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files with something to find out about each, by name."""
    return make_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="session")
async def ready_video(publish: Publish, short_video: Path) -> str:
    """The id of a video that plays."""
    return await publish(short_video, "A ready video", until="ready")


@pytest.fixture(scope="session")
async def film(publish: Publish, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The id of a longer video with two languages and three qualities."""
    return await publish(make_film(tmp_path_factory.mktemp("film")), "A film", until="ready")


@pytest.fixture(scope="session")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that isn't a video."""
    path = tmp_path_factory.mktemp("notes") / "notes.mp4"
    path.write_text("These are only notes.\n" * 50)
    return path


@pytest.fixture(scope="session")
async def failed_video(publish: Publish, notes: Path) -> str:
    """The id of a video that isn't one."""
    return await publish(notes, "A failed video", until="failed")
