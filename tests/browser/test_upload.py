"""Uploading one video in a real browser: what an editor sees, does, and can recover from."""

import base64
import re
from pathlib import Path

import pytest
from chromium import TRANSCODE_TIMEOUT_MS, OpenPage, Publish, play_past, record_requests
from playwright.async_api import Page, expect
from upload_page import (
    SLOW_BPS,
    choose,
    chosen_categories,
    details,
    fill_in,
    is_uploaded,
    line,
    open_upload,
    open_video,
    padded,
    press_publish,
    publish_button,
    refuse_with,
    slow_down,
    start_upload,
)

MOST_INTERACTIONS = 6


@pytest.fixture(scope="session")
def long_upload(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video with padding after it, for more than a second on a slow line."""
    path = tmp_path_factory.mktemp("upload") / "my_holiday  film.mp4"
    return padded(short_video, path, 400_000)


async def test_newcomer_copies_the_link_of_a_first_video_in_six_interactions(
    page: Page, short_video: Path
) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await open_upload(page)
    await expect(details(page)).to_be_hidden()
    await expect(publish_button(page)).to_be_hidden()
    place = line(page, short_video.name)
    interactions = [
        lambda: choose(page, short_video),
        lambda: page.get_by_role("combobox", name="Categories").click(),
        lambda: page.get_by_role("option", name="Music", exact=True).click(),
        lambda: page.get_by_role("button", name="Publish", exact=True).click(),
        lambda: place.get_by_role("button", name="Copy link").click(),
    ]
    assert len(interactions) <= MOST_INTERACTIONS
    for interact in interactions:
        await interact()
    await expect(place.get_by_role("button", name="Copied")).to_be_focused()
    address = await page.evaluate("navigator.clipboard.readText()")

    # The line turns live by itself, and so does its picture; nobody is led anywhere.
    await expect(place).to_contain_text("Ready to watch", timeout=TRANSCODE_TIMEOUT_MS)
    poster = place.locator("img")
    await expect(poster).to_have_attribute("src", re.compile("/poster.jpg"))
    await expect(poster).not_to_have_js_property("naturalWidth", 0)
    await expect(place.get_by_role("link", name="Edit")).to_have_attribute(
        "href", re.compile("/videos/.*/edit$")
    )
    await expect(page).to_have_url("/upload")
    await expect(details(page)).to_be_hidden()
    await expect(page.get_by_text("Upload more")).to_be_visible()
    await page.goto(address)
    await expect(page.get_by_role("heading", level=1)).to_have_text(short_video.stem)


@pytest.mark.complaint("Failed to load resource")
async def test_processing_that_fails_says_why_and_leads_to_the_workshop(
    page: Page, notes: Path
) -> None:
    # What the browser would have found out.
    await page.context.route("**/preflight-*.js", lambda route: route.fulfill(status=404))
    await start_upload(page, notes)
    await fill_in(page)
    await press_publish(page)
    place = line(page, notes.name)
    await expect(place).to_contain_text("Couldn’t be processed")  # noqa: RUF001 - as shown
    await expect(place).to_contain_text("not an MP4 or QuickTime video")
    await place.get_by_role("link", name="What to do").click()
    await page.wait_for_url("**/videos/*/edit")


async def test_video_is_published_from_details_filled_in_during_upload(
    page: Page, long_upload: Path
) -> None:
    await start_upload(page, long_upload, rate_bps=SLOW_BPS)
    await expect(page.get_by_label("Title")).to_have_value("my holiday film")
    place = line(page, long_upload.name)
    await expect(place).to_contain_text(re.compile(r"\d%.*/s.*left"))
    await expect(place.get_by_role("progressbar")).to_be_visible()
    await fill_in(page)
    await publish_button(page).click()
    await expect(place).to_contain_text("Will be published when the upload finishes")
    await expect(page.get_by_text("Keep this page open.")).to_be_visible()
    await slow_down(page, 0)
    await open_video(page, "my holiday film")
    await expect(page.get_by_text("By the sea.")).to_be_visible()


async def test_status_is_polled_until_video_plays(
    page: Page, publish: Publish, slow_video: Path
) -> None:
    polls = record_requests(page, "/status")
    await page.goto(f"/videos/{await publish(slow_video, 'Played to the end')}")

    await expect(page.locator("video")).to_be_visible(timeout=TRANSCODE_TIMEOUT_MS)
    assert polls
    # What others need of it is on the page without a reload.
    await expect(page.locator("#stream-address")).to_have_value(re.compile("master.m3u8$"))
    await play_past(page, 0.5)

    seen = len(polls)
    # Two whole intervals in which a poll would have come.
    await page.wait_for_timeout(2_200)
    assert len(polls) == seen
    await expect(page.locator("#status[hx-get]")).to_have_count(0)


@pytest.mark.complaint("status of 422")
async def test_refused_details_keep_what_was_typed(page: Page, short_video: Path) -> None:
    title = "t" * 201
    await start_upload(page, short_video)
    await fill_in(page, title=title)
    await publish_button(page).click()

    field = page.get_by_label("Title")
    await expect(page.locator("#title-error")).to_contain_text("200 characters")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_be_focused()
    await expect(field).to_have_value(title)
    await expect(page.get_by_label("Description")).to_have_value("By the sea.\nTwice.")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await expect(page.get_by_label("Tags")).to_have_value("sea, sun")

    await field.fill("Short enough")
    await expect(page.locator("#title-error")).to_be_empty()
    await press_publish(page)


@pytest.mark.complaint("status of 503")
async def test_busy_portal_is_asked_again_by_itself(page: Page, short_video: Path) -> None:
    busy = refuse_with(503, "storage_unavailable", retry_after_s=5)
    await page.route("**/api/videos/presign", busy, times=1)
    await start_upload(page, short_video)
    await expect(line(page, short_video.name)).to_contain_text("The portal is busy")
    await is_uploaded(page)


@pytest.mark.complaint("Failed to load resource")
async def test_machine_without_network_uploads_to_a_portal_of_its_own(
    page: Page, short_video: Path
) -> None:
    # Storage is only asked whether it is there, with a request that it refuses.
    no_network = "Object.defineProperty(Navigator.prototype, 'onLine', { value: false })"
    await page.add_init_script(no_network)
    await start_upload(page, short_video)
    await is_uploaded(page)


async def test_leaving_asks_while_something_is_in_flight(page: Page, long_upload: Path) -> None:
    await start_upload(page, long_upload, rate_bps=SLOW_BPS)
    await page.get_by_label("Title").click()  # browsers ask only people who touched the page
    async with page.expect_event("dialog") as asked:
        await page.evaluate("setTimeout(() => location.assign('/'))")
    dialog = await asked.value
    await dialog.dismiss()
    await expect(page).to_have_url("/upload")
    assert dialog.type == "beforeunload"


@pytest.mark.slow
async def test_dropped_file_is_uploaded(page: Page, short_video: Path) -> None:
    await open_upload(page)
    await page.evaluate(
        """(content) => {
            const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], "dropped.mov"));
            for (const type of ["dragover", "drop"]) {
                const event = new DragEvent(type, {
                    bubbles: true, cancelable: true, dataTransfer: transfer,
                });
                document.querySelector("main").dispatchEvent(event);
            }
        }""",
        base64.b64encode(short_video.read_bytes()).decode(),
    )
    await is_uploaded(page, "dropped.mov")


async def test_upload_without_scripts_says_what_is_needed(open_page: OpenPage) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto("/upload")
    # Playwright's text search leaves out what is inside <noscript>.
    await expect(page.locator("noscript .notice")).to_be_visible()
    await expect(page.locator("[data-upload-form]")).to_be_hidden()
