"""A video's workshop: editing in place, by keyboard, in every state."""

import asyncio
from itertools import count
from pathlib import Path

import pytest
from chromium import (
    TRANSCODE_TIMEOUT_MS,
    Publish,
    hold_requests,
    open_workshop,
    play_past,
    suits_everyone,
)
from library_rows import Rows
from player_page import wait_for
from playwright.async_api import Page, Route, expect
from running_portal import LivePortal, make_video, run_ffmpeg
from upload_page import category_field, chosen_categories

# Browsers log refused and failed requests as errors.
pytestmark = pytest.mark.complaint("status of (404|409|422)|Failed to (load resource|fetch)|htmx")

# Numbers of videos without files.
NUMBERS = count(500)
# Gives the picture of a frame a wide box, and returns the name of the element at its right edge.
SHOWN_BESIDE = """image => {
    const picture = image.closest(".frame__picture");
    picture.style.aspectRatio = "4";
    const { right, top, height } = picture.getBoundingClientRect();
    return document.elementFromPoint(right - 4, top + height / 2)?.tagName;
}"""


@pytest.fixture
async def video(live_portal: LivePortal) -> str:
    """Id of a failed video without a file; these tests need only its words."""
    rows = Rows(live_portal.environ["DATABASE_URL"])
    video_id = await rows.add(next(NUMBERS), "Before", status="failed")
    await rows.run("UPDATE versions SET failure_code = 'damaged' WHERE id = %s", video_id)
    await rows.run("UPDATE publications SET category_ids = '{1,2}' WHERE id = %s", video_id)
    return video_id


async def test_details_are_saved_in_place_and_typed_text_is_kept(page: Page, video: str) -> None:
    form = await open_workshop(page, f"/videos/{video}", "Details")
    title = form.get_by_label("Title")
    await expect(title).to_have_value("Before")
    await title.fill("After <b>")
    # Leaving the page asks for confirmation.
    async with page.expect_event("dialog") as opened:
        await page.evaluate("setTimeout(() => location.assign('/'))")
    dialog = await opened.value
    assert dialog.type == "beforeunload"
    await dialog.dismiss()
    save = page.get_by_role("button", name="Save changes")
    saved = form.get_by_text("Saved.")
    await page.route("**/edit/details", lambda route: route.abort())
    await save.click()
    await expect(form.get_by_role("alert")).to_contain_text("be reached")
    await expect(title).to_have_value("After <b>")
    await page.unroute("**/edit/details")

    # Scripts also enhance the swapped form, and focus its invalid field.
    await form.get_by_role("button", name="Remove").first.press("Enter")
    await expect(category_field(form)).to_be_focused()
    await page.keyboard.press("Backspace")
    await save.click()
    await expect(page.locator("#categories-error")).not_to_be_empty()
    await expect(category_field(form)).to_be_focused()
    await expect(category_field(form)).to_have_attribute("aria-invalid", "true")
    await page.keyboard.type("sport")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await form.get_by_label("Description").fill("See https://example.org/a.\nBye.")
    await form.get_by_label("Tags").fill("sea, sun")
    await save.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("After <b>")
    await expect(saved).to_be_visible()
    await expect(saved).to_be_focused()
    await expect(save).to_be_hidden()
    await expect(page.locator("[data-detail-live]")).to_contain_text("Saved.")
    await expect(page).to_have_title("Edit After <b> · Portal")
    await expect(page.locator("#facts")).to_contain_text("Last changed")
    await expect(chosen_categories(page)).to_have_text(["Sports"])
    await title.press("End")
    await title.press("Space")
    await expect(saved).to_have_count(0)
    await expect(save).to_be_visible()
    await title.press("Backspace")
    await expect(save).to_be_hidden()


