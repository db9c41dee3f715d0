"""Addresses of podcast feeds, copied and created by keyboard."""

import re
from collections.abc import AsyncIterator

import pytest
from chromium import OWNER, PASSWORD, OpenPage, suits_everyone
from command_line import portal as command
from library_rows import Rows
from playwright.async_api import Page, expect
from running_portal import LivePortal, fresh_portal

CONTENT = b"a file of eighteen"
KEY = "SELECT key FROM uploads ORDER BY created_at DESC LIMIT 1"


@pytest.fixture(scope="module")
async def podcasts(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """Portal with feeds and an owner, and without a worker."""
    async with fresh_portal(services, FEEDS="on") as portal:
        add = ("accounts", "add", OWNER, "--role", "owner", "--password-stdin")
        assert (await command(portal.environ, *add, typed=f"{PASSWORD}\n")).code == 0
        yield portal


async def put_file(page: Page, portal: LivePortal, number: int) -> str:
    """Create a ready video with a file that feeds name, and return its id."""
    rows = Rows(portal.environ["DATABASE_URL"])
    video_id = await rows.add(number, "Harbour at dawn")
    body = {"fileName": "a.mp4", "contentType": "video/mp4"}
    own_page = {"Origin": portal.base_url}
    answer = await page.request.post("/api/videos/presign", data=body, headers=own_page)
    address = (await answer.json())["uploadUrl"]
    headers = {"Content-Type": "video/mp4"}
    assert (await page.request.put(address, data=CONTENT, headers=headers)).ok
    await rows.run(
        "INSERT INTO renditions (kind, name, position, state, tries, copied, is_default,"
        " attempt_number, width, height, version_id)"
        " VALUES ('video', '180p', 0, 'complete', 0, false, false, 1, 320, 180, %s)",
        video_id,
    )
    await rows.run(
        "INSERT INTO downloads (video_id, name, state, job_id, tries, size_bytes, requester,"
        f" requested_at, key) VALUES (%s, '180p.mp4', 'ready', 0, 0, 18, '', now(), ({KEY}))",
        video_id,
    )
    return video_id


@pytest.mark.parametrize("width", [360, 1440])
async def test_addresses_are_copied_and_created_by_keyboard(
    open_page: OpenPage, podcasts: LivePortal, width: int
) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    page = await open_page(width=width, base_url=podcasts.base_url, permissions=permissions)
    await page.request.post("/sign-in", form={"email": OWNER, "password": PASSWORD})
    video_id = await put_file(page, podcasts, width)
    await page.goto("/")
    links = page.locator("link[rel=alternate][type='application/rss+xml']")
    await expect(links).to_have_count(2)
    await page.get_by_role("searchbox").press_sequentially("harbour")
    address = re.compile(r"/feeds/library\.xml\?kind=video&q=harbour$")
    await expect(page.locator("#feed-video")).to_have_value(address)
    await page.locator("summary", has_text="Podcast feeds").press("Enter")
    await page.get_by_role("button", name="Copy: Podcast with video").press("Enter")
    await expect(page.locator("[data-copied]")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert address.search(copied)
    await suits_everyone(page, "feeds")

    await page.get_by_role("link", name="Private podcast feeds").press("Enter")
    await page.get_by_role("button", name="Create new addresses").press("Enter")
    private = await page.get_by_role("textbox", name="Podcast with video").input_value()
    await suits_everyone(page, "private-feeds")
    feed = await (await page.request.get(private)).text()
    key = private.partition("key=")[2]
    enclosure = f"{podcasts.base_url}/feeds/videos/{video_id}.mp4?key={key}"
    assert f'"{enclosure}"' in feed
    # The test client of other tests sets this header by itself.
    head = await page.request.head(enclosure)
    assert (head.status, head.headers["content-length"]) == (200, str(len(CONTENT)))
    part = await page.request.get(enclosure, headers={"Range": "bytes=2-5"})
    assert (part.status, await part.body()) == (206, CONTENT[2:6])
    assert part.headers["content-range"] == f"bytes 2-5/{len(CONTENT)}"

    await page.get_by_role("link", name="Back to your account").press("Enter")
    await page.get_by_role("button", name="Revoke addresses").press("Enter")
    await expect(page.get_by_role("heading", name="Account", level=1)).to_be_visible()
    assert (await page.request.get(private)).status == 404
