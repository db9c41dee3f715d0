"""A real Chromium against a running portal; a page that complains fails its test."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from chromium import (
    CHROMIUM_ARGUMENTS,
    Complaints,
    Finish,
    OpenContext,
    Publish,
    find_chromium,
    publish_file,
    run,
)
from player_page import make_film
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from running_portal import LivePortal
from turns import in_turn
from upload_page import make_files

READY_TIMEOUT_S = 600
# Only a failure waits that long, also where the machine has other things to do.
PATIENCE_MS = 180_000

expect.set_options(timeout=PATIENCE_MS)


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


@pytest.fixture
def complaints() -> Complaints:
    """What the pages of this test complained about."""
    return Complaints()


@pytest.fixture
async def open_context(
    browser: Browser, live_portal: LivePortal, complaints: Complaints
) -> AsyncIterator[OpenContext]:
    """Opens browser contexts on the portal; afterwards no page may have complained."""
    contexts: list[BrowserContext] = []

    async def open_context(**options: Any) -> BrowserContext:
        options = {"viewport": {"width": 1280, "height": 900}, **options}
        context = await browser.new_context(base_url=live_portal.base_url, **options)
        context.set_default_timeout(PATIENCE_MS)
        context.on("page", complaints.watch)
        contexts.append(context)
        return context

    yield open_context
    for context in contexts:
        await context.close()
    assert complaints.unexpected() == []


@pytest.fixture
async def page(open_context: OpenContext) -> Page:
    """A page on the portal."""
    context = await open_context()
    return await context.new_page()


@pytest.fixture(scope="session")
async def publish(live_portal: LivePortal) -> AsyncIterator[Publish]:
    """Publishes a file through the API, as an integrator does; answers the video's id."""
    async with aiohttp.ClientSession(live_portal.base_url) as session:

        async def publish(path: Path, title: str) -> str:
            return await publish_file(session, path, title)

        yield publish


@pytest.fixture(scope="session")
async def finish(live_portal: LivePortal) -> AsyncIterator[Finish]:
    """Waits until a video is no longer processed; answers its status."""
    async with aiohttp.ClientSession(live_portal.base_url) as session:

        async def finish(video_id: str) -> str:
            async with asyncio.timeout(READY_TIMEOUT_S):
                # Another process does the work, so there is no event to wait for.
                while (status := await _status(session, video_id)) == "processing":  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
            return status

        yield finish


@pytest.fixture(scope="session")
def upload_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files with something to find out about each, by name."""
    return make_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="session")
async def ready_video(publish: Publish, finish: Finish, short_video: Path) -> str:
    """The id of a video that plays."""
    video_id = await publish(short_video, "A ready video")
    assert await finish(video_id) == "ready"
    return video_id


@pytest.fixture(scope="session")
async def film(publish: Publish, finish: Finish, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The id of a longer video with two languages and three qualities."""
    video_id = await publish(make_film(tmp_path_factory.mktemp("film")), "A film")
    assert await finish(video_id) == "ready"
    return video_id


@pytest.fixture(scope="session")
async def failed_video(
    publish: Publish, finish: Finish, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The id of a video that isn't one."""
    path = tmp_path_factory.mktemp("failed") / "notes.mp4"
    path.write_text("These are only notes.\n" * 50)
    video_id = await publish(path, "A failed video")
    assert await finish(video_id) == "failed"
    return video_id


async def _status(session: aiohttp.ClientSession, video_id: str) -> str:
    async with session.get(f"/api/videos/{video_id}") as answer:
        return str((await answer.json())["status"])
