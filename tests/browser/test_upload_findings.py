"""What the upload page says of a file before it is published, with files of many kinds."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from upload_page import (
    choose,
    choose_category,
    is_uploaded,
    line,
    listen,
    open_line,
    open_upload,
    padded,
    press_publish,
    publish_button,
    said,
    slow_down,
    start_upload,
)

# The file, what the page then says of it, and whether it may be published.
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


async def test_details_say_what_the_file_is_and_what_will_happen_to_it(
    page: Page, upload_files: dict[str, Path]
) -> None:
    await open_upload(page)
    await listen(page)
    await choose(page, *(upload_files[name] for name, _, _ in FINDINGS))
    for name, words, is_publishable in FINDINGS:
        form = await open_line(page, name)
        # Read as it looks: the stop after a finding's name comes from the style sheet.
        await expect(form).to_contain_text(words.split(". ")[0].rstrip("."))
        if is_publishable:
            await is_uploaded(page, name)
        else:
            await expect(form.get_by_role("alert")).to_be_visible()
            await expect(line(page, name)).to_contain_text("Can’t be published")  # noqa: RUF001
    publishable = len([name for name, _, is_publishable in FINDINGS if is_publishable])
    await expect(publish_button(page)).to_have_text(f"Publish {publishable} videos")
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
    await expect(publish_button(page)).to_be_hidden()
    assert "PUT" not in sent
    await slow_down(page, 0)
    await page.get_by_label("Replace file").set_input_files(upload_files["plain.mp4"])
    await is_uploaded(page, "plain.mp4")
    await choose_category(page)
    await press_publish(page)
