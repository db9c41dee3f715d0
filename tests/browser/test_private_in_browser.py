"""A private video in a browser: by a session, and by a playback link on another site."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from chromium import OWNER, PASSWORD, play_past, record_requests
from command_line import portal as command
from framing_site import framing_site, show_framed
from player_page import FILM_S, make_film, open_player, read, wait_for
from playwright.async_api import Page, Request, Response
from running_portal import LivePortal, fresh_portal, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.complaint("frame-ancestors|Framing|status of 404"),
]
SCOPES = ("videos:read", "videos:write", "videos:delete")


@dataclass(frozen=True)
class ClosedPortal:
    """A portal whose videos are private, its owner's API token, and a video that plays."""

    portal: LivePortal
    token: str
    video_id: str

    async def ask(self, method: str, path: str = "", *, status: int = 200, **options: Any) -> Any:
        """What the owner's program is answered of the video, with this status."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if method == "PUT":
            headers["If-Match"] = "*"
        url = f"{self.portal.base_url}/api/videos/{self.video_id}{path}"
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            http.request(method, url, **options) as answer,
        ):
            assert answer.status == status, await answer.text()
            return await answer.json() if status != 204 else None

    async def is_complete(self) -> bool:
        """Whether everything there will ever be of the video is made."""
        found = await self.ask("GET", "/transcode")
        return found["remaining"] is None and bool(found["storyboardUrl"])


@pytest.fixture(scope="module")
async def closed(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ClosedPortal]:
    """Started, with a film that was published as its owner's program."""
    folder = tmp_path_factory.mktemp("private")
    settings = {"WORK_DIR": str(folder), "DEFAULT_VISIBILITY": "private"}
    async with fresh_portal(services, worker=True, **settings) as live:
        add = ("accounts", "add", OWNER, "--role", "owner", "--password-stdin")
        assert (await command(live.environ, *add, typed=f"{PASSWORD}\n")).code == 0
        scopes = [part for scope in SCOPES for part in ("--scope", scope)]
        made = await command(live.environ, "tokens", "add", OWNER, "--name", "a", *scopes)
        token = made.out.strip()
        send = ("publish", str(make_film(folder)), "--category", "1", "--url", live.base_url)
        sent = await command({"PORTAL_TOKEN": token}, *send, "--title", "A film", "--no-wait")
        assert sent.code == 0, sent.err
        closed = ClosedPortal(live, token, sent.out.strip())
        await until(closed.is_complete, timeout_s=60, interval_s=0.5)
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
    life = {"expiresInSeconds": 600}
    link = await closed.ask("POST", "/playback-links", status=201, json=life)
    async with framing_site() as allowed, framing_site() as forbidden:
        access = {"visibility": "private", "signedInOnly": False, "embedOrigins": [allowed]}
        await closed.ask("PUT", "/access", json=access)
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
        await closed.ask("DELETE", f"/playback-links/{link['id']}", status=204)
        # What was asked for before may still be answered, and led to storage.
        page.on("request", lambda it: it.redirected_from in (None, *asked) and asked.append(it))
        await frame.evaluate(f"document.querySelector('video').currentTime = {FILM_S - 2}")

        def refusals() -> set[int]:
            return {it.status for it in answers if "/p/" in it.url}

        await until(refusals, timeout_s=10)
        assert refusals() == {404}
        # Nothing comes from storage, either.
        assert [it.url for it in answers if it.ok and ".m4s" in it.url] == []
