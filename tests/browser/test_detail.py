"""A video's page for those who edit it: in place, by keyboard, without scripts, in every state."""

import re
from pathlib import Path

import pytest
from chromium import OpenPage, Publish, axe_findings, photograph, play_past
from playwright.async_api import Locator, Page, Route, expect

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
    """Open a video's page, and the form in it."""
    await open_video(page, video_id)
    await page.get_by_role("link", name="Edit").click()
    form = page.get_by_role("form", name="Edit the video")
    await expect(form).to_be_visible()
    return form


async def save(form: Locator, name: str = SAVE) -> None:
    await form.get_by_role("button", name=name).click()


async def test_edit_swaps_the_summary_for_a_form_and_back(page: Page, video: str) -> None:
    form = await begin_edit(page, video)
    title = form.get_by_label("Title")
    await expect(title).to_be_focused()
    await expect(title).to_have_value("Before")
    await title.fill("After <b>")
    await form.get_by_label("Description").fill("See https://example.org/a.\nBye.")
    await form.get_by_label("Sports").check()
    await form.get_by_label("Tags").fill("sea, sun")
    await save(form)
    await expect(page.get_by_role("heading", level=1)).to_have_text("After <b>")
    await expect(page.locator("#edit-link")).to_be_focused()
    await expect(page.locator("[data-detail-live]")).to_have_text("Changes saved")
    await expect(page).to_have_title("After <b> · Portal")
    facts = page.locator("#facts")
    await expect(facts.get_by_role("link", name="sun")).to_have_attribute("href", "/?tag=sun")
    await expect(facts.get_by_role("link", name="Sports")).to_have_attribute("href", "/?category=3")
    link = page.locator(".video-page__description").get_by_role("link")
    await expect(link).to_have_attribute("href", "https://example.org/a")
    await expect(link).to_have_attribute("rel", "nofollow noopener ugc")
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("After <b>")


async def test_cancel_keeps_what_was_there(page: Page, video: str) -> None:
    form = await begin_edit(page, video)
    await form.get_by_label("Title").fill("Never")
    await form.get_by_role("link", name="Cancel").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Before")
    await expect(page.locator("#edit-link")).to_be_focused()


async def test_fault_is_told_beside_its_field_and_nothing_typed_is_lost(
    page: Page, video: str
) -> None:
    form = await begin_edit(page, video)
    await form.get_by_label("Title").fill("")
    await form.get_by_label("Tags").fill("typed")
    await save(form)
    title = form.get_by_label("Title")
    await expect(title).to_have_attribute("aria-invalid", "true")
    await expect(title).to_be_focused()
    await expect(page.locator("#title-error")).to_have_text("Give the video a title.")
    await expect(form.get_by_label("Tags")).to_have_value("typed")
    await title.fill("Now with a title")
    await save(form)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Now with a title")


@pytest.mark.slow
async def test_second_editor_sees_both_texts_and_may_insist(
    open_page: OpenPage, video: str
) -> None:
    pages = [await open_page() for _ in range(2)]
    first, second = [await begin_edit(page, video) for page in pages]
    await first.get_by_label("Title").fill("By the first")
    await save(first)
    await expect(pages[0].get_by_role("heading", level=1)).to_have_text("By the first")
    await second.get_by_label("Title").fill("By the second")
    await save(second)
    await expect(pages[1].locator("#conflict")).to_be_focused()
    await expect(pages[1].locator("#title-theirs")).to_contain_text("By the first")
    await expect(second.get_by_label("Title")).to_have_value("By the second")
    await expect(pages[1].locator("#tags-theirs")).to_have_count(0)
    await pages[0].reload()
    await expect(pages[0].get_by_role("heading", level=1)).to_have_text("By the first")
    await save(second, "Save mine over theirs")
    await expect(pages[1].get_by_role("heading", level=1)).to_have_text("By the second")


@pytest.mark.slow
async def test_second_editor_may_take_what_the_first_saved(open_page: OpenPage, video: str) -> None:
    pages = [await open_page() for _ in range(2)]
    first, second = [await begin_edit(page, video) for page in pages]
    await first.get_by_label("Tags").fill("theirs")
    await save(first)
    await expect(pages[0].locator("#edit-link")).to_be_visible()
    await second.get_by_label("Tags").fill("mine")
    await save(second)
    await second.get_by_role("link", name="Take theirs").click()
    await expect(second.get_by_label("Tags")).to_have_value("theirs")
    await save(second)
    await expect(pages[1].locator("#edit-link")).to_be_visible()


@pytest.mark.complaint("Failed to load resource|Failed to fetch|htmx")
async def test_edit_that_can_not_be_sent_stays_in_the_form(page: Page, video: str) -> None:
    form = await begin_edit(page, video)
    await form.get_by_label("Title").fill("Typed on a train")

    async def fail(route: Route) -> None:
        await route.abort()

    await page.route("**/summary", fail)
    await save(form)
    await expect(form.get_by_role("alert")).to_contain_text("be reached")
    await expect(form.get_by_label("Title")).to_have_value("Typed on a train")
    await page.unroute("**/summary")
    await save(form)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Typed on a train")


@pytest.mark.slow
async def test_edit_of_a_video_that_was_deleted_says_so(
    page: Page, open_page: OpenPage, video: str
) -> None:
    form = await begin_edit(page, video)
    other = await open_page()
    response = await other.request.post(f"/api/videos/{video}/deletion")
    assert response.status == 202
    await form.get_by_label("Title").fill("Too late")
    await save(form)
    await expect(form.get_by_role("alert")).to_contain_text("deleted meanwhile")
    await expect(form.get_by_label("Title")).to_have_value("Too late")


