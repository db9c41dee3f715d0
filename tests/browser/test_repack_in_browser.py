"""Upload of files that the page repacks to MP4 while it sends them."""

from pathlib import Path

import pytest
from chromium import TRANSCODE_TIMEOUT_MS, play_past
from playwright.async_api import Page, expect
from running_portal import run_ffmpeg
from upload_page import (
    choose,
    choose_category,
    details,
    line,
    open_upload,
    open_video,
    publish_button,
)

# Browsers log aborted uploads as errors.
pytestmark = pytest.mark.complaint("Failed to load resource")

PICTURE = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30:duration=6")
SOUND = ("-f", "lavfi", "-i", "sine=duration=6")


@pytest.fixture(scope="session")
def matroska(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film as OBS records it."""
    path = tmp_path_factory.mktemp("repack") / "screen recording.mkv"
    return run_ffmpeg(
        path, *PICTURE, *SOUND, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"
    )


async def publish(page: Page, path: Path) -> None:
    """Publish a file that is chosen already, and open its page."""
    await choose_category(page)
    await publish_button(page).click()
    place = line(page, path.name)
    await expect(place).to_contain_text("Ready to watch", timeout=TRANSCODE_TIMEOUT_MS)
    await open_video(page, path.stem)


async def test_matroska_is_repacked_while_it_is_sent(page: Page, matroska: Path) -> None:
    await open_upload(page)
    await choose(page, matroska)
    place = line(page, matroska.name)
    await expect(place).to_contain_text("Repacked from Matroska, nothing is lost")
    await expect(details(page)).to_contain_text("320 × 180 · 0:06 · 30 fps · H.264 · mono")  # noqa: RUF001
    await publish(page, matroska)
    await play_past(page, 4)


async def test_sound_becomes_a_film_with_a_picture(page: Page, tmp_path: Path) -> None:
    sound = run_ffmpeg(tmp_path / "interview.mp3", *SOUND)
    await open_upload(page)
    await choose(page, sound)
    await expect(details(page)).to_contain_text("Sound without a picture")
    await publish(page, sound)
    await play_past(page, 4)


async def test_what_can_not_be_repacked_is_told_before_sending(page: Page, tmp_path: Path) -> None:
    film = run_ffmpeg(tmp_path / "old.avi", *PICTURE)
    odd = run_ffmpeg(tmp_path / "odd.mkv", *PICTURE, "-c:v", "mpeg4")
    await open_upload(page)
    await choose(page, film, odd)
    for path in (film, odd):
        await expect(line(page, path.name)).to_contain_text("Can’t be published")  # noqa: RUF001
        await line(page, path.name).locator("[data-open]").click()
        await expect(details(page)).to_contain_text("portal publish")
        await expect(details(page)).to_contain_text("HandBrake")
