"""Every kind of page with texts made to do harm, in a real browser.

A text that became markup would be seen by what it does: a dialog, a violation of the content
security policy, an error, a request to another host, or a page that is no longer itself.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import aiohttp
import psycopg
import pytest
from api_client import metadata
from chromium import Complaints, OpenContext
from hostile_texts import DIRECTIONS, LINKS, MARKUP, ODDITIES
from playwright.async_api import Page, Request
from running_portal import LivePortal, fresh_database, run_portal

from portal.text import shown

MAX_TITLE = 200
# Texts that have to share a title, so that all are in one.
TITLES = (
    "".join(MARKUP[:6]),
    "".join(MARKUP[6:14])[:MAX_TITLE],
    "".join(MARKUP[14:])[:MAX_TITLE],
    "".join(LINKS)[:MAX_TITLE],
    "".join(DIRECTIONS),
    "".join(ODDITIES[:4])[:MAX_TITLE],
    "".join(ODDITIES[4:7])[:MAX_TITLE],
    ODDITIES[-1],
)
DESCRIPTION = "\n".join((*MARKUP, *LINKS, *DIRECTIONS, *ODDITIES))
TAGS = ", ".join(("<script>alert(1)</script>", '"onclick="alert(1)', DIRECTIONS[1], "\u202eabc"))
FILE_NAME = "\u202e<img src=x onerror=alert(1)>\"'gpj.mp4"
READY = """
    UPDATE videos SET status = 'ready', published_attempt = 1, has_poster = true,
        has_storyboard = true, duration_s = 61, width = 640, height = 360 WHERE id = %s
"""
FAILED = """
    UPDATE videos SET status = 'failed', failure_code = 'damaged', failure_message = %s
    WHERE id = %s
"""
# A name of a sound track, as a file may have it.
RENDITION = """
    INSERT INTO renditions (video_id, kind, position, name, label, state, attempt_number,
        average_bandwidth_bps, size_bytes, tries, copied, is_default)
    VALUES (%s, 'audio', 1, 'audio', %s, 'complete', 1, 128000, 1000, 0, false, true)
"""


@dataclass(frozen=True, slots=True)
class Hostile:
    """A portal full of hostile rows: the videos' ids by their titles, in every state."""

    portal: LivePortal
    waiting: dict[str, str]
    ready: str
    failed: str


@pytest.fixture(scope="module")
async def hostile(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Hostile]:
    work_dir = str(tmp_path_factory.mktemp("hostile"))
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, "WORK_DIR": work_dir}, worker=False) as portal,
        aiohttp.ClientSession(portal.base_url) as session,
    ):
        waiting = {title: await _created(session, title) for title in TITLES}
        ready, failed = [await _created(session, TITLES[0]) for _ in range(2)]
        async with await psycopg.AsyncConnection.connect(
            environ["DATABASE_URL"], autocommit=True
        ) as connection:
            await connection.execute(READY, [ready])
            await connection.execute(FAILED, ["".join(MARKUP), failed])
            await connection.execute(RENDITION, [ready, "".join(MARKUP)])
        yield Hostile(portal, waiting, ready, failed)


async def _created(session: aiohttp.ClientSession, title: str) -> str:
    asked = {"fileName": "a.mp4", "contentType": "video/mp4"}
    async with session.post("/api/videos/presign", json=asked) as response:
        upload = await response.json()
    headers = {"Content-Type": "video/mp4"}
    async with session.put(upload["uploadUrl"], data=b"no video", headers=headers) as response:
        assert response.status == 200
    texts = {"title": title, "description": DESCRIPTION, "tags": TAGS, "fileName": FILE_NAME}
    body = json.dumps(metadata(upload["key"], **texts))
    headers = {"Content-Type": "application/json"}
    async with session.post("/api/videos", data=body, headers=headers) as response:
        assert response.status == 201, await response.text()
        return str((await response.json())["id"])


class Watch:
    """What a page did that no page should: dialogs, and requests to other hosts."""

    def __init__(self, portal: LivePortal) -> None:
        storage = portal.environ["S3_ENDPOINT_URL"]
        self.hosts = {urlsplit(address).netloc for address in (portal.base_url, storage)}
        self.seen: list[str] = []

    def follow(self, page: Page) -> None:
        page.on("request", self._request)
        page.on("dialog", lambda dialog: self.seen.append(f"dialog: {dialog.message}"))
        page.on("popup", lambda popup: self.seen.append(f"popup: {popup.url}"))

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc not in self.hosts:
            self.seen.append(f"request: {request.url}")


