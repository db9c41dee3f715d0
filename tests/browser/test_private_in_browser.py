"""A private video in a browser: by a session, and by a playback link on another site."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from chromium import (
    OWNER,
    PASSWORD,
    OpenPage,
    play_past,
    record_requests,
    suits_everyone,
)
from command_line import portal as command
from embedding_site import SITE, tell, wait_until
from framing_site import framing_site, show_framed
from player_page import open_player, read, wait_for
from playwright.async_api import Page, Request, Response, expect
from running_portal import LivePortal, fresh_portal, make_video, until
from upload_page import choose, fill_in, is_ready, is_uploaded, open_upload, publish_button

pytestmark = [
    pytest.mark.slow,
    pytest.mark.complaint("frame-ancestors|Framing|status of 4(04|22)"),
]
FILM_S = 24
SCOPES = ("videos:read", "videos:write", "videos:delete")


@dataclass(frozen=True)
class ClosedPortal:
    """A portal whose videos are private, its owner's API token, and a video that plays."""

    portal: LivePortal
    token: str
    video_id: str

    async def ask(self, method: str, path: str = "", *, status: int = 200, **options: Any) -> Any:
        """Request something of the video with the owner's token, and check the status."""
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

    async def make_series(self, title: str) -> str:
        """Make a series of the owner, and return its id."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            aiohttp.ClientSession(self.portal.base_url, headers=headers) as http,
            http.post("/api/series", json={"title": title}) as response,
        ):
            return str((await response.json())["id"])

    async def is_complete(self) -> bool:
        """Return whether all renditions and the storyboard are complete."""
        transcode = await self.ask("GET", "/transcode")
        return transcode["remaining"] is None and bool(transcode["storyboardUrl"])


@pytest.fixture(scope="module")
async def closed(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ClosedPortal]:
    """Running portal with a film that was published with its owner's token."""
    folder = tmp_path_factory.mktemp("private")
    settings = {"WORK_DIR": str(folder), "DEFAULT_VISIBILITY": "private"}
    async with fresh_portal(services, worker=True, **settings) as live:
        add = ("accounts", "add", OWNER, "--role", "owner", "--password-stdin")
        assert (await command(live.environ, *add, typed=f"{PASSWORD}\n")).code == 0
        film = make_video(folder / "film.mp4", seconds=FILM_S, rate=10)
        scopes = [part for scope in SCOPES for part in ("--scope", scope)]
        added = await command(live.environ, "tokens", "add", OWNER, "--name", "a", *scopes)
        token = added.out.strip()
        send = ("publish", str(film), "--category", "1", "--url", live.base_url)
        published = await command({"PORTAL_TOKEN": token}, *send, "--title", "A film", "--no-wait")
        assert published.code == 0, published.err
        closed = ClosedPortal(live, token, published.out.strip())
        await until(closed.is_complete, timeout_s=60, interval_s=0.5)
        yield closed


async def test_owner_watches_a_private_video_by_session_and_resumes_elsewhere(
    open_page: OpenPage, closed: ClosedPortal
) -> None:
    base_url = closed.portal.base_url
    film = f"{base_url}/videos/{closed.video_id}"
    first, second = [await open_page() for _ in range(2)]
    await first.goto(film)
    assert await first.locator("video").count() == 0
    for page in (first, second):
        form = {"email": OWNER, "password": PASSWORD}
        await page.context.request.post(f"{base_url}/sign-in", form=form)
    segment_urls = record_requests(first, "X-Amz-Expires=")
    await open_player(first, film)
    # Another device would request the stream without the session.
    assert await read(first, "video.disableRemotePlayback")
    assert await first.locator("media-cast-button, media-airplay-button").count() == 0
    await read(first, "void (video.currentTime = 9)")
    await play_past(first, 10)
    assert segment_urls
    assert all("X-Amz-Expires=300" in url for url in segment_urls)
    async with first.expect_response("**/position") as saved:
        await read(first, "video.pause()")
    assert (await saved.value).status == 204
    await open_player(second, film)
    await wait_for(second, "video.currentTime >= 10")

    await second.goto(base_url)
    row = second.get_by_role("region", name="Continue watching")
    name = re.compile(r"^A film, 0:1\d left$")
    await expect(row.get_by_role("link")).to_have_accessible_name(name)
    await expect(row.get_by_role("progressbar")).to_have_attribute("value", re.compile(r"^[45]\d$"))
    await suits_everyone(second, "continue-watching")
    await row.get_by_role("button", name="Remove A film from Continue watching").click()
    await expect(row).to_have_count(0)
    await second.goto(f"{base_url}/account")
    await second.get_by_role("button", name="Clear watch history").click()
    await expect(second.get_by_text("Watch history cleared.")).to_be_visible()
    await second.wait_for_function("() => !localStorage['portal.positions']")