async def test_one_bar_saves_all_changed_forms(page: Page, video: str) -> None:
    has_typed = await hold_requests(page, "**/chunk-*.js")
    await page.goto(f"/videos/{video}/edit", wait_until="commit")
    details = page.get_by_role("form", name="Details")
    access = page.locator("#access")
    bar = page.get_by_role("region", name="Unsaved changes")
    await expect(bar).to_be_hidden()
    # People may type before all scripts have started.
    await details.get_by_label("Title").fill("After")
    has_typed.set()
    await access.get_by_role("radio", name="Unlisted").check()
    is_noticed = await hold_requests(page, f"**/videos/{video}/edit/details")
    await bar.get_by_role("button", name="Save changes").click()
    # The response replaces the form, so nothing can be typed until then.
    await expect(details.get_by_label("Title")).not_to_be_editable()
    is_noticed.set()
    await expect(page.get_by_role("heading", level=1)).to_have_text("After")
    await expect(details.get_by_label("Title")).to_be_editable()
    await expect(access).to_contain_text("Visible to: anyone with the link")
    await expect(page.get_by_text("Saved.")).to_have_count(3)
    await expect(bar).to_be_hidden()
    await details.get_by_label("Title").fill("Never")
    await bar.get_by_role("link", name="Discard").click()
    await expect(details.get_by_label("Title")).to_have_value("After")
    await expect(bar).to_be_hidden()


async def test_conflicts_are_decided_for_each_field(page: Page, video: str) -> None:
    """Changes of two people are merged, and conflicts are shown to the second."""
    form = await open_workshop(page, f"/videos/{video}", "Details")
    other_edit = {"title": "A night at the sea", "description": "Theirs", "categoryIds": [3]}
    response = await page.request.patch(f"/api/videos/{video}", data=other_edit)
    assert response.status == 200

    await form.get_by_label("Title").fill("A day by the sea")
    await form.get_by_label("Description").fill("Mine")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.locator("#conflict")).to_be_focused()
    title = page.get_by_role("group", name="Version of the title to keep")
    await expect(title).to_contain_text("A day by the sea")
    await expect(title).to_contain_text("A night at the sea")
    # Only the other person changed the categories.
    await expect(page.locator("#categories-conflict")).to_have_count(0)
    await expect(form.get_by_label("Sports")).to_be_checked()
    field = form.get_by_role("textbox", name="Title")
    await expect(field).to_have_value("A day by the sea")
    await title.get_by_role("radio", name="Their version").check()
    await expect(field).to_be_hidden()
    await form.get_by_role("textbox", name="Description").fill("Mine, and Theirs")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("A night at the sea")
    await expect(form.get_by_label("Description")).to_have_value("Mine, and Theirs")


@pytest.mark.slow
async def test_pages_of_a_video_deleted_elsewhere_show_only_that(page: Page, video: str) -> None:
    """One tab becomes visible again, and the other one returns by its history."""
    other = await page.context.new_page()
    for tab in (page, other):
        await tab.goto(f"/videos/{video}")
        await tab.wait_for_load_state("networkidle")
    await other.goto("/")
    response = await page.request.delete(f"/api/videos/{video}")
    assert response.status == 202
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await other.go_back()
    for tab in (page, other):
        main = tab.get_by_role("main")
        await expect(main).to_contain_text("deleted")
        await expect(main.get_by_role("link", name="Go to the library")).to_be_visible()
        await expect(tab.locator("#edit-link, #delete-link, #share")).to_have_count(0)


async def test_delete_asks_in_a_dialog_by_keyboard(page: Page, video: str) -> None:
    await page.goto(f"/videos/{video}/edit")
    await page.wait_for_load_state("networkidle")
    link = page.get_by_role("link", name="Delete…")
    await link.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Delete this video?")
    await expect(dialog).to_be_visible()
    await expect(dialog).to_contain_text("Before")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(link).to_be_focused()
    await link.click()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 video deleted.")).to_be_focused()


