"""The upload form in a real browser: what an editor sees, does, and can recover from."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_kit import Complaints, OpenContext, play_past
from playwright.async_api import Page, expect

STORAGE = "**/videos/*.mp4?*"  # the signed address a file is PUT to
SLOW_BPS = 400_000


async def _slow_down(page: Page) -> None:
    """Make uploads slow enough to watch."""
    session = await page.context.new_cdp_session(page)
    await session.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": 5,
            "downloadThroughput": -1,
            "uploadThroughput": SLOW_BPS,
        },
    )


@pytest.fixture(scope="session")
def long_upload(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video with a megabyte of padding after it (a `free` box), for something to watch."""
    path = tmp_path_factory.mktemp("upload") / "my_holiday  film.mp4"
    padding = bytes(1_200_000)
    box = (len(padding) + 8).to_bytes(4, "big") + b"free" + padding
    path.write_bytes(short_video.read_bytes() + box)
    return path


async def _choose(page: Page, path: Path) -> None:
    await page.locator("input[type=file]").set_input_files(path)


async def _fill_in(page: Page, *, title: str | None = None) -> None:
    if title is not None:
        await page.get_by_label("Title").fill(title)
    await page.get_by_label("Description").fill("By the sea.\nTwice.")
    await page.get_by_role("checkbox").first.check()
    await page.get_by_label("Tags").fill("sea, sun")


async def test_video_is_published_from_form_filled_in_during_upload(
    page: Page, long_upload: Path
) -> None:
    await page.goto("/upload")
    await _slow_down(page)
    await _choose(page, long_upload)
    await expect(page.get_by_label("Title")).to_have_value("my holiday film")
    await expect(page.locator("[data-percent]")).to_contain_text("%")
    await expect(page.locator("[data-rest]")).to_contain_text("/s")
    await expect(page.get_by_role("progressbar")).to_be_visible()

    await _fill_in(page)
    await page.get_by_role("button", name="Publish video").click()
    await expect(page.get_by_text("published as soon as the upload finishes")).to_be_visible()

    await page.wait_for_url("**/videos/*")
    await expect(page.get_by_role("heading", level=1)).to_have_text("my holiday film")
    await expect(page.get_by_text("By the sea.")).to_be_visible()


async def test_status_is_polled_until_video_plays(page: Page, short_video: Path) -> None:
    polls: list[str] = []
    page.on("request", lambda sent: polls.append(sent.url) if "/status" in sent.url else None)
    await page.goto("/upload")
    await _choose(page, short_video)
    await _fill_in(page, title="Played to the end")
    await page.get_by_role("button", name="Publish video").click()
    await page.wait_for_url("**/videos/*")

    await expect(page.locator("video")).to_be_visible(timeout=90_000)
    assert polls
    # What processing found out is on the page without a reload.
    await expect(page.locator("#facts")).to_contain_text("320 × 180")  # noqa: RUF001
    await play_past(page, 0.5)

    seen = len(polls)
    # Two whole intervals in which a poll would have come.
    await page.wait_for_timeout(2_200)
    assert len(polls) == seen
    await expect(page.locator("#status[hx-get]")).to_have_count(0)


async def test_refused_form_keeps_what_was_typed(
    page: Page, complaints: Complaints, short_video: Path
) -> None:
    complaints.expect("status of 422")
    title = "t" * 201
    await page.goto("/upload")
    await _choose(page, short_video)
    await _fill_in(page, title=title)
    await page.get_by_role("button", name="Publish video").click()

    field = page.get_by_label("Title")
    await expect(page.locator("#title-error")).to_contain_text("200 characters")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_be_focused()
    await expect(field).to_have_value(title)
    await expect(page.get_by_label("Description")).to_have_value("By the sea.\nTwice.")
    await expect(page.get_by_role("checkbox").first).to_be_checked()
    await expect(page.get_by_label("Tags")).to_have_value("sea, sun")

    await field.fill("Short enough")
    await expect(page.locator("#title-error")).to_be_empty()
    await page.get_by_role("button", name="Publish video").click()
    await page.wait_for_url("**/videos/*")


async def test_empty_form_names_each_missing_field(page: Page) -> None:
    await page.goto("/upload")
    await page.get_by_role("button", name="Publish video").click()
    await expect(page.locator("#file-error")).to_have_text("Choose the video file to publish.")
    await expect(page.locator("#title-error")).to_have_text("Give the video a title.")
    await expect(page.locator("#categories-error")).to_have_text("Choose at least one category.")
    await expect(page.locator("input[type=file]")).to_be_focused()


@pytest.mark.parametrize(
    ("name", "media_type", "content", "words"),
    [
        ("notes.txt", "text/plain", b"notes", "not an MP4 or QuickTime video"),
        ("film.avi", "video/x-msvideo", b"RIFF", "not an MP4 or QuickTime video"),
        ("page.mp4", "text/html", b"<p>", "not an MP4 or QuickTime video"),
        ("empty.mp4", "video/mp4", b"", "is empty"),
    ],
)
async def test_unsuitable_file_is_refused_at_once(
    page: Page, name: str, media_type: str, content: bytes, words: str
) -> None:
    await page.goto("/upload")
    file = {"name": name, "mimeType": media_type, "buffer": content}
    await page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    await expect(page.locator("#file-error")).to_contain_text(words)
    await expect(page.locator("[data-transfer]")).to_be_hidden()