@pytest.fixture
async def watched(
    open_context: OpenContext, complaints: Complaints, hostile: Hostile
) -> AsyncIterator[Page]:
    """A page on the hostile portal; afterwards it must have done nothing that it should not."""
    # Of the posters and playlists that these rows have no files for.
    complaints.expect("status of (404|405)")
    context = await open_context()
    watch = Watch(hostile.portal)
    page = await context.new_page()
    watch.follow(page)
    yield page
    assert watch.seen == []


def addresses(hostile: Hostile) -> list[str]:
    """Every page and fragment that shows something of someone's."""
    paths = ["/", "/upload", "/api/docs", "/videos/deleted", "/api/videos"]
    paths += [f"/videos/{video_id}" for video_id in hostile.waiting.values()]
    for video_id in (hostile.ready, hostile.failed, next(iter(hostile.waiting.values()))):
        paths += [f"/videos/{video_id}{end}" for end in ("", "/edit", "/delete", "/summary")]
        paths += [f"/videos/{video_id}{end}" for end in ("/status", "/facts", "/share")]
        paths += [f"/videos/{video_id}{end}" for end in ("/remaining", "/poster", "/summary/form")]
        paths += [f"/embed/{video_id}", f"/embed/{video_id}/stage", f"/api/videos/{video_id}"]
        paths.append(f"/oembed?url={hostile.portal.base_url}/videos/{video_id}")
        paths.append(f"/library/progress?id={video_id}")
    for text in (*MARKUP, *DIRECTIONS, ODDITIES[0]):
        paths.append(f"/?q={quote(text)}&tag={quote(text)}&status={quote(text)}")
    paths += [f"/{quote(text, safe='')}" for text in MARKUP]
    return paths


@pytest.mark.slow
async def test_no_text_becomes_more_than_text(watched: Page, hostile: Hostile) -> None:
    visited = addresses(hostile)
    assert len(visited) >= 100
    for path in visited:
        await watched.goto(hostile.portal.base_url + path, wait_until="load")
        found = await watched.evaluate(
            """() => ({
                origin: location.origin,
                injected: document.querySelectorAll(
                    "script:not([type=module]), base, math, meta[http-equiv], [onerror], [onclick],"
                    + " [onload], [onfocus], [onmouseover], body iframe, img[src*=elsewhere],"
                    + " a[href^='javascript:' i], a[href^='data:' i], a[href^='file:' i],"
                    + " [hx-get*=elsewhere], style, [style*=display]").length,
                // A fragment by itself has no styles that would make it fit.
                excess: document.querySelector("link[rel=stylesheet]")
                    ? document.documentElement.scrollWidth - innerWidth : 0,
            })"""
        )
        assert found["origin"] == hostile.portal.base_url, path
        if not path.startswith(("/api/videos", "/oembed")):
            # The browser shows JSON in a page of its own.
            assert found["injected"] == 0, path
        assert found["excess"] <= 0, path


@pytest.mark.parametrize("number", range(len(TITLES)))
@pytest.mark.slow
async def test_a_title_is_read_as_it_was_typed(
    watched: Page, hostile: Hostile, number: int
) -> None:
    title = TITLES[number]
    await watched.goto(f"{hostile.portal.base_url}/videos/{hostile.waiting[title]}")
    words = " ".join(shown(title).split())
    heading = await watched.locator("h1").text_content()
    assert " ".join((heading or "").split()) == words
    assert " ".join((await watched.title()).split()) == f"{words} · Portal"


@pytest.mark.slow
async def test_editing_keeps_every_character(watched: Page, hostile: Hostile) -> None:
    """The form holds what is recorded, not how it is shown; saving it again changes nothing."""
    title = TITLES[4]
    await watched.goto(f"{hostile.portal.base_url}/videos/{hostile.waiting[title]}/edit")
    assert await watched.locator("#title").input_value() == title
    await watched.locator("#save-button").click()
    await watched.wait_for_url(f"**/videos/{hostile.waiting[title]}")
    async with (
        aiohttp.ClientSession(hostile.portal.base_url) as session,
        session.get(f"/api/videos/{hostile.waiting[title]}") as response,
    ):
        assert (await response.json())["title"] == title
