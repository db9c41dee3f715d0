"""Every kind of page with texts made to do harm, in a real browser.

A text that became markup would be seen by what it does: a dialog, a violation of the content
security policy, an error, a request to another host, or a page that is no longer itself.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import pytest
from chromium import OpenPage
from hostile_texts import DIRECTIONS, LINKS, MARKUP, ODDITIES
from library_rows import Rows
from playwright.async_api import Page, Request, expect
from running_portal import LivePortal, create, fresh_portal, read

from portal.text import shown

# Of the posters and playlists that these rows have no files for.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of (404|405)")]

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
    file = tmp_path_factory.mktemp("hostile") / "a.mp4"
    file.write_bytes(b"no video")
    texts = {"description": DESCRIPTION, "tags": TAGS, "fileName": FILE_NAME}
    async with fresh_portal(services) as portal:

        async def created(title: str) -> str:
            return str((await create(portal.base_url, file, title=title, **texts))["id"])

        waiting = {title: await created(title) for title in TITLES}
        ready, failed = [await created(TITLES[0]) for _ in range(2)]
        rows = Rows(portal.environ["DATABASE_URL"])
        await rows.run(READY, ready)
        await rows.run(FAILED, "".join(MARKUP), failed)
        await rows.run(RENDITION, ready, "".join(MARKUP))
        yield Hostile(portal, waiting, ready, failed)


@pytest.fixture
async def watched(open_page: OpenPage, hostile: Hostile) -> AsyncIterator[Page]:
    """A page on the hostile portal; it may open no dialog, and ask no other host."""
    known = (hostile.portal.base_url, hostile.portal.environ["S3_ENDPOINT_URL"])
    hosts = {urlsplit(address).netloc for address in known}
    seen: list[str] = []

    def note(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc not in hosts:
            seen.append(f"request: {request.url}")

    page = await open_page()
    page.on("request", note)
    page.on("dialog", lambda dialog: seen.append(f"dialog: {dialog.message}"))
    page.on("popup", lambda popup: seen.append(f"popup: {popup.url}"))
    yield page
    assert seen == []


def addresses(hostile: Hostile) -> list[str]:
    """Every page and fragment that shows something of someone's."""
    paths = ["/", "/upload", "/api/docs", "/videos", "/api/videos"]
    paths += [f"/videos/{video_id}" for video_id in hostile.waiting.values()]
    for video_id in (hostile.ready, hostile.failed, next(iter(hostile.waiting.values()))):
        paths += [f"/videos/{video_id}{end}" for end in ("", "/edit", "/delete", "/related")]
        paths += [f"/videos/{video_id}{end}" for end in ("/status", "/facts", "/share")]
        paths += [f"/videos/{video_id}{end}" for end in ("/remaining", "/poster")]
        paths += [f"/embed/{video_id}", f"/embed/{video_id}/stage", f"/api/videos/{video_id}"]
        paths.append(f"/oembed?url={hostile.portal.base_url}/videos/{video_id}")
        paths.append(f"/library/progress?id={video_id}")
    for text in (*MARKUP, *DIRECTIONS, ODDITIES[0]):
        paths.append(f"/?q={quote(text)}&tag={quote(text)}&status={quote(text)}")
    paths += [f"/{quote(text, safe='')}" for text in MARKUP]
    return paths


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
    for title, video_id in hostile.waiting.items():
        await watched.goto(f"{hostile.portal.base_url}/videos/{video_id}")
        words = " ".join(shown(title).split())
        heading = await watched.locator("h1").text_content()
        assert " ".join((heading or "").split()) == words
        assert " ".join((await watched.title()).split()) == f"{words} · Portal"


async def test_editing_keeps_every_character(watched: Page, hostile: Hostile) -> None:
    """The form holds what is recorded, not how it is shown; saving it again changes nothing."""
    title = TITLES[4]
    await watched.goto(f"{hostile.portal.base_url}/videos/{hostile.waiting[title]}/edit")
    assert await watched.locator("#title").input_value() == title
    await watched.locator("#save-button").click()
    await expect(watched.locator("#details").get_by_text("Saved.")).to_be_visible()
    record = await read(hostile.portal.base_url, hostile.waiting[title])
    assert record["title"] == title
