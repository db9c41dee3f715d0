"""Uploading several videos at once: a row for each, an overall bar, publishing one or all."""

import shutil
from pathlib import Path

import pytest
from chromium import OpenPage, axe_findings, photograph
from playwright.async_api import Page, expect
from upload_page import (
    SLOW_BPS,
    choose,
    fill_in,
    listen,
    open_upload,
    padded,
    press_publish,
    row,
    said,
    slow_down,
    start_upload,
    video_is_opened,
)


@pytest.fixture(scope="session")
def films(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three videos, each a second long on a slow line."""
    folder = tmp_path_factory.mktemp("films")
    return [padded(short_video, folder / f"film_{n}.mp4", 200_000) for n in (1, 2, 3)]


async def test_each_file_has_its_row_and_all_are_published_with_one_press(
    page: Page, films: list[Path]
) -> None:
    await open_upload(page)
    await listen(page)
    await slow_down(page)
    await choose(page, *films[:2])
    await choose(page, films[2])
    for path in films:
        title = row(page, path.name).get_by_label("Title")
        await expect(title).to_have_value(path.stem.replace("_", " "))
    # Two at a time.
    await expect(row(page, films[2].name)).to_contain_text("starts when another upload")

    first = row(page, films[0].name)
    await fill_in(first)
    await first.get_by_role(
        "button", name="Use these categories, tags and visibility for all"
    ).click()
    for path in films[1:]:
        await expect(row(page, path.name).get_by_role("checkbox").first).to_be_checked()
        await expect(row(page, path.name).get_by_label("Tags")).to_have_value("sea, sun")

    await page.get_by_role("button", name="Publish all").click()
    for path in films:
        link = row(page, path.name).get_by_role("link", name="View")
        await expect(link).to_be_visible()
        await expect(row(page, path.name).get_by_label("Title")).to_be_hidden()
    await expect(page.get_by_text("All 3 videos are published.")).to_be_visible()
    heard = await said(page, until="“film 3” is published.")
    assert heard[0].startswith("Uploading 2 files.")
    # Start twice, copying, four quarters, the end and the publication of three files.
    assert len(heard) <= 12
    # Nothing is left that leaving could lose.
    await row(page, films[1].name).get_by_role("link", name="View").click()
    await video_is_opened(page, "film 2")


@pytest.mark.slow
async def test_overall_bar_never_goes_back_when_files_join_and_leave(
    page: Page, films: list[Path]
) -> None:
    await open_upload(page)
    await page.evaluate(
        """() => {
            window.shown = [];
            const batch = document.querySelector("[data-batch]");
            const bar = batch.querySelector("progress");
            const sent = () => document.querySelectorAll("[data-art=good]").length;
            const rows = () => document.querySelectorAll("[data-row]").length;
            const note = () => batch.hidden || window.shown.push([bar.value, sent() === rows()]);
            const options = {subtree: true, attributes: true, attributeFilter: ["value"]};
            new MutationObserver(note).observe(bar, options);
        }"""
    )
    # Slow enough that the others are not over before the cancelled one is removed.
    await slow_down(page, 60_000)
    await choose(page, *films[:2])
    await expect(row(page, films[0].name).locator("[data-rest]")).to_contain_text("/s")
    await choose(page, films[2])
    await row(page, films[2].name).get_by_role("button", name="Cancel upload").click()
    await expect(row(page, films[2].name)).to_contain_text("Cancelled")
    await row(page, films[2].name).get_by_role("button", name="Remove").click()
    await expect(row(page, films[2].name)).to_have_count(0)
    batch = page.locator("[data-batch]")
    await expect(batch).to_contain_text("2 of 2 uploaded", timeout=60_000)
    shown = await page.evaluate("window.shown")
    values = [value for value, _ in shown]
    assert len(set(values)) > 3
    assert values == sorted(values)
    assert all(is_all for value, is_all in shown if value == 1)


@pytest.mark.slow
@pytest.mark.complaint("status of 422")
async def test_faults_are_shown_in_the_row_they_belong_to(page: Page, films: list[Path]) -> None:
    await start_upload(page, *films[:2])
    first, second = row(page, films[0].name), row(page, films[1].name)
    await first.get_by_role("checkbox").first.check()
    await first.get_by_label("Title").fill("t" * 201)
    await second.get_by_label("Title").fill("")
    await page.get_by_role("button", name="Publish all").click()

    await expect(second).to_contain_text("Give the video a title.")
    await expect(second).to_contain_text("Choose at least one category.")
    await expect(first.locator('[data-error-for="/title"]')).to_contain_text("200 characters")
    await expect(first.locator('[data-error-for="/categoryIds"]')).to_be_empty()
    await expect(first.get_by_label("Title")).to_be_focused()

    await first.get_by_label("Title").fill("Short enough")
    await first.get_by_role("button", name="Publish video").click()
    link = first.get_by_role("link", name="View “Short enough”")
    await expect(link).to_be_focused()
    # The other one is as it was.
    await expect(second).to_contain_text("Give the video a title.")
    await expect(second.get_by_role("button", name="Publish video")).to_be_enabled()


@pytest.mark.slow
async def test_first_field_at_fault_of_all_rows_gets_the_focus(
    page: Page, films: list[Path]
) -> None:
    await start_upload(page, *films[:2])
    await row(page, films[0].name).get_by_role("checkbox").first.check()
    await row(page, films[1].name).get_by_label("Title").fill("")
    await page.get_by_role("button", name="Publish all").click()
    await expect(row(page, films[1].name).get_by_label("Title")).to_be_focused()


@pytest.mark.slow
async def test_cancelled_file_can_be_uploaded_after_all_or_removed(
    page: Page, films: list[Path]
) -> None:
    await start_upload(page, *films[:2], rate_bps=SLOW_BPS)
    second = row(page, films[1].name)
    await second.get_by_label("Title").fill("Thought better of")
    await second.get_by_role("button", name="Cancel upload").click()
    await expect(second).to_contain_text("Cancelled")
    await slow_down(page, 0)
    await second.get_by_role("button", name="Try again").click()
    await expect(second.get_by_text("Uploaded", exact=True)).to_be_visible()
    await expect(second.get_by_label("Title")).to_have_value("Thought better of")
    await second.get_by_role("button", name="Remove").click()
    await expect(second).to_have_count(0)
    # One is left, and behaves like one.
    first = row(page, films[0].name)
    await first.get_by_role("checkbox").first.check()
    await press_publish(first)


async def test_same_file_twice_and_unsuitable_files_are_told_beside_good_ones(
    page: Page, films: list[Path], tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("notes")
    await start_upload(page, films[0])
    await choose(page, films[0], notes, films[1])
    faults = page.locator("#file-error p")
    await expect(faults).to_have_count(2)
    await expect(faults.first).to_contain_text("is in the list already")
    await expect(faults.last).to_contain_text("not an MP4 or QuickTime video")
    await expect(page.locator("[data-row]")).to_have_count(2)


@pytest.mark.parametrize(
    ("scheme", "width"),
    [("light", 320), ("dark", 1440), pytest.param("light", 2560, marks=pytest.mark.soak)],
)
@pytest.mark.slow
async def test_rows_fit_any_width_and_axe_finds_nothing_in_any_state(
    open_page: OpenPage,
    upload_files: dict[str, Path],
    films: list[Path],
    tmp_path: Path,
    scheme: str,
    width: int,
) -> None:
    page = await open_page(color_scheme=scheme, reduced_motion="reduce", width=width, height=800)
    await open_upload(page)
    names = ("hdr.mp4", "silent.mp4", "sound.mp4", "cut-media.mp4")
    await choose(page, *(upload_files[name] for name in names))
    await expect(row(page, "sound.mp4")).to_contain_text("Only the sound track")
    await expect(row(page, "silent.mp4").get_by_text("Uploaded", exact=True)).to_be_visible()
    done = row(page, "hdr.mp4")
    await done.get_by_role("checkbox").first.check()
    await done.get_by_role("button", name="Publish video").click()
    await expect(done.get_by_role("link", name="View")).to_be_visible()
    await slow_down(page, 20_000)
    long_name = shutil.copyfile(films[0], tmp_path / f"{'a_very_long_name' * 12}.mp4")
    await choose(page, Path(long_name), films[1], films[2])
    await row(page, films[1].name).get_by_role("button", name="Pause").click()
    await expect(row(page, films[1].name)).to_contain_text("Paused at")
    await page.get_by_role("button", name="Publish all").click()
    await expect(row(page, "silent.mp4")).to_contain_text("Choose at least one category")
    await page.evaluate("document.activeElement.blur()")

    assert await axe_findings(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await photograph(page, f"upload-several-{width}-{scheme}")
