"""The upload page in a real browser: what an editor sees, does, and can recover from."""

import base64
import re
import shutil
from pathlib import Path

import pytest
from chromium import (
    SMALL_TARGETS,
    OpenPage,
    axe_findings,
    record_requests,
    suits_everyone,
)
from playwright.async_api import Page, expect
from running_portal import run_ffmpeg
from upload_page import (
    choose,
    chosen_categories,
    details,
    fill_in,
    is_ready,
    is_uploaded,
    line,
    open_line,
    open_upload,
    open_video,
    padded,
    press_publish,
    publish_button,
    slow_down,
)

# Browsers log aborted uploads and refused requests as errors.
pytestmark = pytest.mark.complaint("Failed to load resource|status of 4(09|22)")

MIB = 2**20
DROP = """([name, content]) => {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], name));
    for (const type of ["dragover", "drop"]) {
        const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer });
        document.querySelector("main").dispatchEvent(event);
    }
}"""
# Collects the announcements to screen readers.
LISTEN = """() => {
    window.said = "";
    const region = document.querySelector("[data-upload-live]");
    const note = () => { window.said += region.textContent; };
    new MutationObserver(note).observe(region, { childList: true, characterData: true });
}"""


async def test_first_video_is_published_and_its_link_copied_in_five_interactions(
    page: Page, short_video: Path
) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await open_upload(page)
    await expect(details(page)).to_be_hidden()
    await expect(publish_button(page)).to_be_hidden()
    place = line(page, short_video.name)

    await choose(page, short_video)
    await page.get_by_role("combobox", name="Categories").click()
    await page.get_by_role("option", name="Music", exact=True).click()
    await page.get_by_role("button", name="Publish", exact=True).click()
    await place.get_by_role("button", name="Copy link").click()

    await expect(place.get_by_role("button", name="Copied")).to_be_focused()
    address = await page.evaluate("navigator.clipboard.readText()")
    # The line and its picture are updated in place, without navigation.
    await is_ready(page, short_video.name)
    poster = place.locator("img")
    await expect(poster).to_have_attribute("src", re.compile("/poster.jpg"))
    await expect(poster).not_to_have_js_property("naturalWidth", 0)
    edit = place.get_by_role("link", name="Edit")
    await expect(edit).to_have_attribute("href", re.compile("/videos/.*/edit$"))
    await expect(details(page)).to_be_hidden()
    await page.goto(address)
    await expect(page.get_by_role("heading", level=1)).to_have_text(short_video.stem)


async def test_upload_page_without_scripts_explains_the_requirement(open_page: OpenPage) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto("/upload")
    # Playwright's text search leaves out what is inside <noscript>.
    await expect(page.locator("noscript .notice")).to_be_visible()
    await expect(page.locator("[data-upload-form]")).to_be_hidden()


