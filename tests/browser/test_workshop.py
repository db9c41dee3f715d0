"""A video's workshop: what is changed in place, by keyboard, without scripts, in every state."""

import re
from pathlib import Path

import pytest
from chromium import OpenPage, Publish, open_workshop, play_past, suits_everyone
from playwright.async_api import Dialog, Locator, Page, Route, expect
from running_portal import run_ffmpeg
from upload_page import category_field, choose_category, chosen_categories

# Browsers report answers that refuse something, also to polls of what was deleted meanwhile.
pytestmark = pytest.mark.complaint("status of (404|409|410|422)")

SAVE = "Save changes"


@pytest.fixture
async def video(publish: Publish, notes: Path) -> str:
    """The id of a video that only its words matter of."""
    return await publish(notes, "Before")


async def open_video(page: Page, video_id: str) -> None:
    """Open a video's page, and wait for its scripts, which are fetched once it is there."""
    await page.goto(f"/videos/{video_id}")
    await page.wait_for_load_state("networkidle")


async def begin_edit(page: Page, video_id: str) -> Locator:
    """Open a video's workshop; answers the form for its words."""
    return await open_workshop(page, f"/videos/{video_id}", "Details")


async def expect_saved(form: Locator) -> None:
    await expect(form.get_by_text("Saved.")).to_be_visible()


async def find_nothing_new(route: Route) -> None:
    """Answer what only asks."""
    await (route.fulfill(status=204) if route.request.method == "GET" else route.continue_())


async def save(form: Locator) -> None:
    await form.get_by_role("button", name=SAVE).click()


async def test_words_are_saved_in_place_and_the_page_says_so(page: Page, video: str) -> None:
    await open_video(page, video)
    await page.get_by_role("link", name="Edit").click()
    await page.wait_for_load_state("networkidle")
    form = page.get_by_role("form", name="Details")
    title = form.get_by_label("Title")
    await expect(title).to_have_value("Before")
    await title.fill("After <b>")
    await form.get_by_label("Description").fill("See https://example.org/a.\nBye.")
    await choose_category(page, "Sports")
    await form.get_by_label("Tags").fill("sea, sun")
    await save(form)
    await expect(page.get_by_role("heading", level=1)).to_have_text("After <b>")
    await expect_saved(form)
    await expect(form.get_by_role("button", name=SAVE)).to_be_focused()
    await expect(page.locator("[data-detail-live]")).to_have_text("Saved.")
    await expect(page).to_have_title("Edit After <b> · Portal")
    await expect(page.locator("#facts")).to_contain_text("Last change")
    await title.press("End")
    await title.press("Space")
    await expect(form.get_by_text("Saved.")).to_have_count(0)
    await title.press("Backspace")
    await save(form)
    await expect_saved(form)
    await page.get_by_role("link", name="Watch page").click()
    about = page.locator("#summary")
    await expect(about.get_by_role("link", name="sun")).to_have_attribute("href", "/?tag=sun")
    await expect(about.get_by_role("link", name="Sports")).to_have_attribute("href", "/?category=3")
    link = page.locator(".video-page__description").get_by_role("link")
    await expect(link).to_have_attribute("href", "https://example.org/a")
    await expect(link).to_have_attribute("rel", "nofollow noopener ugc")
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("After <b>")


@pytest.mark.slow
async def test_page_is_not_left_with_what_was_not_saved_unasked(page: Page, video: str) -> None:
    form = await begin_edit(page, video)
    await form.get_by_label("Title").fill("Never")
    asked: list[str] = []

    async def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", stay)
    await page.get_by_role("link", name="Watch page").click()
    await expect(form.get_by_label("Title")).to_have_value("Never")
    assert asked == ["beforeunload"]
    await save(form)
    await expect_saved(form)
    await page.get_by_role("link", name="Watch page").click()
    await expect(page).to_have_url(re.compile(f"/videos/{video}$"))


@pytest.mark.slow
@pytest.mark.complaint("Failed to load resource|Failed to fetch|htmx")
async def test_edit_that_can_not_be_sent_stays_in_the_form(page: Page, video: str) -> None:
    form = await begin_edit(page, video)
    await form.get_by_label("Title").fill("Typed on a train")

    async def fail(route: Route) -> None:
        await route.abort()

    await page.route("**/edit/details", fail)
    await save(form)
    await expect(form.get_by_role("alert")).to_contain_text("be reached")
    await expect(form.get_by_label("Title")).to_have_value("Typed on a train")
    await page.unroute("**/edit/details")
    await save(form)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Typed on a train")


@pytest.mark.slow
@pytest.mark.parametrize("act", ["edit", "look again", "go back"])
async def test_page_of_a_video_that_is_deleted_elsewhere_says_only_that(
    page: Page, open_page: OpenPage, video: str, act: str
) -> None:
    if act == "edit":  # a poll that hears of the deletion takes the link away
        await page.route(f"**/videos/{video}/status*", find_nothing_new)
    await open_video(page, video)
    if act == "go back":
        await page.goto("/")
    response = await (await open_page()).request.post(f"/api/videos/{video}/deletion")
    assert response.status == 202
    if act == "edit":
        await page.get_by_role("link", name="Edit").click()
    elif act == "look again":
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    else:
        await page.go_back()
    main = page.get_by_role("main")
    await expect(main).to_contain_text("deleted")
    assert "Go to the library" in await main.get_by_role("link").all_inner_texts()
    await expect(page.locator("#edit-link, #delete-link, #share")).to_have_count(0)


