"""A private video in a browser: by a session, and by a playback link on another site."""

from collections.abc import AsyncIterator

import pytest
from chromium import play_past, record_requests
from closed_portal import OWNER, PASSWORD, ClosedPortal, closed_portal
from framing_site import framing_site
from player_page import FILM_S, make_film, open_player, read, wait_for
from playwright.async_api import Frame, Page, Request, Response, expect
from running_portal import until

pytestmark = pytest.mark.slow

PLACES_S = (20, 3, 15, 22, 8)
CHOOSE = """(height) => {
    const list = document.querySelector("video").videoRenditions;
    list.selectedIndex = [...list].findIndex((each) => Math.abs(each.height - height) < 10);
}"""
# The pictures of the time bar, and what stands until it plays, as the page itself finds them.
PICTURES = """async () => {
    const video = document.querySelector("video");
    const index = await fetch(document.querySelector("track[kind=metadata]").src);
    const sprite = (await index.text()).split("\\n").find((line) => line.includes("#xywh="));
    const sizes = [];
    for (const address of [video.poster, sprite]) {
        const image = new Image();
        image.src = address;
        await image.decode();
        sizes.push(image.naturalWidth);
    }
    return sizes;
}"""


@pytest.fixture(scope="module")
async def closed(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ClosedPortal]:
    folder = tmp_path_factory.mktemp("private")
    async with closed_portal(services, folder, make_film(folder)) as closed:
        yield closed


@pytest.mark.complaint("status of 404")
async def test_owner_watches_by_the_session_and_nobody_else(
    page: Page, closed: ClosedPortal
) -> None:
    """Every quality, five places, the poster and the pictures of the time bar."""
    base_url = closed.portal.base_url
    film = f"{base_url}/videos/{closed.video_id}"
    await page.goto(film)
    assert await page.locator("video").count() == 0
    await page.goto(f"{base_url}/sign-in")
    await page.get_by_label("E-mail address").fill(OWNER)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.locator("main").get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("link", name="Account")).to_be_visible()
    given = record_requests(page, "X-Amz-Expires=")
    await open_player(page, film)
    # Another device would ask for the stream without the session.
    assert await read(page, "video.disableRemotePlayback")
    assert await page.locator("media-cast-button, media-airplay-button").count() == 0
    for height in (240, 360, 480):
        await page.evaluate(CHOOSE, height)
        for place_s in PLACES_S:
            await page.evaluate(f"document.querySelector('video').currentTime = {place_s}")
            await wait_for(page, "!video.seeking && video.readyState >= 2")
        await play_past(page, PLACES_S[-1])
        await wait_for(page, f"Math.abs(video.videoHeight - {height}) < 10")
        await page.evaluate("document.querySelector('video').pause()")
    assert all(it > 0 for it in await page.evaluate(PICTURES))
    assert len(given) > 10
    assert all("X-Amz-Expires=300" in it for it in given)


async def frame_of(page: Page, site: str, address: str) -> Frame:
    """What a site shows in its frame of this address."""
    await page.goto(f"{site}/?src={address}")
    handle = await page.locator("#frame").element_handle()
    assert handle is not None
    frame = await handle.content_frame()
    assert frame is not None
    return frame


@pytest.mark.complaint("frame-ancestors|Framing|status of 404")
async def test_link_plays_on_sites_that_may_frame_it_until_it_is_revoked(
    page: Page, closed: ClosedPortal
) -> None:
    """From an allowed origin, from a forbidden one, and after the link was revoked."""
    link = await closed.make_link()
    async with framing_site() as allowed, framing_site() as forbidden:
        await closed.set_sites(allowed)
        refused = await frame_of(page, forbidden, link["embedUrl"])
        assert await refused.locator("video, main").count() == 0
        assert "film" not in await refused.content()
        # A browser without a session, so that the link alone gives leave.
        frame = await frame_of(page, allowed, link["embedUrl"])
        await wait_for(frame, "video.readyState >= 2")
        assert not await read(frame, "video.disableRemotePlayback")
        assert await read(frame, "video.buffered.end(0)") < FILM_S - 6
        assert await page.context.cookies() == []
        asked: list[Request] = []
        answers: list[Response] = []
        page.on("response", lambda it: it.request in asked and answers.append(it))
        await closed.revoke(link)
        # What was asked for before may still be answered.
        page.on("request", lambda it: asked.append(it))
        await frame.evaluate(f"document.querySelector('video').currentTime = {FILM_S - 2}")
        await frame.wait_for_function("document.querySelector('video').seeking")

        def refusals() -> list[int]:
            return [it.status for it in answers if "/p/" in it.url]

        await until(lambda: 404 in refusals(), timeout_s=10)
        assert set(refusals()) <= {404}
        # Nothing comes from storage, either.
        assert [it.url for it in answers if it.ok and ".m4s" in it.url] == []
        assert (await page.goto(link["embedUrl"])).status == 404  # type: ignore[union-attr]
