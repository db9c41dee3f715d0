"""A private video in a browser: by a session, and by a playback link on another site."""

from collections.abc import AsyncIterator

import pytest
from chromium import play_past, record_requests
from closed_portal import OWNER, PASSWORD, ClosedPortal, closed_portal
from framing_site import framing_site, show_framed
from player_page import FILM_S, make_film, open_player, read, wait_for
from playwright.async_api import Page, Request, Response
from running_portal import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.complaint("frame-ancestors|Framing|status of 404"),
]


@pytest.fixture(scope="module")
async def closed(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ClosedPortal]:
    folder = tmp_path_factory.mktemp("private")
    async with closed_portal(services, folder, make_film(folder)) as closed:
        yield closed


async def test_owner_watches_by_the_session_and_nobody_else(
    page: Page, closed: ClosedPortal
) -> None:
    base_url = closed.portal.base_url
    film = f"{base_url}/videos/{closed.video_id}"
    await page.goto(film)
    assert await page.locator("video").count() == 0
    form = {"email": OWNER, "password": PASSWORD}
    await page.context.request.post(f"{base_url}/sign-in", form=form)
    given = record_requests(page, "X-Amz-Expires=")
    await open_player(page, film)
    # Another device would ask for the stream without the session.
    assert await read(page, "video.disableRemotePlayback")
    assert await page.locator("media-cast-button, media-airplay-button").count() == 0
    await read(page, f"void (video.currentTime = {FILM_S / 2})")
    await play_past(page, FILM_S / 2 + 0.5)
    assert given
    assert all("X-Amz-Expires=300" in it for it in given)


async def test_link_plays_on_sites_that_may_frame_it_until_it_is_revoked(
    page: Page, closed: ClosedPortal
) -> None:
    link = await closed.make_link()
    async with framing_site() as allowed, framing_site() as forbidden:
        await closed.set_sites(allowed)
        refused = await show_framed(page, forbidden, link["embedUrl"])
        assert await refused.locator("video, main").count() == 0
        assert "film" not in await refused.content()
        # A browser without a session, so that the link alone gives leave.
        frame = await show_framed(page, allowed, link["embedUrl"])
        await wait_for(frame, "video.readyState >= 2")
        assert await read(frame, "video.buffered.end(0)") < FILM_S - 6
        assert await page.context.cookies() == []
        asked: list[Request] = []
        answers: list[Response] = []
        page.on("response", lambda it: it.request in asked and answers.append(it))
        await closed.revoke(link)
        # What was asked for before may still be answered.
        page.on("request", lambda it: asked.append(it))
        await frame.evaluate(f"document.querySelector('video').currentTime = {FILM_S - 2}")

        def refusals() -> set[int]:
            return {it.status for it in answers if "/p/" in it.url}

        await until(refusals, timeout_s=10)
        assert refusals() == {404}
        # Nothing comes from storage, either.
        assert [it.url for it in answers if it.ok and ".m4s" in it.url] == []
