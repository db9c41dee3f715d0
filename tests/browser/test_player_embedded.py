"""The player in a frame on another site, where storage may be blocked and links lead away."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from framing_site import framing_site
from player_page import NO_STORAGE, wait_for
from playwright.async_api import Frame, Page, expect
from running_portal import LivePortal

ShowFramed = Callable[[str], Awaitable[Frame]]


@pytest.fixture
async def elsewhere() -> AsyncIterator[str]:
    """A site of another origin, which frames the address it is given."""
    async with framing_site() as origin:
        yield f"{origin}/"


@pytest.fixture
def framed(page: Page, elsewhere: str, live_portal: LivePortal) -> ShowFramed:
    """Shows an address of the portal in a frame of that site."""

    async def framed(path: str) -> Frame:
        await page.goto(f"{elsewhere}?src={live_portal.base_url}{path.replace('&', '%26')}")
        handle = await page.locator("#frame").element_handle()
        assert handle is not None
        frame = await handle.content_frame()
        assert frame is not None
        return frame

    return framed


async def test_plays_in_a_frame_of_another_site_without_storage(
    page: Page, framed: ShowFramed, film: str
) -> None:
    await page.add_init_script(NO_STORAGE)
    frame = await framed(f"/embed/{film}?t=5")
    await wait_for(frame, "video.readyState >= 2 && video.currentTime >= 5")
    await frame.locator(".player__start").click()
    await wait_for(frame, "!video.paused && video.currentTime > 5.5")
    link = frame.get_by_role("link", name="A film")
    await expect(link).to_have_attribute("target", "_blank")
    await expect(link).to_have_attribute("rel", "noopener")
    assert str(await link.get_attribute("href")).endswith(f"/videos/{film}")
    assert await page.context.cookies() == []
    assert await frame.locator("nav, header, footer").count() == 0


async def test_starts_by_itself_muted_where_the_address_says_so(
    framed: ShowFramed, film: str
) -> None:
    frame = await framed(f"/embed/{film}?autoplay=1&muted=1")
    await wait_for(frame, "video.muted && !video.paused && video.currentTime > 0.3")


@pytest.mark.complaint("frame-ancestors|X-Frame-Options|Framing|status of 404")
async def test_pages_of_the_portal_refuse_to_be_framed(framed: ShowFramed, film: str) -> None:
    page = f"/videos/{film}"
    pages = (page, f"{page}/edit", f"{page}/delete", f"{page}/related", "/", "/upload", "/api/docs")
    for path in (*pages, "/nothing", "/api/categories", f"/api{page}"):
        frame = await framed(path)
        assert await frame.locator("video, nav, form, main").count() == 0, path
        assert "film" not in await frame.content(), path
