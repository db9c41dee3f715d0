"""Uploading several videos at once: a list with one of them open, and one button for all."""

import shutil
from pathlib import Path

import pytest
from chromium import TRANSCODE_TIMEOUT_MS, OpenPage, axe_findings, photograph
from playwright.async_api import Page, expect
from upload_page import (
    choose,
    chosen_categories,
    details,
    fill_in,
    is_published,
    is_uploaded,
    line,
    listen,
    open_line,
    open_upload,
    open_video,
    padded,
    press_publish,
    publish_button,
    said,
    slow_down,
    start_upload,
)


@pytest.fixture(scope="session")
def films(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three videos, each seconds long on a slow line."""
    folder = tmp_path_factory.mktemp("films")
    return [padded(short_video, folder / f"film_{n}.mp4", 200_000) for n in (1, 2, 3)]


async def test_one_of_the_list_is_open_and_all_are_published_with_one_press(
    page: Page, films: list[Path]
) -> None:
    await open_upload(page)
    await listen(page)
    await slow_down(page)
    await choose(page, *films[:2])
    await choose(page, films[2])
    # Two at a time.
    await expect(line(page, films[2].name)).to_contain_text("Waiting for another upload")
    await expect(page.locator("[aria-current=true][data-open]")).to_have_text(films[0].name)
    await fill_in(page)

    # Each keeps its own details; a line is opened by pressing it anywhere.
    await line(page, films[1].name).click(position={"x": 30, "y": 30})
    await expect(page.locator("[aria-current=true][data-open]")).to_have_text(films[1].name)
    await expect(page.get_by_label("Title")).to_have_value("film 2")
    await expect(chosen_categories(page)).to_have_count(0)
    await page.get_by_label("Title").fill("The second")
    await line(page, films[0].name).locator("[data-open]").press("Enter")
    await expect(page.get_by_label("Title")).to_have_value("film 1")
    await expect(page.get_by_label("Tags")).to_have_value("sea, sun")

    await page.get_by_role("button", name="Apply to all").click()
    for path, title in zip(films[1:], ["The second", "film 3"], strict=True):
        form = await open_line(page, path.name)
        await expect(form.get_by_label("Title")).to_have_value(title)
        await expect(form.get_by_label("Tags")).to_have_value("sea, sun")
        await expect(chosen_categories(page)).to_have_text(["Music"])

    await slow_down(page, 0)
    await page.get_by_role("button", name="Publish 3 videos").click()
    await expect(page.get_by_text("3 videos are published.")).to_be_visible()
    await expect(page.get_by_role("link", name="Open", exact=True)).to_have_count(3)
    await expect(details(page)).to_be_hidden()
    heard = await said(page, until="“film 3” is published.")
    assert heard[0].startswith("Uploading 2 files.")
    # Start twice, copying, four quarters, the end, the publication and the readiness of three.
    assert len(heard) <= 15
    # Nothing is left that leaving could lose.
    await open_video(page, "The second")


@pytest.mark.complaint("status of 422")
async def test_publishing_opens_the_first_with_a_fault_and_publishes_the_others(
    page: Page, films: list[Path]
) -> None:
    await start_upload(page, *films)
    await fill_in(page)
    await page.get_by_role("button", name="Apply to all").click()
    await (await open_line(page, films[1].name)).get_by_label("Title").fill("")
    await (await open_line(page, films[2].name)).get_by_label("Title").fill("t" * 201)
    await is_uploaded(page, *(path.name for path in films))
    await publish_button(page).click()

    await is_published(page, "film 1")
    await expect(details(page).get_by_role("heading")).to_have_text(films[1].name)
    title = page.get_by_label("Title")
    await expect(title).to_be_focused()
    await expect(page.locator("#title-error")).to_have_text("Give the video a title.")
    # The portal's own refusal does not call anyone away from that.
    await expect(line(page, films[2].name)).to_contain_text("Not published yet")
    await expect(title).to_be_focused()
    await title.fill("Mended")
    await publish_button(page).click()
    await is_published(page, "Mended")
    await expect(details(page).get_by_role("heading")).to_have_text(films[2].name)
    await title.fill("Short enough")
    await press_publish(page, title="Short enough")


async def test_another_file_takes_a_refused_ones_place_and_its_details(
    page: Page, upload_files: dict[str, Path], films: list[Path]
) -> None:
    await start_upload(page, upload_files["protected.mp4"], films[0])
    await fill_in(page, title="Typed for the wrong file")
    alert = page.get_by_role("alert").filter(has_text="This file is copy-protected")
    await expect(alert).to_contain_text("Choose an unprotected original.")
    await expect(page.get_by_role("button", name="Publish", exact=True)).to_be_visible()
    again = details(page).get_by_label("Replace file")
    await again.set_input_files(films[0])
    await expect(page.locator("#again-error")).to_contain_text("in the list already")
    await again.set_input_files(upload_files["plain.mp4"])
    await is_uploaded(page, "plain.mp4")
    await expect(line(page, "protected.mp4")).to_have_count(0)
    await expect(page.get_by_label("Title")).to_have_value("Typed for the wrong file")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await press_publish(page, title="Typed for the wrong file")


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 360),
        ("dark", 1440),
        pytest.param("dark", 360, marks=pytest.mark.slow),
        pytest.param("light", 1440, marks=pytest.mark.slow),
    ],
)
async def test_list_and_details_suit_everyone_in_any_state(
    open_page: OpenPage,
    upload_files: dict[str, Path],
    films: list[Path],
    tmp_path: Path,
    scheme: str,
    width: int,
) -> None:
    page = await open_page(
        color_scheme=scheme, reduced_motion="reduce", width=width, height=800, has_touch=width < 500
    )
    await open_upload(page)
    await photograph(page, f"upload-empty-{width}-{scheme}")
    names = ("hdr.mp4", "silent.mp4", "sound.mp4", "cut-media.mp4")
    await choose(page, *(upload_files[name] for name in names))
    await is_uploaded(page, "hdr.mp4", "silent.mp4", "cut-media.mp4")
    await expect(line(page, "sound.mp4")).to_contain_text("Can’t be published")  # noqa: RUF001
    await page.get_by_role("combobox", name="Categories").click()
    await page.get_by_role("option", name="Music", exact=True).click()
    assert await axe_findings(page) == []
    if width < 500:
        # A thumb meets nothing that is smaller than 44 px.
        assert await page.evaluate(SMALL_TARGETS) == []
    await photograph(page, f"upload-categories-{width}-{scheme}")
    if width < 500:
        await page.get_by_role("button", name="Remove Music").tap()
        await expect(chosen_categories(page)).to_have_count(0)
        await page.get_by_role("combobox", name="Categories").tap()
        await page.get_by_role("option", name="Music", exact=True).tap()
    await publish_button(page).click()
    await expect(line(page, "silent.mp4")).to_contain_text("Some details are missing")
    await expect(line(page, "hdr.mp4")).to_contain_text(
        "Ready to watch", timeout=TRANSCODE_TIMEOUT_MS
    )
    await slow_down(page, 20_000)
    long_name = shutil.copyfile(films[0], tmp_path / f"{'a_very_long_name' * 12}.mp4")
    await choose(page, Path(long_name), films[1], films[2])
    await line(page, films[1].name).get_by_role("button", name="Pause").click()
    await expect(line(page, films[1].name)).to_contain_text("Paused at")
    await page.evaluate("document.activeElement.blur()")
    assert await axe_findings(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await photograph(page, f"upload-several-{width}-{scheme}")
    await open_line(page, "sound.mp4")
    assert await axe_findings(page) == []
    await photograph(page, f"upload-refused-{width}-{scheme}")


SMALL_TARGETS = """() => [...document.querySelector("[data-upload-form]")
    .querySelectorAll("button, a, select, [role=option]")]
    .filter((it) => it.getClientRects().length && !it.matches("[data-open]"))
    .filter((it) => it.getBoundingClientRect().height < 44)
    .map((it) => it.outerHTML)"""