@pytest.fixture(scope="session")
def films(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three videos, each seconds long on a slow line."""
    folder = tmp_path_factory.mktemp("films")
    return [padded(short_video, folder / f"film_{n}.mp4", 200_000) for n in (1, 2, 3)]


async def test_one_upload_is_open_and_all_are_published_with_one_click(
    page: Page, films: list[Path]
) -> None:
    await open_upload(page)
    slow_line = await slow_down(page, 20_000)
    await choose(page, *films[:2])
    dropped = [films[2].name, base64.b64encode(films[2].read_bytes()).decode()]
    await page.evaluate(DROP, dropped)
    # Two at a time.
    await expect(line(page, films[2].name)).to_contain_text("Waiting for another upload")
    await expect(line(page, films[0].name)).to_contain_text(re.compile(r"\d%.*/s.*left"))
    current = page.locator("[aria-current=true][data-open]")
    await expect(current).to_have_text(films[0].name)
    await fill_in(page, title="The first")
    async with page.expect_event("dialog") as opened:
        await page.evaluate("setTimeout(() => location.assign('/'))")
    dialog = await opened.value
    assert dialog.type == "beforeunload"
    await dialog.dismiss()

    # Each keeps its own details; a line is opened by pressing it anywhere.
    await line(page, films[1].name).click(position={"x": 30, "y": 30})
    await expect(current).to_have_text(films[1].name)
    title = page.get_by_label("Title")
    await expect(title).to_have_value("film 2")
    await expect(chosen_categories(page)).to_have_count(0)
    await title.fill("t" * 201)
    await line(page, films[0].name).locator("[data-open]").press("Enter")
    await expect(title).to_have_value("The first")
    await page.get_by_role("button", name="Apply to all").click()
    await page.get_by_role("button", name="Undo").click()
    await open_line(page, films[2].name)
    await expect(page.get_by_label("Tags")).to_have_value("")
    await open_line(page, films[0].name)
    await page.get_by_role("button", name="Apply to all").click()
    await open_line(page, films[2].name)
    await expect(title).to_have_value("film 3")
    await expect(page.get_by_label("Tags")).to_have_value("sea, sun")
    await expect(chosen_categories(page)).to_have_text(["Music"])

    await page.get_by_role("button", name="Publish 3 videos").click()
    await expect(page.get_by_text("Keep this page open.")).to_be_visible()
    await slow_line.detach()
    # The page asks again for the refused title.
    await expect(page.locator("#title-error")).to_contain_text("200 characters")
    await expect(current).to_have_text(films[1].name)
    await expect(title).to_be_focused()
    await title.fill("The second")
    await expect(page.locator("#title-error")).to_be_empty()
    await publish_button(page).click()
    await expect(page.get_by_text("3 videos published.")).to_be_visible()
    await expect(details(page)).to_be_hidden()
    # The page can be left without a question, because every change is saved.
    await open_video(page, "The second")


async def test_list_and_details_are_accessible_in_every_state(
    open_page: OpenPage, films: list[Path], notes: Path, tmp_path: Path
) -> None:
    page = await open_page(reduced_motion="reduce", width=360, has_touch=True)
    silent = run_ffmpeg(tmp_path / "silent.mp4", "-i", str(films[0]), "-an", "-c", "copy")
    await open_upload(page)
    await page.evaluate(LISTEN)
    await choose(page, silent, notes)
    await is_uploaded(page, silent.name)
    await expect(details(page)).to_contain_text("320 × 180 · 0:02 · 30 fps · H.264")  # noqa: RUF001
    await expect(details(page)).to_contain_text("This video will be published without sound.")
    await page.wait_for_function("() => window.said.includes('silent.mp4: No audio track.')")
    await expect(line(page, notes.name)).to_contain_text("Can’t be published")  # noqa: RUF001
    await page.get_by_role("combobox", name="Categories").click()
    await page.get_by_role("option", name="Music", exact=True).click()
    assert await axe_findings(page) == []
    assert await page.evaluate(SMALL_TARGETS) == []
    await page.get_by_role("button", name="Remove Music").click()
    await publish_button(page).click()
    await expect(line(page, silent.name)).to_contain_text("Some details are missing")
    await slow_down(page, 20_000)
    long_name = shutil.copyfile(films[0], tmp_path / f"{'a_very_long_name' * 12}.mp4")
    await choose(page, Path(long_name), films[1], films[2])
    await line(page, films[1].name).get_by_role("button", name="Pause").click()
    await expect(line(page, films[1].name)).to_contain_text("Paused at")
    await page.evaluate("document.activeElement.blur()")
    await suits_everyone(page, "upload")
    await open_line(page, notes.name)
    await expect(details(page).get_by_text("isn’t a video that can be read")).to_be_visible()  # noqa: RUF001
    await expect(details(page).get_by_label("Title")).to_be_hidden()
    assert await axe_findings(page) == []


async def test_upload_continues_in_another_visit_with_its_typed_details(
    page: Page, short_video: Path, tmp_path: Path
) -> None:
    film = padded(short_video, tmp_path / "large harbour.mp4", 20 * MIB)  # two parts
    context = page.context
    # The context cuts storage off, also after the page is closed: a last retry would arrive.
    await context.route(re.compile("partNumber=2"), lambda route: route.abort())
    await open_upload(page)
    async with page.expect_request_finished(lambda request: "partNumber=1" in request.url):
        await choose(page, film)
    await expect(line(page, film.name)).to_contain_text("Retrying")
    await fill_in(page, title="The harbour")
    await expect(line(page, film.name).locator(".line__picture")).to_be_visible()
    # Closing without unload handlers is like a crash.
    await page.close()
    page = await context.new_page()
    await open_upload(page)

    place, form = line(page, film.name), details(page)
    await expect(place).to_contain_text(re.compile(r"Unfinished at [78]\d%"))
    await expect(place.locator(".line__picture")).to_be_visible()
    await expect(form).to_contain_text(re.compile(r"Started (today|on \d+ \w+) at .* uploaded"))
    await expect(form.get_by_label("Title")).to_have_value("The harbour")
    await expect(form.get_by_label("Description")).to_have_value("By the sea.\nTwice.")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await expect(form.get_by_label("Tags")).to_have_value("sea, sun")
    # Publishing needs the complete file.
    await expect(publish_button(page)).to_be_hidden()
    again = form.get_by_label("Choose the file again")
    (tmp_path / "other").mkdir()
    changed = tmp_path / "other" / film.name
    changed.write_bytes(film.read_bytes()[:-1] + b"x")
    await again.set_input_files(changed)
    await expect(form).to_contain_text("This is a different file.")
    await expect(again).to_be_focused()

    await context.unroute_all()
    uploads = record_requests(page, method="PUT")
    # The page recognises the file when it is chosen like a new one.
    await choose(page, film)
    await is_uploaded(page, film.name)
    assert ["partNumber=2" in url for url in uploads] == [True]
    await press_publish(page, title="The harbour")