@pytest.mark.parametrize(
    ("name", "given", "sent"),
    [
        ("a.mov", "", "video/quicktime"),
        ("a.m4v", "video/x-m4v", "video/mp4"),
        ("A.MP4", "video/mp4", "video/mp4"),
    ],
)
async def test_type_comes_from_extension_where_browser_knows_none(
    page: Page, name: str, given: str, sent: str
) -> None:
    await page.goto("/upload")
    file = {"name": name, "mimeType": given, "buffer": b"x" * 100}
    async with page.expect_request(lambda request: request.method == "PUT") as put:
        await page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    assert (await put.value).headers["content-type"] == sent
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()


async def test_upload_is_retried_with_new_address_when_storage_is_down(
    page: Page, complaints: Complaints, short_video: Path
) -> None:
    complaints.expect("Failed to load resource")
    addresses: list[str] = []
    page.on("request", lambda sent: addresses.append(sent.url) if sent.method == "PUT" else None)
    await page.route(STORAGE, lambda route: route.abort())
    await page.goto("/upload")
    await _choose(page, short_video)
    await expect(page.get_by_role("alert")).to_contain_text("The upload was interrupted")
    await _fill_in(page, title="Second try")
    await page.get_by_role("button", name="Publish video").click()

    await page.unroute(STORAGE)
    await page.get_by_role("button", name="Try again").click()
    # It was asked to publish before, and goes on by itself.
    await page.wait_for_url("**/videos/*")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Second try")
    assert len(set(addresses)) == 2


async def test_busy_portal_is_asked_again_after_the_time_it_names(
    page: Page, complaints: Complaints, short_video: Path
) -> None:
    complaints.expect("status of 503")
    await page.route(
        "**/api/videos/presign",
        lambda route: route.fulfill(
            status=503,
            headers={"Retry-After": "1", "Content-Type": "application/problem+json"},
            body='{"status": 503, "code": "storage_unavailable", "detail": "Down."}',
        ),
        times=1,
    )
    await page.goto("/upload")
    await _choose(page, short_video)
    await expect(page.get_by_role("alert")).to_contain_text("Trying again in 1 s")
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()


async def test_unreachable_portal_keeps_the_upload(
    page: Page, complaints: Complaints, short_video: Path
) -> None:
    complaints.expect("Failed to load resource")
    await page.goto("/upload")
    await _choose(page, short_video)
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    await _fill_in(page, title="Offline for a moment")
    await page.route("**/api/videos", lambda route: route.abort(), times=1)
    await page.get_by_role("button", name="Publish video").click()
    await expect(page.get_by_role("alert")).to_contain_text("be reached")
    await page.get_by_role("button", name="Publish video").click()
    await page.wait_for_url("**/videos/*")


async def test_cancelled_upload_stops_and_keeps_the_form(page: Page, long_upload: Path) -> None:
    await page.goto("/upload")
    await _slow_down(page)
    await _choose(page, long_upload)
    await _fill_in(page, title="Kept")
    await expect(page.locator("[data-rest]")).to_contain_text("/s")
    async with page.expect_event("requestfailed") as failed:
        await page.get_by_role("button", name="Cancel upload").click()
    assert (await failed.value).method == "PUT"
    await expect(page.locator("input[type=file]")).to_be_focused()
    await expect(page.get_by_label("Title")).to_have_value("Kept")


async def test_leaving_during_upload_asks_first(page: Page, long_upload: Path) -> None:
    await page.goto("/upload")
    await _slow_down(page)
    await _choose(page, long_upload)
    await page.get_by_label("Title").click()  # browsers ask only people who touched the page
    async with page.expect_event("dialog") as asked:
        await page.evaluate("setTimeout(() => location.assign('/'))")
    dialog = await asked.value
    assert dialog.type == "beforeunload"
    await dialog.dismiss()
    await expect(page).to_have_url("/upload")


async def test_dropped_file_is_uploaded(page: Page) -> None:
    await page.goto("/upload")
    await page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["x".repeat(200)], "dropped.mov"));
            for (const type of ["dragover", "drop"]) {
                const event = new DragEvent(type, {
                    bubbles: true, cancelable: true, dataTransfer: transfer,
                });
                document.querySelector("main").dispatchEvent(event);
            }
        }"""
    )
    await expect(page.get_by_text("dropped.mov", exact=True)).to_be_visible()
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()


async def test_upload_without_scripts_says_what_is_needed(open_context: OpenContext) -> None:
    context = await open_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/upload")
    # Playwright's text search leaves out what is inside <noscript>.
    await expect(page.locator("noscript .notice")).to_be_visible()
    await expect(page.locator("form")).to_be_hidden()
