"""Upload of files that the page repacks to MP4 while it sends them."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from chromium import play_past, record_requests, suits_everyone
from numbered_film import FPS, make_numbered
from player_page import read, shown_number, wait_for
from playwright.async_api import Page, expect
from running_portal import run_ffmpeg
from upload_page import (
    choose,
    choose_category,
    details,
    is_uploaded,
    line,
    open_upload,
    press_publish,
    publish_and_open,
    slow_down,
)

# Browsers log aborted uploads as errors.
pytestmark = pytest.mark.complaint("Failed to load resource")

MIB = 2**20
PICTURE = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30:duration=6")
SOUND = ("-f", "lavfi", "-i", "sine=duration=6")


@pytest.fixture(scope="session")
def matroska(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film as OBS records it."""
    path = tmp_path_factory.mktemp("repack") / "screen recording.mkv"
    return run_ffmpeg(
        path, *PICTURE, *SOUND, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"
    )


async def test_matroska_is_repacked_while_it_is_sent(page: Page, matroska: Path) -> None:
    await open_upload(page)
    await choose(page, matroska)
    place = line(page, matroska.name)
    await expect(place).to_contain_text("Repacked from Matroska, nothing is lost")
    await expect(details(page)).to_contain_text("320 × 180 · 0:06 · 30 fps · H.264 · mono")  # noqa: RUF001
    await publish_and_open(page, matroska)
    await play_past(page, 4)


async def test_repacking_continues_after_a_reload_with_the_parts_that_arrived(
    page: Page, tmp_path: Path
) -> None:
    noise = ("-f", "lavfi", "-i", "nullsrc=s=960x540:r=25:d=8,geq=random(1)*255:128:128")
    film = run_ffmpeg(
        tmp_path / "long take.mkv",
        *(*noise, *SOUND, "-c:v", "libx264", "-preset", "ultrafast", "-b:v", "24M"),
        *("-pix_fmt", "yuv420p", "-g", "25", "-c:a", "aac"),
    )
    # Two parts: more would be sent together with the first two, or not, by the rate of the line.
    assert 18 * MIB < film.stat().st_size < 30 * MIB
    context = page.context
    await context.route(re.compile("partNumber=2"), lambda route: route.abort())
    await open_upload(page)
    async with page.expect_request_finished(lambda request: "partNumber=1" in request.url):
        await choose(page, film)
    await expect(line(page, film.name)).to_contain_text("Retrying")
    # Closing without unload handlers is like a crash.
    await page.close()
    page = await context.new_page()
    await open_upload(page)
    await expect(line(page, film.name)).to_contain_text(re.compile(r"Unfinished at [4-8]\d%"))
    await context.unroute_all()
    uploads = record_requests(page, method="PUT")
    await choose(page, film)
    await is_uploaded(page, film.name)
    assert ["partNumber=2" in url for url in uploads] == [True]
    await choose_category(page)
    await press_publish(page, title=film.stem)


async def test_sound_becomes_a_film_with_a_picture(page: Page, tmp_path: Path) -> None:
    sound = run_ffmpeg(tmp_path / "interview.mp3", *SOUND)
    await open_upload(page)
    await choose(page, sound)
    await expect(details(page)).to_contain_text("Sound without a picture")
    await publish_and_open(page, sound)
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


async def test_only_the_kept_part_is_sent(page: Page, tmp_path: Path) -> None:
    groups = ("-g", "25", "-bf", "3", "-x264-params", "b-adapt=0", "-c:a", "aac")
    film = make_numbered(tmp_path / "meeting.mp4", *groups, seconds=20)
    await open_upload(page)
    slow_line = await slow_down(page, 10_000)
    await choose(page, film)
    form = details(page)
    place = line(page, film.name)
    await form.get_by_text("Send only a part").click()
    await page.locator("[data-trim][data-ready]").wait_for()
    start = form.get_by_label("Start", exact=True)
    # Within a group of pictures.
    await start.fill("0:04.200")
    await start.press("Tab")
    await expect(place).to_contain_text("Paused at")
    await expect(place).to_contain_text("Waits until you have chosen")
    end = form.get_by_role("slider", name="End of the selection")
    await end.focus()
    for _ in range(13):
        await page.keyboard.press("Shift+ArrowLeft")
    await expect(form.get_by_label("End", exact=True)).to_have_value("0:07.000")
    await suits_everyone(page, "trim")
    parts = record_requests(page, "/parts/", method="POST")
    await form.get_by_role("button", name="Send only this part").click()
    await expect(place).to_contain_text("Only 0:04.2 to 0:07 is sent")
    await slow_line.detach()
    await is_uploaded(page, film.name)
    [size] = [int(parse_qs(urlsplit(url).query)["sizeBytes"][0]) for url in parts]
    assert size < film.stat().st_size / 3
    await expect(form.get_by_text("Send only a part")).to_be_hidden()
    await publish_and_open(page, film)
    await wait_for(page, "video.readyState >= 2")
    assert await shown_number(page) == 4.2 * FPS
    await play_past(page, 1)
    assert abs(await read(page, "video.duration") - 2.8) < 0.05
