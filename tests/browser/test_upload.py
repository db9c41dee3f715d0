"""Uploading one video in a real browser: what an editor sees, does, and can recover from."""

import base64
import re
from pathlib import Path
from time import monotonic

import pytest
from chromium import TRANSCODE_TIMEOUT_MS, OpenPage, play_past, record_requests
from playwright.async_api import Page, Route, expect
from upload_page import (
    CREATION,
    SLOW_BPS,
    STORAGE,
    choose,
    fill_in,
    listen,
    open_upload,
    padded,
    press_publish,
    refuse,
    refuse_with,
    said,
    slow_down,
    start_upload,
    video_is_opened,
)


@pytest.fixture(scope="session")
def long_upload(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video with padding after it, for more than a second on a slow line."""
    path = tmp_path_factory.mktemp("upload") / "my_holiday  film.mp4"
    return padded(short_video, path, 400_000)


async def test_video_is_published_from_form_filled_in_during_upload(
    page: Page, long_upload: Path
) -> None:
    await start_upload(page, long_upload, rate_bps=SLOW_BPS)
    await expect(page.get_by_label("Title")).to_have_value("my holiday film")
    await expect(page.locator("[data-percent]").first).to_contain_text("%")
    await expect(page.locator("[data-rest]").first).to_contain_text("/s")
    await expect(page.get_by_role("progressbar")).to_be_visible()

    await fill_in(page)
    await page.get_by_role("button", name="Publish video").click()
    await expect(page.get_by_text("published as soon as the upload finishes")).to_be_visible()

    await video_is_opened(page, "my holiday film")
    await expect(page.get_by_text("By the sea.")).to_be_visible()


async def test_status_is_polled_until_video_plays(page: Page, short_video: Path) -> None:
    polls = record_requests(page, "/status")
    await start_upload(page, short_video)
    await fill_in(page, title="Played to the end")
    await press_publish(page)

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
async def test_refused_form_keeps_what_was_typed(page: Page, short_video: Path) -> None:
    title = "t" * 201
    await start_upload(page, short_video)
    await fill_in(page, title=title)
    await page.get_by_role("button", name="Publish video").click()

    field = page.get_by_label("Title")
    await expect(page.locator("#title-error-1")).to_contain_text("200 characters")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_be_focused()
    await expect(field).to_have_value(title)
    await expect(page.get_by_label("Description")).to_have_value("By the sea.\nTwice.")
    await expect(page.get_by_role("checkbox").first).to_be_checked()
    await expect(page.get_by_label("Tags")).to_have_value("sea, sun")

    await field.fill("Short enough")
    await expect(page.locator("#title-error-1")).to_be_empty()
    await press_publish(page)


async def test_empty_form_names_each_missing_field(page: Page) -> None:
    await open_upload(page)
    await page.get_by_role("button", name="Publish video").click()
    await expect(page.locator("#file-error")).to_have_text("Choose the video file to publish.")
    await expect(page.locator("#title-error-1")).to_have_text("Give the video a title.")
    await expect(page.locator("#categories-error-1")).to_have_text("Choose at least one category.")
    await expect(page.locator("[data-drop] input")).to_be_focused()


@pytest.mark.parametrize(
    ("name", "media_type", "content", "words"),
    [
        ("notes.txt", "text/plain", b"notes", "not an MP4 or QuickTime video"),
        ("film.avi", "video/x-msvideo", b"RIFF", "not an MP4 or QuickTime video"),
        ("page.mp4", "text/html", b"<p>", "not an MP4 or QuickTime video"),
        ("empty.mp4", "video/mp4", b"", "is empty"),
    ],
)
@pytest.mark.slow
async def test_unsuitable_file_is_refused_at_once(
    page: Page, name: str, media_type: str, content: bytes, words: str
) -> None:
    await open_upload(page)
    file = {"name": name, "mimeType": media_type, "buffer": content}
    await page.locator("[data-drop] input").set_input_files(file)  # type: ignore[arg-type]
    await expect(page.locator("#file-error")).to_contain_text(words)
    await expect(page.locator("[data-transfer]")).to_be_hidden()


async def test_limits_are_shown_and_a_larger_file_is_refused_at_once(page: Page) -> None:
    await open_upload(page)
    await expect(page.locator("#file-hint")).to_contain_text("Up to 100 GB and 12 h each")
    await page.evaluate(
        """() => {
            const file = new File(["x"], "huge.mp4", {type: "video/mp4"});
            Object.defineProperty(file, "size", {value: 100_000_000_001});
            const event = new DragEvent("drop", {bubbles: true, cancelable: true});
            const given = {types: ["Files"], files: [file]};
            Object.defineProperty(event, "dataTransfer", {value: given});
            document.querySelector("main").dispatchEvent(event);
        }"""
    )
    await expect(page.locator("#file-error")).to_contain_text("larger than 100 GB")


@pytest.mark.parametrize(
    ("name", "given", "sent"),
    [
        ("a.mov", "", "video/quicktime"),
        ("a.m4v", "video/x-m4v", "video/mp4"),
        ("A.MP4", "video/mp4", "video/mp4"),
    ],
)
@pytest.mark.slow
async def test_type_comes_from_extension_where_browser_knows_none(
    page: Page, short_video: Path, name: str, given: str, sent: str
) -> None:
    await open_upload(page)
    file = {"name": name, "mimeType": given, "buffer": short_video.read_bytes()}
    async with page.expect_request(lambda request: request.method == "PUT") as put:
        await page.locator("[data-drop] input").set_input_files(file)  # type: ignore[arg-type]
    assert (await put.value).headers["content-type"] == sent
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()


@pytest.mark.slow
@pytest.mark.complaint("Failed to load resource|unsafe header")
async def test_upload_is_retried_with_new_address_when_storage_refuses(
    page: Page, short_video: Path
) -> None:
    addresses = record_requests(page, method="PUT")
    await page.route(STORAGE, refuse)
    await start_upload(page, short_video)
    await expect(page.locator("[data-rest]").first).to_contain_text("trying again by itself")
    await expect(page.get_by_role("alert")).to_contain_text("refused the upload")
    await fill_in(page, title="Second try")
    await page.get_by_role("button", name="Publish video").click()
    await expect(page.get_by_text("needs your attention")).to_be_visible()

    refused = set(addresses)
    await page.unroute(STORAGE)
    await page.get_by_role("button", name="Try again").click()
    # It was asked to publish before, and goes on by itself.
    await video_is_opened(page, "Second try")
    assert set(addresses) - refused


@pytest.mark.complaint("status of 503")
async def test_busy_portal_is_asked_again_by_itself(page: Page, short_video: Path) -> None:
    busy = refuse_with(503, "storage_unavailable", retry_after_s=1)
    await page.route("**/api/videos/presign", busy, times=1)
    await start_upload(page, short_video)
    await expect(page.locator("[data-rest]").first).to_contain_text("The portal is busy")
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()


@pytest.mark.slow
@pytest.mark.complaint("status of 429")
async def test_publishing_and_sending_wait_as_long_as_a_busy_portal_asks(
    page: Page, short_video: Path
) -> None:
    asked_at: list[float] = []

    async def refuse_once(route: Route) -> None:
        asked_at.append(monotonic())
        if len(asked_at) % 2 == 0:
            await route.continue_()
        else:
            await refuse_with(429, "too_many_requests", retry_after_s=2)(route)

    await page.route("**/api/videos/presign", refuse_once)
    await page.route(CREATION, refuse_once)
    await start_upload(page, short_video)
    await fill_in(page, title="In no hurry")
    await expect(page.locator("[data-rest]").first).to_contain_text("The portal is busy")
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    await press_publish(page)
    first, second, third, fourth = asked_at
    assert second - first >= 2
    assert fourth - third >= 2


@pytest.mark.slow
@pytest.mark.complaint("Failed to load resource")
async def test_unreachable_portal_keeps_the_upload(page: Page, short_video: Path) -> None:
    await start_upload(page, short_video)
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    await fill_in(page, title="Offline for a moment")
    await page.route(CREATION, lambda route: route.abort(), times=1)
    await page.get_by_role("button", name="Publish video").click()
    await expect(page.get_by_role("alert")).to_contain_text("be reached")
    await press_publish(page)


@pytest.mark.slow
@pytest.mark.complaint("status of 409")
async def test_lost_file_is_uploaded_again_from_the_same_page(
    page: Page, short_video: Path
) -> None:
    await start_upload(page, short_video)
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    await fill_in(page, title="Lost and found")
    await page.route(CREATION, refuse_with(409, "upload_not_found"), times=1)
    await page.get_by_role("button", name="Publish video").click()
    await expect(page.get_by_role("alert")).to_contain_text("has to be uploaded again")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    await press_publish(page)


@pytest.mark.slow
async def test_cancelled_upload_stops_and_keeps_the_form(page: Page, long_upload: Path) -> None:
    await start_upload(page, long_upload, rate_bps=SLOW_BPS)
    await fill_in(page, title="Kept")
    await expect(page.locator("[data-rest]").first).to_contain_text("/s")
    async with page.expect_event("requestfailed") as failed:
        await page.get_by_role("button", name="Cancel upload").click()
    assert (await failed.value).method == "PUT"
    await expect(page.locator("[data-drop] input")).to_be_focused()
    await expect(page.locator("[data-transfer]")).to_be_hidden()
    await expect(page.get_by_label("Title")).to_have_value("Kept")


@pytest.mark.slow
async def test_paused_upload_goes_on_when_resumed_and_keeps_the_keyboards_place(
    page: Page, long_upload: Path
) -> None:
    await open_upload(page)
    await listen(page)
    await slow_down(page)
    await choose(page, long_upload)
    await expect(page.locator("[data-rest]").first).to_contain_text("/s")
    await page.get_by_role("button", name="Pause").press("Enter")
    await expect(page.locator("[data-percent]").first).to_contain_text("Paused at")
    await expect(page.get_by_role("button", name="Resume")).to_be_focused()
    await slow_down(page, 0)
    await page.get_by_role("button", name="Resume").press("Enter")
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    assert any("is paused" in words for words in await said(page))


@pytest.mark.slow
@pytest.mark.complaint("Failed to load resource")
async def test_offline_upload_says_so_and_goes_on_by_itself(page: Page, long_upload: Path) -> None:
    await start_upload(page, long_upload, rate_bps=SLOW_BPS)
    await expect(page.locator("[data-rest]").first).to_contain_text("/s")
    # A line that is slowed down already goes on in spite of this word; nobody answers on it.
    await page.route("**/*", lambda route: route.abort())
    await page.context.set_offline(True)
    await expect(page.locator("[data-percent]").first).to_contain_text("Offline")
    await page.unroute("**/*")
    await page.context.set_offline(False)
    await slow_down(page, 0)
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()


@pytest.mark.complaint("Failed to load resource")
async def test_machine_without_network_uploads_to_a_portal_of_its_own(
    page: Page, short_video: Path
) -> None:
    # Storage is only asked whether it is there, with a request that it refuses.
    no_network = "Object.defineProperty(Navigator.prototype, 'onLine', { value: false })"
    await page.add_init_script(no_network)
    await start_upload(page, short_video)
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()


async def test_leaving_asks_while_something_is_in_flight(page: Page, long_upload: Path) -> None:
    await start_upload(page, long_upload, rate_bps=SLOW_BPS)
    await page.get_by_label("Title").click()  # browsers ask only people who touched the page
    assert await _asks_before_leaving(page)


@pytest.mark.slow
async def test_leaving_asks_while_something_is_typed_and_not_published(page: Page) -> None:
    await open_upload(page)
    await page.get_by_label("Title").fill("A thought")
    assert await _asks_before_leaving(page)
    await page.get_by_label("Title").fill("")
    await page.evaluate("location.assign('/')")
    await page.wait_for_url("/")


async def _asks_before_leaving(page: Page) -> bool:
    async with page.expect_event("dialog") as asked:
        await page.evaluate("setTimeout(() => location.assign('/'))")
    dialog = await asked.value
    await dialog.dismiss()
    await expect(page).to_have_url("/upload")
    return dialog.type == "beforeunload"


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
    await expect(page.get_by_text("dropped.mov", exact=True)).to_be_visible()
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()


@pytest.mark.slow
async def test_bar_never_goes_back_nor_is_full_before_everything_has_arrived(
    page: Page, long_upload: Path
) -> None:
    await open_upload(page)
    await page.evaluate(
        """() => {
            window.shown = [];
            const bar = document.querySelector("[data-transfer] progress");
            const state = document.querySelector("[data-transfer] [data-percent]");
            const note = () => window.shown.push([bar.value, state.textContent]);
            const options = {subtree: true, attributes: true, childList: true};
            new MutationObserver(note).observe(bar.closest("[data-progress]"), options);
        }"""
    )
    await slow_down(page)
    await choose(page, long_upload)
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    shown = await page.evaluate("window.shown")
    values = [value for value, _ in shown]
    assert len(set(values)) > 3
    assert values == sorted(values)
    early = [words for value, words in shown if value == 1 and words != "Uploaded"]
    # The bar and its words change one after the other.
    assert set(early) <= {"99 %"}
    assert not any("100 %" in words for _, words in shown)


@pytest.mark.slow
async def test_screen_readers_are_told_start_quarters_and_end_alone(
    page: Page, long_upload: Path
) -> None:
    await open_upload(page)
    await listen(page)
    await slow_down(page, 800_000)
    await choose(page, long_upload)
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    heard = await said(page, until="is uploaded")
    assert heard[0].startswith("Uploading my_holiday")
    assert len(heard) <= 5
    assert "50 % uploaded." in " ".join(heard)


async def test_upload_without_scripts_says_what_is_needed(open_page: OpenPage) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto("/upload")
    # Playwright's text search leaves out what is inside <noscript>.
    await expect(page.locator("noscript .notice")).to_be_visible()
    await expect(page.locator("form")).to_be_hidden()