@pytest.mark.slow
async def test_frame_or_picture_is_chosen_as_the_poster(
    page: Page, ready_video: str, tmp_path: Path
) -> None:
    await page.goto(f"/videos/{ready_video}/edit")
    player = page.locator("video[data-player]")
    tool = page.locator("#poster")
    live = page.locator("[data-detail-live]")
    image = tool.locator("img")
    before = await player.get_attribute("poster")
    await play_past(page, 0.5)
    await player.evaluate("video => video.pause()")
    time_s = await player.evaluate("video => video.currentTime")
    button = tool.get_by_role("button", name="Use this frame as poster")
    async with page.expect_request("**/poster/frame") as sent_request:
        await button.click()
    assert f"time={time_s}" in str((await sent_request.value).post_data)
    await expect(tool).to_contain_text("Poster updated.")
    await expect(live).to_have_text("Poster updated.")
    await expect(button).to_be_focused()
    await expect(image).not_to_have_js_property("naturalWidth", 0)
    address = await image.get_attribute("src") or ""
    assert address != before
    assert str(await player.evaluate("video => video.poster")).endswith(address)

    first = tool.get_by_role("button", name="Use the frame at").first
    await first.press("Enter")
    await expect(image).not_to_have_attribute("src", address)
    await expect(first).to_be_focused()
    # No other frame of the sprite shows beside it.
    assert await first.locator("image").evaluate(SHOWN_BESIDE) == "svg"
    address = await image.get_attribute("src") or ""

    file = tool.locator("input[type=file]")
    button = tool.get_by_role("button", name="Use this pic")
    large = tmp_path / "large.png"
    large.write_bytes(bytes(10_000_001))
    await file.set_input_files(large)
    await button.click()
    await expect(file).to_be_focused()
    await expect(live).to_contain_text("larger than 10 MB")
    text = {"name": "text.png", "mimeType": "image/png", "buffer": b"no picture"}
    await file.set_input_files(files=[text])
    await button.click()
    await expect(tool.get_by_text("JPEG, PNG or still WebP")).to_be_visible()
    own = run_ffmpeg(tmp_path / "own.png", "-f", "lavfi", "-i", "testsrc", "-frames:v", "1")
    await file.set_input_files(own)
    await button.click()
    await expect(image).not_to_have_attribute("src", address)
    await expect(live).to_have_text("Poster updated.")
    await expect(button).to_be_focused()


@pytest.mark.slow
async def test_file_is_replaced_and_restored(
    page: Page, publish: Publish, short_video: Path, tmp_path: Path
) -> None:
    video_id = await publish(short_video, "Two takes", until="ready")
    await page.goto(f"/videos/{video_id}/edit")
    section = page.get_by_role("region", name="Replace the file")
    file = section.get_by_label("New file")
    button = section.get_by_role("button", name="Replace the file")
    for name, fault in (("a.avi", "is an AVI file"), ("a.mkv", "be read by the browser")):
        await file.set_input_files(files=[{"name": name, "mimeType": "", "buffer": b"a film"}])
        await button.press("Enter")
        await expect(file).to_be_focused()
        await expect(section).to_contain_text(fault)
    await suits_everyone(page, "replacement-form", part="#replacement")

    second_take = make_video(tmp_path / "second take.mkv", seconds=5)
    await file.set_input_files(second_take)
    # Requests without a response.
    await page.route("**/api/videos/presign", lambda route: None)
    await button.press("Enter")
    await expect(section.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(file).to_be_focused()
    await page.unroute("**/api/videos/presign")
    begun = asyncio.Event()

    async def keep_answer(route: Route) -> None:
        await route.fetch()
        begun.set()

    # The replacement has begun when the upload is cancelled.
    await page.route("**/api/videos/*/replacement", keep_answer, times=1)
    await button.press("Enter")
    await begun.wait()
    await section.get_by_role("button", name="Cancel").press("Enter")
    current = section.get_by_text("The current file is second take.mp4")
    await expect(current).to_be_visible(timeout=TRANSCODE_TIMEOUT_MS)
    await wait_for(page, "Math.round(video.duration) === 5")
    await expect(page.locator("#facts")).to_contain_text("second take.mp4")
    await suits_everyone(page, "replaced")
    # Clicked: the address names the section, so the browser takes the focus when the page is drawn.
    await section.get_by_text("Go back to the former file\u2026").click()
    await section.get_by_role("button", name="Go back").click()
    await expect(section).to_contain_text(f"The current file is {short_video.name}")
    await page.goto(f"/videos/{video_id}")
    await wait_for(page, "Math.round(video.duration) === 2")