async def test_delete_asks_in_a_dialog_by_keyboard(page: Page, video: str) -> None:
    await open_video(page, f"{video}/edit")
    link = page.get_by_role("link", name="Delete")
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
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_be_hidden()
    await link.click()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 video deleted.")).to_be_focused()
    response = await page.goto(f"/videos/{video}")
    assert response is not None
    assert response.status == 404
    await expect(page.get_by_role("search")).to_be_visible()


async def test_frame_under_the_playhead_becomes_the_poster(page: Page, ready_video: str) -> None:
    await page.goto(f"/videos/{ready_video}/edit")
    player = page.locator("video[data-player]")
    before = await player.get_attribute("poster")
    await play_past(page, 0.5)
    await player.evaluate("video => video.pause()")
    time_s = await player.evaluate("video => video.currentTime")
    button = page.get_by_role("button", name="Use this frame as poster")
    async with page.expect_request("**/poster/frame") as asked:
        await button.click()
    assert f"time={time_s}" in str((await asked.value).post_data)
    words = "The poster was replaced."
    await expect(page.locator("#poster")).to_contain_text(words)
    await expect(page.locator("[data-detail-live]")).to_have_text(words)
    await expect(button).to_be_focused()
    image = page.locator("#poster img")
    await page.wait_for_function(
        "image => image.complete && image.naturalWidth > 0", arg=await image.element_handle()
    )
    address = await image.get_attribute("src")
    assert address is not None
    assert address != before
    assert str(await player.evaluate("video => video.poster")).endswith(address)


@pytest.mark.slow
async def test_frame_or_picture_is_chosen_as_the_poster(
    open_page: OpenPage, ready_video: str, tmp_path: Path
) -> None:
    page = await open_page(reduced_motion="reduce")
    await page.goto(f"/videos/{ready_video}/edit")
    await page.wait_for_load_state("networkidle")
    tool, live = page.locator("#poster"), page.locator("[data-detail-live]")
    changed = page.locator("#facts").get_by_text("Last change")
    frames = tool.get_by_role("form", name="Or one of these frames")
    first = frames.get_by_role("button", name="Use the frame at").first
    await first.press("Enter")
    await expect(live).to_have_text("The poster was replaced.")
    await expect(first).to_be_focused()
    await expect(changed).to_be_visible()

    file = tool.locator("input[type=file]")
    button = tool.get_by_role("button", name="Use this picture")
    large = {"name": "large.png", "mimeType": "image/png", "buffer": bytes(10_000_001)}
    await file.set_input_files(files=[large])
    await button.click()
    await expect(file).to_be_focused()
    await expect(live).to_contain_text("larger than 10 MB")
    text = {"name": "text.png", "mimeType": "image/png", "buffer": b"no picture"}
    await file.set_input_files(files=[text])
    await button.click()
    await expect(live).to_contain_text("No JPEG, PNG or still WebP")
    await expect(tool.get_by_text("No JPEG, PNG or still WebP")).to_be_visible()
    await suits_everyone(page, "poster-fault")
    own = run_ffmpeg(tmp_path / "own.png", "-f", "lavfi", "-i", "testsrc", "-frames:v", "1")
    before = await tool.locator("img").get_attribute("src")
    await file.set_input_files(own)
    await button.click()
    await expect(live).to_have_text("The poster was replaced.")
    await expect(button).to_be_focused()
    await expect(tool.locator("img")).not_to_have_attribute("src", before or "")


@pytest.mark.slow
async def test_categories_of_a_video_are_changed_in_its_workshop_with_and_without_scripts(
    page: Page, open_page: OpenPage, publish: Publish, short_video: Path
) -> None:
    video_id = await publish(short_video, "Changed categories")
    await page.goto(f"/videos/{video_id}/edit")
    await expect(chosen_categories(page)).to_have_count(2)
    await page.get_by_role("checkbox", name="Music").wait_for(state="hidden")
    form = page.get_by_role("form", name="Details")
    await form.get_by_role("button", name="Remove").first.press("Enter")
    await expect(category_field(form)).to_be_focused()
    await page.keyboard.press("Backspace")
    await form.get_by_role("button", name="Save changes").click()
    # What the answer brings is enhanced as well, and leads the keyboard to the fault.
    await expect(page.locator("#categories-error")).not_to_be_empty()
    await expect(category_field(form)).to_be_focused()
    await expect(category_field(form)).to_have_attribute("aria-invalid", "true")
    await page.keyboard.type("sport")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await form.get_by_role("button", name="Save changes").click()
    await expect(form.get_by_text("Saved.")).to_be_visible()
    await expect(chosen_categories(page)).to_have_text(["Sports"])

    plain = await open_page(java_script_enabled=False)
    await plain.goto(f"/videos/{video_id}/edit")
    await expect(plain.get_by_role("checkbox", name="Sports")).to_be_checked()
    await expect(plain.get_by_role("combobox", name="Categories")).to_be_hidden()
    await plain.get_by_role("checkbox", name="Music").check()
    await plain.get_by_role("button", name="Save changes").click()
    await plain.goto(f"/videos/{video_id}")
    await expect(plain.get_by_role("link", name="Music")).to_be_visible()