async def test_upload_is_shared_with_a_person_and_added_to_a_series(
    open_page: OpenPage, closed: ClosedPortal, short_video: Path
) -> None:
    base_url = closed.portal.base_url
    viewer = "vera@example.org"
    add = ("accounts", "add", viewer, "--role", "viewer", "--password-stdin")
    assert (await command(closed.portal.environ, *add, typed=f"{PASSWORD}\n")).code == 0
    sender, watcher = [await open_page(base_url=base_url) for _ in range(2)]
    for page, email in ((sender, OWNER), (watcher, viewer)):
        form = {"email": email, "password": PASSWORD}
        await page.context.request.post("/sign-in", form=form)
    await watcher.goto("/?whose=shared")
    await expect(watcher.get_by_text("Nothing is shared with you yet")).to_be_visible()

    series_id = await closed.make_series("Lessons")
    await open_upload(sender)
    posts = record_requests(sender, "/api/videos?", method="POST")
    changes = record_requests(sender, "/access", method="P")
    await choose(sender, short_video)
    await fill_in(sender, title="For Vera")
    field = sender.get_by_label("Share with")
    await field.press_sequentially("ve")
    await expect(sender.locator("#holders option")).to_have_attribute("value", viewer)
    await field.fill("ghost")
    await is_uploaded(sender)
    await publish_button(sender).click()
    await expect(sender.get_by_text("“ghost” is nobody here")).to_be_visible()
    await expect(field).to_be_focused()
    await suits_everyone(sender, "upload-shared")
    await field.fill(f"{viewer}, ")
    series = sender.get_by_label("Series", exact=True)
    await series.select_option("Lessons")
    await publish_button(sender).click()
    await is_ready(sender, short_video.name)
    share = "visibility=private&share=vera%40example.org"
    listed = await sender.context.request.get(f"/api/videos?series={series_id}")
    assert [video["title"] for video in (await listed.json())["videos"]] == ["For Vera"]
    assert posts[1:] == [f"{base_url}/api/videos?{share}"]
    assert changes == []

    await watcher.reload()
    await watcher.get_by_role("link", name="For Vera").first.click()
    await watcher.wait_for_url("**/videos/*")
    await play_past(watcher, 0.5)

    await sender.goto("/videos")
    await sender.get_by_role("checkbox", name="Select A film").check()
    bar = sender.get_by_role("group", name="Change the selected videos")
    await bar.locator("summary", has_text="Share with…").click()
    field = bar.get_by_label("Share with")
    await field.press_sequentially("ve")
    await expect(sender.locator("#holders option")).to_have_attribute("value", viewer)
    await suits_everyone(sender, "table-shared")
    await field.fill(viewer)
    # The form's first button adds tags.
    await field.press("Enter")
    toast = sender.locator(".toast__message")
    await expect(toast).to_have_text("1 video shared.")
    await sender.get_by_role("checkbox", name="Select A film").check()
    await bar.locator("summary", has_text="Series").click()
    await bar.get_by_label("Series").select_option("Lessons")
    await bar.get_by_role("button", name="Add to series").click()
    await expect(toast).to_have_text("1 video added to the series.")
    await sender.goto(f"/series/{series_id}")
    await expect(sender.locator(".series-row__title")).to_have_text(["For Vera", "A film"])
    await watcher.goto("/?whose=shared")
    for title in ("A film", "For Vera"):
        await expect(watcher.get_by_role("link", name=title).first).to_be_visible()


async def test_playback_link_plays_on_allowed_sites_until_it_is_revoked(
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
        # The browser has no session, so the link alone grants the player.
        frame = await show_framed(page, allowed, link["embedUrl"])
        await wait_for(frame, "video.readyState >= 2")
        assert await read(frame, "video.buffered.end(0)") < FILM_S - 6
        assert await page.context.cookies() == []
        requests: list[Request] = []
        responses: list[Response] = []

        def record_request(request: Request) -> None:
            if request.redirected_from in (None, *requests):
                requests.append(request)

        def record_response(response: Response) -> None:
            if response.request in requests:
                responses.append(response)

        page.on("response", record_response)
        await closed.ask("DELETE", f"/playback-links/{link['id']}", status=204)
        # Requests from before the revocation may still succeed, so only later ones count.
        page.on("request", record_request)
        await frame.evaluate(f"document.querySelector('video').currentTime = {FILM_S - 2}")

        def refusals() -> set[int]:
            return {response.status for response in responses if "/p/" in response.url}

        await until(refusals, timeout_s=10)
        assert refusals() == {404}
        # Storage delivers no segment, either.
        segments = [response for response in responses if ".m4s" in response.url]
        assert not any(response.ok for response in segments)


async def test_site_of_a_playback_link_controls_the_player_and_gets_no_token(
    page: Page, closed: ClosedPortal
) -> None:
    life = {"expiresInSeconds": 600}
    link = await closed.ask("POST", "/playback-links", status=201, json=life)
    await page.add_init_script(SITE)
    async with framing_site() as site:
        access = {"visibility": "private", "signedInOnly": False, "embedOrigins": [site]}
        await closed.ask("PUT", "/access", json=access)
        await show_framed(page, site, f"{link['embedUrl']}?t=2")
        await wait_until(page, "valuesOf('ready').length")
        events = ("play", "timeupdate", "seeked", "progress", "pause", "error")
        for method, value in [*(("addEventListener", event) for event in events), ("mute", None)]:
            await tell(page, method, value)
        await tell(page, "play")
        await wait_until(page, "valuesOf('timeupdate').some(({ seconds }) => seconds > 2.3)")
        [token] = re.findall(r"/p/([^/]+)/embed/", link["embedUrl"])
        received = await page.evaluate("received")
        address = f"{closed.portal.base_url}/embed/{closed.video_id}?t=2"
        assert received[0]["value"]["src"] == address
        assert token not in str(received)
        assert "/p/" not in str(received)
