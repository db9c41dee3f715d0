"""Every page as people meet it: by eye, keyboard, screen reader, without scripts, at any width."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from browser_kit import Complaints, OpenContext, Publish, play_past, publish_file
from front_end import install_tools
from playwright.async_api import Page, Route, expect
from portal_kit import LivePortal, fresh_database, run_portal

SCREENSHOTS = Path(__file__).with_name("screenshots")
WIDTHS = (320, 360, 1440, 2560)
SCREENSHOT_WIDTHS = (360, 1440)
PAGES = ("library", "empty", "upload", "waiting", "ready", "failed", "docs", "missing")


@pytest.fixture(scope="session")
async def idle_portal(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LivePortal]:
    """A portal of its own without videos, and without a worker to process any."""
    work_dir = str(tmp_path_factory.mktemp("idle"))
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, "WORK_DIR": work_dir}, worker=False) as portal,
    ):
        yield portal


@pytest.fixture(scope="session")
async def waiting_portal(
    services: dict[str, str], short_video: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """The address of a video that waits for a worker that never comes."""
    work_dir = str(tmp_path_factory.mktemp("waiting"))
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, "WORK_DIR": work_dir}, worker=False) as portal,
        aiohttp.ClientSession(portal.base_url) as session,
    ):
        video_id = await publish_file(session, short_video, "A waiting video")
        yield f"{portal.base_url}/videos/{video_id}"


@pytest.fixture(scope="session")
def addresses(
    ready_video: str, failed_video: str, idle_portal: LivePortal, waiting_portal: str
) -> dict[str, str]:
    """One address for each kind of page and state."""
    return {
        "library": "/",
        "empty": idle_portal.base_url,
        "upload": "/upload",
        "waiting": waiting_portal,
        "ready": f"/videos/{ready_video}",
        "failed": f"/videos/{failed_video}",
        "docs": "/api/docs",
        "missing": "/videos/none",
    }


@pytest.fixture(autouse=True)
def expected(complaints: Complaints) -> None:
    """The page that isn't there answers 404, which browsers report."""
    complaints.expect("status of 404")


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    return (install_tools() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


async def test_library_shows_published_videos(
    page: Page, ready_video: str, failed_video: str
) -> None:
    await page.goto("/")
    card = page.locator(f"#card-{ready_video}")
    await expect(card.get_by_role("link", name="A ready video")).to_be_visible()
    await expect(card.locator(".card__duration")).to_contain_text("0:02")
    poster = card.locator("img")
    await poster.scroll_into_view_if_needed()
    await page.wait_for_function(
        "image => image.naturalWidth > 0", arg=await poster.element_handle()
    )
    await expect(
        page.locator(f"#card-{failed_video}").get_by_text("Failed", exact=True)
    ).to_be_visible()
    await card.get_by_role("link").click()
    await expect(page).to_have_url(f"/videos/{ready_video}")


async def test_ready_video_plays(page: Page, ready_video: str) -> None:
    await page.goto(f"/videos/{ready_video}")
    await play_past(page, 0.5)
    await expect(page.locator("[data-player-trouble]")).to_be_hidden()


async def test_player_takes_its_space_before_it_loads(
    page: Page, complaints: Complaints, ready_video: str
) -> None:
    complaints.expect("Failed to load resource")
    await page.route("**/*.m3u8", lambda route: route.abort())
    await page.route("**/poster.jpg", lambda route: route.abort())
    await page.goto(f"/videos/{ready_video}", wait_until="commit")
    box = await page.locator("video").bounding_box()
    assert box is not None
    assert box["height"] == pytest.approx(box["width"] * 9 / 16, abs=2)


async def test_player_that_lost_its_stream_offers_a_retry(
    page: Page, complaints: Complaints, ready_video: str
) -> None:
    complaints.expect("Failed to load resource")
    await page.route("**/*.m3u8", lambda route: route.abort())
    await page.goto(f"/videos/{ready_video}")
    trouble = page.locator("[data-player-trouble]")
    await expect(trouble).to_be_visible(timeout=30_000)
    await expect(trouble).to_contain_text("stopped loading")
    await page.unroute("**/*.m3u8")
    await trouble.get_by_role("button", name="Try again").click()
    await expect(trouble).to_be_hidden()
    await play_past(page, 0.2)


async def test_failed_video_says_why_and_what_to_do(page: Page, failed_video: str) -> None:
    await page.goto(f"/videos/{failed_video}")
    status = page.locator("#status")
    await expect(status).to_contain_text("not an MP4 or QuickTime video")
    await expect(status).to_contain_text("not_a_video")
    await expect(status.get_by_role("link", name="Upload again")).to_be_visible()
    assert await status.get_attribute("hx-get") is None


async def test_description_keeps_lines_and_shows_markup_as_text(
    page: Page, ready_video: str
) -> None:
    await page.goto(f"/videos/{ready_video}")
    description = page.locator(".video-page__description")
    assert await description.inner_text() == "First line.\nSecond line with <b>markup</b>."


async def test_times_are_shown_in_the_readers_zone(
    open_context: OpenContext, ready_video: str
) -> None:
    context = await open_context(timezone_id="Asia/Tokyo")
    page = await context.new_page()
    await page.goto(f"/videos/{ready_video}")
    moment = page.locator("time").first
    await expect(moment).not_to_contain_text("UTC")
    # The text of the server stays at hand.
    await expect(moment).to_have_attribute("title", re.compile("UTC$"))


async def test_pages_are_readable_without_scripts(
    open_context: OpenContext, ready_video: str, failed_video: str
) -> None:
    context = await open_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/")
    await page.get_by_role("link", name="A ready video").first.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("A ready video")
    await expect(page.get_by_role("link", name="open the stream")).to_be_visible()
    await page.goto(f"/videos/{failed_video}")
    await expect(page.locator("#status")).to_contain_text("not an MP4 or QuickTime video")


async def test_failed_poll_leaves_the_page_and_polling_goes_on(
    page: Page, complaints: Complaints, publish: Publish, short_video: Path
) -> None:
    complaints.expect("status of 503")

    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, content_type="text/html", body="<p id=status>Broken</p>")

    await page.route("**/status", refuse)
    video_id = await publish(short_video, "Polled through trouble")
    async with page.expect_response("**/status") as first:
        await page.goto(f"/videos/{video_id}")
    async with page.expect_response("**/status") as second:
        await first.value
    await second.value
    await expect(page.locator("#status")).to_contain_text("You can leave this page")
    await page.unroute("**/status")
    await expect(page.locator("video")).to_be_visible(timeout=90_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
async def test_axe_finds_nothing(
    open_context: OpenContext, addresses: dict[str, str], axe: str, name: str, scheme: str
) -> None:
    context = await open_context(color_scheme=scheme, reduced_motion="reduce")
    page = await context.new_page()
    await page.goto(addresses[name])
    assert await _findings(page, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_in_the_states_of_the_upload_form(
    open_context: OpenContext,
    complaints: Complaints,
    short_video: Path,
    axe: str,
    scheme: str,
) -> None:
    complaints.expect("Failed to load resource")
    context = await open_context(color_scheme=scheme, reduced_motion="reduce")
    page = await context.new_page()
    await page.goto("/upload")
    await page.get_by_role("button", name="Publish video").click()
    assert await _findings(page, axe) == []
    await _screenshot(page, f"upload-faults-{scheme}")

    await page.route("**/videos/*.mp4?*", lambda route: route.abort())
    await page.locator("input[type=file]").set_input_files(short_video)
    await expect(page.get_by_role("alert")).to_contain_text("interrupted")
    assert await _findings(page, axe) == []
    await _screenshot(page, f"upload-interrupted-{scheme}")

    await page.unroute("**/videos/*.mp4?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    assert await _findings(page, axe) == []
    await _screenshot(page, f"upload-sent-{scheme}")


async def _findings(page: Page, axe: str) -> list[str]:
    await page.evaluate(axe)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [_finding(violation) for violation in found["violations"]]


def _finding(violation: dict[str, Any]) -> str:
    nodes = [node["html"] for node in violation["nodes"]]
    return f"{violation['id']}: {nodes}"


@pytest.mark.parametrize("width", WIDTHS)
async def test_nothing_scrolls_sideways(
    open_context: OpenContext, addresses: dict[str, str], width: int
) -> None:
    context = await open_context(viewport={"width": width, "height": 800})
    page = await context.new_page()
    for name, address in addresses.items():
        await page.goto(address)
        excess = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert excess <= 0, f"{name} is {excess} px wider than {width} px"


async def test_keyboard_reaches_everything_visibly(page: Page) -> None:
    await page.goto("/upload")
    reached: list[str] = []
    for _ in range(40):
        await page.keyboard.press("Tab")
        focused = await page.evaluate(
            """() => {
                const it = document.activeElement;
                const box = it.getBoundingClientRect();
                return it === document.body ? null : {
                    name: it.getAttribute("name") ?? it.type ?? it.textContent.trim(),
                    text: it.textContent.trim(), visible: box.width > 0 && box.height > 0,
                };
            }"""
        )
        if focused is None:
            break
        assert focused["visible"], focused
        reached.append(focused["text"] or focused["name"])
    assert reached[:5] == ["Skip to content", "Portal", "Library", "Upload", "API"]
    for name in ("file", "title", "description", "categoryIds", "tags", "Publish video"):
        assert name in reached


async def test_skip_link_leads_to_the_content(page: Page) -> None:
    await page.goto("/")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SCREENSHOT_WIDTHS)
async def test_screenshots(
    open_context: OpenContext,
    addresses: dict[str, str],
    scheme: str,
    width: int,
) -> None:
    context = await open_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = await context.new_page()
    for name, address in addresses.items():
        await page.goto(address)
        if name == "ready":
            await play_past(page, 0)
        await _screenshot(page, f"{name}-{width}-{scheme}")


async def _screenshot(page: Page, name: str) -> None:
    path = SCREENSHOTS / f"{name}.png"
    await page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 0
