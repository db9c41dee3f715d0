"""What the upload page says of a file before it is published, with files of many kinds."""

from pathlib import Path
from typing import Any

import pytest
from chromium import record_requests
from playwright.async_api import Page, expect
from upload_page import (
    choose,
    listen,
    open_upload,
    padded,
    press_publish,
    row,
    said,
    slow_down,
    start_upload,
)

# The file, what the row then says of it, and whether it may be published.
FINDINGS = [
    ("plain.mp4", "320 × 180 · 0:01 · 30 fps · H.264 · mono", True),  # noqa: RUF001
    ("hdr.mp4", "HDR. It will be converted to standard colours.", True),
    ("silent.mp4", "No audio track. This video is published without sound.", True),
    ("upright.mp4", "Portrait.", True),
    ("cut-media.mp4", "The end seems to be missing.", True),
    ("old.mov", "A codec this page", True),
    ("sound.mp4", "Only the sound track was found", False),
    ("notes.mp4", "This is not a video we can read", False),
    ("cut.mp4", "The end of this file is missing", False),
    ("protected.mp4", "This file is copy-protected", False),
]


async def test_row_says_what_the_file_is_and_what_will_happen_to_it(
    page: Page, upload_files: dict[str, Path]
) -> None:
    await open_upload(page)
    await listen(page)
    await choose(page, *(upload_files[name] for name, _, _ in FINDINGS))
    for name, words, is_publishable in FINDINGS:
        place = row(page, name)
        panel = place.locator("[data-transfer]")
        # Read as it looks: the stop after a finding's name comes from the style sheet.
        await expect(panel).to_contain_text(words.split(". ")[0].rstrip("."))
        if is_publishable:
            await expect(place.get_by_text("Uploaded", exact=True)).to_be_visible()
            await expect(place.get_by_role("button", name="Publish video")).to_be_visible()
        else:
            await expect(place.get_by_role("alert")).to_be_visible()
            await expect(place.get_by_role("button", name="Publish video")).to_be_hidden()
    heard = " ".join(await said(page, until="No audio track"))
    assert "silent.mp4: No audio track." in heard


@pytest.mark.slow
async def test_refused_file_is_not_sent_on_and_another_can_be_chosen(
    page: Page, upload_files: dict[str, Path], tmp_path: Path
) -> None:
    useless = padded(upload_files["sound.mp4"], tmp_path / "useless.mp4", 4_000_000)
    sent: list[str] = []
    page.on("requestfinished", lambda done: sent.append(done.method))
    await start_upload(page, useless, rate_bps=200_000)
    await expect(page.get_by_role("alert")).to_contain_text("Only the sound track was found")
    await expect(page.get_by_text("be published.")).to_be_visible()
    assert "PUT" not in sent
    await slow_down(page, 0)
    await page.get_by_role("button", name="Choose another file").click()
    await expect(page.locator("[data-drop] input")).to_be_focused()
    await choose(page, upload_files["plain.mp4"])
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    await page.get_by_role("checkbox").first.check()
    await press_publish(page)


@pytest.mark.slow
async def test_reader_is_fetched_only_once_there_is_a_file(
    page: Page, upload_files: dict[str, Path]
) -> None:
    fetched = record_requests(page, "preflight")
    await open_upload(page)
    await page.get_by_label("Title").fill("Nothing chosen yet")
    assert fetched == []
    await choose(page, upload_files["plain.mp4"])
    await expect(page.locator("[data-facts]")).to_contain_text("H.264")
    assert len(fetched) == 1


@pytest.mark.parametrize(
    "answer",
    [{"status": 404}, {"content_type": "text/javascript", "body": "throw new Error('broken')"}],
    ids=["missing", "broken"],
)
@pytest.mark.slow
@pytest.mark.complaint("Failed to load resource|page error")
async def test_upload_goes_on_without_the_reader(
    page: Page, upload_files: dict[str, Path], answer: dict[str, Any]
) -> None:
    await page.context.route("**/preflight-*.js", lambda route: route.fulfill(**answer))
    await start_upload(page, upload_files["plain.mp4"])
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    await expect(page.locator("[data-facts]")).to_be_empty()


@pytest.mark.slow
async def test_reader_that_never_answers_is_given_up(
    page: Page, upload_files: dict[str, Path]
) -> None:
    silent = "addEventListener('message', () => { while (true); });"
    await page.route(
        "**/preflight-*.js",
        lambda route: route.fulfill(content_type="text/javascript", body=silent),
    )
    await page.clock.install()
    await start_upload(page, upload_files["plain.mp4"])
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    await page.clock.run_for(11_000)
    await page.unroute("**/preflight-*.js")
    await choose(page, upload_files["silent.mp4"])
    await expect(row(page, "silent.mp4").locator("[data-facts]")).to_contain_text("H.264")
