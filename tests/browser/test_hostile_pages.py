"""Hostile texts stay text on every kind of page, in a real browser.

A text that became markup would cause a dialog, a violation of the content security policy, an
error, a request to another host, or foreign elements in the page.
"""

import asyncio
import json
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from chromium import OpenPage
from hostile_texts import DIRECTIONS, LINKS, MARKUP, ODDITIES
from library_rows import Rows
from playwright.async_api import Page, Request, expect
from running_portal import LivePortal, create, read

from portal.text import shown

# Requests for posters and playlists fail: these videos have no files.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of (404|405)")]

MAX_TITLE = 200
# Pages that are opened at the same time.
TABS = 3
# Titles that contain all hostile texts.
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
    UPDATE versions SET status = 'ready', published_attempt = 1, has_poster = true,
        has_storyboard = true, duration_s = 61, width = 640, height = 360 WHERE id = %s
"""
FAILED = """
    UPDATE versions SET status = 'failed', failure_code = 'damaged', failure_message = %s
    WHERE id = %s
"""
# A sound track with a name from its file.
RENDITION = """
    INSERT INTO renditions (version_id, kind, position, name, label, state, attempt_number,
        average_bandwidth_bps, size_bytes, tries, copied, is_default)
    VALUES (%s, 'audio', 1, 'audio', %s, 'complete', 1, 128000, 1000, 0, false, true)
"""
# Captions that the portal would refuse or clean if they were uploaded.
CAPTIONS = """
    INSERT INTO captions (video_id, language, label, is_default, source, text, search, cue_count,
        version, changed_at)
    VALUES (%s, 'en', %s, true, 'file', %s, 'harbour:1', 1, 1, now())
"""
CHAPTERS = "INSERT INTO chapters (video_id, saved) VALUES (%s, %s::jsonb)"
CUES = "".join(
    f"00:00:{number:02}.000 --> 00:01:00.000\n{text}\n\n" for number, text in enumerate(MARKUP)
)
# Injected elements, and the surplus width of the page.
LOOK = """() => ({
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


def addresses(base_url: str, videos: list[str], waiting: list[str]) -> list[str]:
    """Return the address of every page and fragment that shows texts of users."""
    paths = ["/", "/upload", "/api/docs", "/videos", "/api/videos"]
    paths += [f"/videos/{video_id}" for video_id in waiting]
    ends = ("", "/edit", "/delete", "/related", "/status", "/facts", "/share", "/remaining")
    for video_id in videos:
        paths += [f"/videos/{video_id}{end}" for end in (*ends, "/poster")]
        paths += [f"/videos/{video_id}/{path}" for path in ("captions/tracks", "chapters/edit")]
        paths += [f"/embed/{video_id}", f"/embed/{video_id}/stage", f"/api/videos/{video_id}"]
        paths.append(f"/oembed?url={base_url}/videos/{video_id}")
        paths.append(f"/library/progress?id={video_id}")
    paths += [f"/videos/{videos[0]}/captions/en/edit", "/?q=harbour"]
    for text in (quote(title, safe="") for title in TITLES):
        paths += [f"/?q={text}&tag={text}&status={text}", f"/{text}"]
    return paths


def watch(page: Page, hosts: set[str]) -> list[str]:
    """Return a growing list of the page's dialogs, popups and requests to other hosts."""
    incidents: list[str] = []

    def note(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc not in hosts:
            incidents.append(f"request: {request.url}")

    page.on("request", note)
    page.on("dialog", lambda dialog: incidents.append(f"dialog: {dialog.message}"))
    page.on("popup", lambda popup: incidents.append(f"popup: {popup.url}"))
    return incidents


async def look_at(page: Page, base_url: str, paths: list[str]) -> None:
    """Open the addresses one after the other, and check that no text became markup."""
    for path in paths:
        await page.goto(base_url + path, wait_until="load")
        state = await page.evaluate(LOOK)
        assert state["origin"] == base_url, path
        if not path.startswith(("/api/videos", "/oembed")):
            # The browser shows JSON in its own viewer.
            assert state["injected"] == 0, path
        assert state["excess"] <= 0, path


async def test_typed_text_never_becomes_markup(
    portal: LivePortal, open_page: OpenPage, tmp_path: Path
) -> None:
    (tmp_path / "a.mp4").write_bytes(b"no video")
    texts = {"description": DESCRIPTION, "tags": TAGS, "fileName": FILE_NAME}
    base_url = portal.base_url
    titles = (*TITLES, TITLES[0], TITLES[0])
    video_ids = [
        str((await create(base_url, tmp_path / "a.mp4", title=title, **texts))["id"])
        for title in titles
    ]
    *waiting, ready, failed = video_ids
    rows = Rows(portal.environ["DATABASE_URL"])
    await rows.run(READY, ready)
    await rows.run(FAILED, "".join(MARKUP), failed)
    await rows.run(RENDITION, ready, "".join(MARKUP))
    await rows.run(CAPTIONS, ready, "".join(MARKUP), f"WEBVTT\n\n{CUES}")
    chapters = [{"start_s": float(start_s), "title": text} for start_s, text in enumerate(MARKUP)]
    await rows.run(CHAPTERS, ready, json.dumps(chapters))
    storage = portal.environ["S3_ENDPOINT_URL"]
    hosts = {urlsplit(address).netloc for address in (base_url, storage)}
    paths = addresses(base_url, [ready, failed, waiting[0]], waiting)
    pages = [await open_page() for _ in range(TABS)]
    incidents = [watch(page, hosts) for page in pages]
    await asyncio.gather(
        *(look_at(page, base_url, paths[tab::TABS]) for tab, page in enumerate(pages))
    )
    page = pages[0]
    await page.goto(f"{base_url}/videos/{ready}")
    await page.get_by_text("Transcript", exact=True).click()
    await expect(page.locator("[data-transcript-list] a")).to_have_count(len(MARKUP))
    assert (await page.evaluate(LOOK))["injected"] == 0
    await page.goto(f"{base_url}/videos/{ready}/captions/en/edit")
    await expect(page.get_by_label("cue 1: text")).to_have_value(MARKUP[0])
    for title, video_id in zip(TITLES, waiting, strict=True):
        await page.goto(f"{base_url}/videos/{video_id}")
        words = " ".join(shown(title).split())
        heading = await page.locator("h1").text_content()
        assert " ".join((heading or "").split()) == words
        assert " ".join((await page.title()).split()) == f"{words} · Portal"
    # The form has the recorded title, not the shown one; saving another field keeps it.
    await page.goto(f"{base_url}/videos/{waiting[4]}/edit")
    assert await page.locator("#title").input_value() == TITLES[4]
    await page.locator("#description").fill("A word.")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.locator("#details").get_by_text("Saved.")).to_be_visible()
    assert (await read(base_url, waiting[4]))["title"] == TITLES[4]
    assert incidents == [[]] * TABS