async def test_metadata_can_be_edited_without_scripts(open_page: OpenPage, video: str) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto(f"/videos/{video}")
    await page.get_by_role("link", name="Edit").click()
    await page.get_by_label("Title").fill(" ")
    await page.get_by_role("button", name=SAVE).click()
    await expect(page.locator("#title-error")).to_contain_text("may not be blank")
    await page.get_by_label("Title").fill("Plainly")
    await page.get_by_role("button", name=SAVE).click()
    await expect(page).to_have_url(re.compile(f"/videos/{video}$"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Plainly")


async def test_delete_asks_in_a_dialog_by_keyboard(page: Page, video: str) -> None:
    await open_video(page, video)
    link = page.get_by_role("link", name="Delete")
    await link.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Delete this video for ever?")
    await expect(dialog).to_be_visible()
    await expect(dialog).to_contain_text("Before")
    await expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(link).to_be_focused()
    await link.click()
    await dialog.get_by_role("button", name="Keep it").click()
    await expect(dialog).to_be_hidden()
    await link.click()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("The video was deleted")
    response = await page.goto(f"/videos/{video}")
    assert response is not None
    assert response.status == 404
    await expect(page.get_by_role("search")).to_be_visible()


@pytest.mark.slow
async def test_delete_asks_on_a_page_without_scripts(open_page: OpenPage, video: str) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto(f"/videos/{video}")
    await page.get_by_role("link", name="Delete").click()
    await page.get_by_role("link", name="Keep it").click()
    await page.get_by_role("link", name="Delete").click()
    await page.get_by_role("button", name="Delete video").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("The video was deleted")


@pytest.mark.slow
async def test_addresses_are_copied_and_that_is_told(open_page: OpenPage, ready_video: str) -> None:
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await page.goto(f"/videos/{ready_video}")
    for name, ending in (
        ("page address", f"/videos/{ready_video}"),
        ("stream address (HLS)", "/master.m3u8"),
        ("embed code", "</iframe>"),
    ):
        await page.get_by_role("button", name=f"Copy {name}").click()
        live = page.locator("[data-detail-live]")
        await expect(live).to_have_text(re.compile("copied$"))
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied.endswith(ending)
    assert f'/embed/{ready_video}"' in copied
    assert 'title="A ready video"' in copied


async def test_addresses_are_copied_without_the_clipboard_api(
    open_page: OpenPage, ready_video: str
) -> None:
    page = await open_page()
    # As on a page that is not secure.
    await page.add_init_script("delete Navigator.prototype.clipboard")
    await page.goto(f"/videos/{ready_video}")
    button = page.get_by_role("button", name="Copy page address")
    await button.click()
    await expect(page.locator("[data-detail-live]")).to_have_text("Page address copied")
    await expect(button).to_be_focused()
    # And where that is forbidden, too, the text is left selected.
    await page.evaluate("document.execCommand = () => false")
    await button.click()
    await expect(page.locator("#page-address")).to_be_focused()
    await expect(page.locator("[data-detail-live]")).to_contain_text("copy it with the keyboard")


async def test_frame_under_the_playhead_becomes_the_poster(page: Page, ready_video: str) -> None:
    await page.goto(f"/videos/{ready_video}")
    player = page.locator("video[data-player]")
    before = await player.get_attribute("poster")
    await play_past(page, 0.5)
    await player.evaluate("video => video.pause()")
    time_s = await player.evaluate("video => video.currentTime")
    button = page.get_by_role("button", name="Use this frame as poster")
    async with page.expect_request("**/poster/frame") as asked:
        await button.click()
    assert f"time={time_s}" in str((await asked.value).post_data)
    words = "This frame is the poster now."
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
@pytest.mark.complaint("Failed to load resource|Failed to fetch|htmx")
async def test_poster_that_fails_or_can_not_be_asked_for_says_so(
    page: Page, ready_video: str
) -> None:
    await open_video(page, ready_video)
    await page.route("**/poster/frame", lambda route: route.abort())
    await page.get_by_role("button", name="Use this frame as poster").click()
    await expect(page.locator("#poster")).to_contain_text("take that")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.slow
async def test_every_state_of_editing_is_accessible_and_fits(
    open_page: OpenPage, publish: Publish, notes: Path, scheme: str, width: int
) -> None:
    video = await publish(notes, "Before-" + "a-long-title" * 9)
    page = await open_page(width=width, color_scheme=scheme, reduced_motion="reduce")

    async def check(state: str) -> None:
        found = await axe_findings(page) if width == 1440 else []
        assert found == [], state
        scrolled = await page.evaluate("document.documentElement.scrollWidth")
        assert scrolled <= width, state
        await photograph(page, f"detail-{state}-{width}-{scheme}")

    form = await begin_edit(page, video)
    await check("edit")
    await form.get_by_label("Title").fill("")
    await form.get_by_label("Tags").fill("x" * 501)
    await save(form)
    await expect(page.locator("#title-error")).not_to_be_empty()
    await check("faults")
    body = {"title": "Theirs", "description": "", "categoryIds": [3], "tags": "t" * 300}
    changed = await page.request.put(
        f"/api/videos/{video}/metadata", data=body, headers={"If-Match": "*"}
    )
    assert changed.status == 200
    await form.get_by_label("Title").fill("Mine")
    await form.get_by_label("Tags").fill("x" * 400)
    await save(form)
    await expect(page.locator("#conflict")).to_be_visible()
    await check("conflict")
    await save(form, "Save mine over theirs")
    await expect(page.locator("#edit-link")).to_be_visible()
    await check("saved")
    await page.get_by_role("link", name="Delete").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await check("delete")
    for name, address in {
        "edit-page": f"/videos/{video}/edit",
        "delete-page": f"/videos/{video}/delete",
        "deleted": "/videos/deleted",
        "missing": "/videos/none",
    }.items():
        await page.goto(address)
        await check(name)
