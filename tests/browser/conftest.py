"""Chromium against a running portal; a page that logs an error fails its test."""

import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import firefox_bridge
import pytest
from chromium import (
    CPU_SLOWDOWN,
    EDITOR,
    OWNER,
    PASSWORD,
    TIMEOUT_MS,
    OpenPage,
    Publish,
    find_or_install,
    make_series,
    publish_file,
    run,
)
from command_line import portal as command
from library_rows import Rows
from player_page import make_film
from playwright import async_api
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from running_portal import LivePortal, final_status, fresh_portal, storyboard
from statistics_rows import ADD_DAYS, ADD_PERIOD

expect.set_options(timeout=TIMEOUT_MS)
# Chromium would load two pages for the suggestions of each window's address bar, which takes longer
# than a page of the portal. The last switch of a name counts, so the other features are those that
# Playwright disables.
DISABLED_FEATURES = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--autoplay-policy=no-user-gesture-required",
    f"--disable-features={','.join(DISABLED_FEATURES)}",
)


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The machine's Chromium, or Playwright's own."""
    chromium = find_or_install("chromium", "chromium", "google-chrome")
    if chromium is None:
        run(sys.executable, "-m", "playwright", "install", "chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest.fixture
async def firefox(tmp_path: Path) -> AsyncIterator[Browser]:
    """Debian's Firefox."""
    installed = find_or_install("firefox-esr", "firefox-esr", "firefox")
    if installed is None:
        pytest.skip("there is no Firefox, and only root can install it, with apt-get")
    program = tmp_path / "firefox"
    bridge = f"{sys.executable} {firefox_bridge.__file__} {installed}"
    program.write_text(f'#!/bin/sh\nexec {bridge} "$@"')
    program.chmod(0o700)
    async with async_playwright() as playwright:
        browser = await playwright.firefox.launch(
            channel="moz-firefox",
            executable_path=program,
            firefox_user_prefs={
                "media.autoplay.default": 0,
                # A camera and a microphone, which every page may use.
                "media.navigator.streams.fake": True,
                "media.navigator.permission.disabled": True,
            },
        )
        yield browser
        await browser.close()


# Pages may outlive the portal of their test, and then ask it in vain.
PORTAL_ENDED = "net::ERR_CONNECTION_REFUSED"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "complaint(pattern): errors that pages may log")


@pytest.fixture
def watch(request: pytest.FixtureRequest) -> Iterator[Callable[[Page], None]]:
    """Function that fails the test if a page logs an error, as violated policies do, or throws."""
    expected = [PORTAL_ENDED]
    expected += [mark.args[0] for mark in request.node.iter_markers("complaint")]
    complaints: list[str] = []

    def record(text: str) -> None:
        if not any(re.search(pattern, text) for pattern in expected):
            complaints.append(text)

    def on_console(message: async_api.ConsoleMessage) -> None:
        if message.type == "error":
            record(message.text)

    def on_error(error: async_api.Error) -> None:
        record(f"{error}\n{error.stack or ''}")

    def watch(page: Page) -> None:
        page.on("console", on_console)
        page.on("pageerror", on_error)

    yield watch
    assert complaints == []


@pytest.fixture
async def open_page(
    browser: Browser, live_portal: LivePortal, watch: Callable[[Page], None]
) -> AsyncIterator[OpenPage]:
    """Function that opens a page in a new browser context."""
    contexts: list[BrowserContext] = []

    async def open_page(*, width: int = 1280, height: int = 900, **options: Any) -> Page:
        viewport = {"width": width, "height": height}
        options = {"base_url": live_portal.base_url, "viewport": viewport, **options}
        context = await browser.new_context(**options)
        context.set_default_timeout(TIMEOUT_MS)
        context.on("page", watch)
        contexts.append(context)
        page = await context.new_page()
        if CPU_SLOWDOWN > 1:
            session = await context.new_cdp_session(page)
            await session.send("Emulation.setCPUThrottlingRate", {"rate": CPU_SLOWDOWN})
        return page

    yield open_page
    for context in contexts:
        await context.close()


@pytest.fixture
async def page(open_page: OpenPage) -> Page:
    return await open_page()


@pytest.fixture
async def portal(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """New portal without accounts and without a worker."""
    async with fresh_portal(services) as portal:
        yield portal


@pytest.fixture(scope="session")
async def owned_portal(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """Portal with an owner and an editor, and without a worker."""
    async with fresh_portal(services) as portal:
        for address, role in ((OWNER, "owner"), (EDITOR, "editor")):
            add = ("accounts", "add", address, "--role", role, "--password-stdin")
            assert (await command(portal.environ, *add, typed=f"{PASSWORD}\n")).code == 0
        yield portal


@pytest.fixture
async def owner(owned_portal: LivePortal, open_page: OpenPage) -> Page:
    """Page of a browser in which the owner of `owned_portal` is signed in."""
    page = await open_page(base_url=owned_portal.base_url)
    await page.context.request.post("/sign-in", form={"email": OWNER, "password": PASSWORD})
    return page


@pytest.fixture(scope="session")
def publish(live_portal: LivePortal) -> Publish:
    """Function that publishes a file, waits for a status, and returns the video's id."""

    async def publish(path: Path, title: str, *, until: str = "") -> str:
        video_id = await publish_file(live_portal.base_url, path, title)
        if until:
            assert await final_status(live_portal.base_url, video_id) == until
        if until == "ready":
            await storyboard(live_portal.base_url, video_id)
        return video_id

    return publish


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


@pytest.fixture(scope="session")
async def idle_portal(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """Portal without a worker."""
    async with fresh_portal(services) as portal:
        yield portal


@pytest.fixture(scope="session")
async def waiting_video(idle_portal: LivePortal, short_video: Path) -> str:
    """Address of a video that is never processed."""
    video_id = await publish_file(idle_portal.base_url, short_video, "A waiting video")
    return f"{idle_portal.base_url}/videos/{video_id}"


@pytest.fixture(scope="session")
async def addresses(
    live_portal: LivePortal, ready_video: str, failed_video: str, waiting_video: str
) -> dict[str, str]:
    """Address of each kind of page and state, by name."""
    rows = Rows(live_portal.environ["DATABASE_URL"])
    for video_id in (ready_video, None):
        await rows.run(ADD_DAYS, video_id, 28)
    await rows.run(ADD_PERIOD, ready_video)
    series_id = await make_series(live_portal.base_url, "A series", [ready_video, failed_video])
    return {
        "library": "/",
        "upload": "/upload",
        "record": "/record",
        "waiting": waiting_video,
        "ready": f"/videos/{ready_video}",
        "edit": f"/videos/{ready_video}/edit",
        "series": "/series",
        "series-page": f"/series/{series_id}",
        "series-edit": f"/series/{series_id}/edit",
        "series-watch": f"/videos/{ready_video}?series={series_id}",
        "statistics": f"/videos/{ready_video}/statistics",
        "library-statistics": "/statistics",
        "chapters": f"/videos/{ready_video}/chapters/edit",
        "cuts": f"/videos/{ready_video}/cuts",
        "downloads": f"/videos/{ready_video}/downloads",
        "failed": f"/videos/{failed_video}",
        "docs": "/api/docs",
        "missing": "/videos/none",
        "embed": f"/embed/{ready_video}",
        "embed-waiting": waiting_video.replace("/videos/", "/embed/"),
        "embed-failed": f"/embed/{failed_video}",
        "embed-missing": "/embed/none",
    }
