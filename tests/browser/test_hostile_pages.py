"""Scripts never make markup of hostile texts, in a real browser.

A text that became markup would cause a dialog, a violation of the content security policy, an
error, a request to another host, or foreign elements in the page. Pages without scripts are tested
by `tests/security/test_hostile_texts.py`.
"""

from urllib.parse import quote, urlsplit

import pytest
from hostile_texts import MARKUP, TITLES, make_hostile_videos
from playwright.async_api import Page, Request, expect
from running_portal import LivePortal, read

from portal.config import Config
from portal.database.connection import open_database

# Requests for posters and playlists fail: these videos have no files.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of (404|405)")]

# Injected elements, and the surplus width of the page.
LOOK = """() => [
    document.querySelectorAll(
        "script:not([type=module], [type='application/ld+json']), base, math,"
        + " meta[http-equiv], [onerror], [onclick],"
        + " [onload], [onfocus], [onmouseover], body iframe, img[src*=elsewhere],"
        + " a[href^='javascript:' i], a[href^='data:' i], a[href^='file:' i],"
        + " [hx-get*=elsewhere], style, [style*=display]").length,
    Math.max(document.documentElement.scrollWidth - innerWidth, 0),
]"""


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


async def check(page: Page, portal: LivePortal) -> None:
    """Check that no text became markup, made the page too wide, or led elsewhere."""
    assert await page.evaluate(LOOK) == [0, 0], page.url
    assert page.url.startswith(f"{portal.base_url}/")


async def test_typed_text_never_becomes_markup(portal: LivePortal, page: Page) -> None:
    base_url = portal.base_url
    async with open_database(Config.from_env(portal.environ)):
        waiting, failed, ready = await make_hostile_videos()
    addresses = (base_url, portal.environ["S3_ENDPOINT_URL"])
    incidents = watch(page, {urlsplit(address).netloc for address in addresses})
    watch_page = f"/videos/{ready.id}"
    for path in (
        "/",
        f"/?q={quote(TITLES[0], safe='')}&tag={quote(TITLES[1], safe='')}",
        "/videos",
        f"/embed/{ready.id}",
        f"/videos/{failed.id}",
        *(f"/videos/{video.id}" for video in waiting),
        *(f"{watch_page}/{name}" for name in ("edit", "cuts", "statistics", "chapters/edit")),
    ):
        await page.goto(base_url + path, wait_until="load")
        await check(page, portal)
    await page.goto(base_url + watch_page)
    await page.get_by_text("Transcript", exact=True).click()
    await expect(page.locator("[data-transcript-list] a")).to_have_count(len(MARKUP))
    await check(page, portal)
    await page.goto(f"{base_url}{watch_page}/captions/en/edit")
    await expect(page.get_by_label("cue 1: text")).to_have_value(MARKUP[0])
    await check(page, portal)
    # The form has the recorded title, not the shown one; saving another field keeps it.
    await page.goto(f"{base_url}/videos/{waiting[4].id}/edit")
    assert await page.locator("#title").input_value() == TITLES[4]
    await page.locator("#description").fill("A word.")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.locator("#details").get_by_text("Saved.")).to_be_visible()
    assert (await read(base_url, str(waiting[4].id)))["title"] == TITLES[4]
    assert incidents == []
