"""Films whose tracks have different lengths play to the end of the longer one."""

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import psutil
import pytest
from chromium import Publish, play_past
from passes import make_source
from player_page import open_player, read, wait_for
from playwright.async_api import Page, expect
from running_portal import LivePortal, call, create, process, run_ffmpeg, until

pytestmark = pytest.mark.slow

# The film is longer than the player buffers ahead after the end of the shorter track.
FILM_S = 50
SHORT_S = 2
COPIED = ("-g", "20", "-level:v", "4")
ENCODED = ("-level:v", "5.1")


@pytest.mark.parametrize(
    ("picture_s", "sound_s", "options"),
    [
        pytest.param(FILM_S, SHORT_S, COPIED, id="short sound, copied picture"),
        pytest.param(
            FILM_S, SHORT_S, ENCODED, id="short sound, encoded picture", marks=pytest.mark.soak
        ),
        pytest.param(SHORT_S, FILM_S, COPIED, id="short picture", marks=pytest.mark.soak),
    ],
)
async def test_a_film_plays_past_the_end_of_its_shorter_track_to_its_own(
    picture_s: float,
    sound_s: float,
    options: tuple[str, ...],
    publish: Publish,
    page: Page,
    tmp_path: Path,
) -> None:
    inputs = (f"testsrc2=s=320x180:r=10:d={picture_s}", f"sine=d={sound_s}")
    sources = [argument for source in inputs for argument in ("-f", "lavfi", "-i", source)]
    codec = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", *options)
    film = run_ffmpeg(tmp_path / "film.mp4", *sources, *codec)
    video_id = await publish(film, "Tracks of two lengths", until="ready")

    await open_player(page, f"/videos/{video_id}")
    assert await read(page, "video.duration") == pytest.approx(FILM_S, abs=0.2)
    await play_past(page, SHORT_S + 1)
    await read(page, f"video.currentTime = {FILM_S - 1}")
    await wait_for(page, "video.ended")
    assert await read(page, "video.currentTime") == pytest.approx(FILM_S, abs=0.2)


@pytest.mark.soak
async def test_a_growing_preview_is_watched_past_the_end_of_its_sound(
    portal: LivePortal, page: Page, tmp_path: Path
) -> None:
    silent = ("-af", f"atrim=end={SHORT_S}")
    film = make_source(tmp_path / "film.mp4", *silent, seconds=121, rate=7)
    created = await create(portal.base_url, film)
    transcode = f"{portal.base_url}/api/videos/{created['id']}/transcode"

    async def can_be_watched() -> bool:
        preview = (await call("GET", transcode))["previewUrl"]
        return preview is not None and await previewed_segments(preview) >= 3

    async with process("worker", portal.environ) as worker:
        await until(can_be_watched, timeout_s=60)
        processes = [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(True)]
        for each in processes:
            # Child processes of a moment may have ended.
            with suppress(psutil.NoSuchProcess):
                each.suspend()
        try:
            await page.goto(f"{portal.base_url}/videos/{created['id']}")
            source = re.compile("preview")
            await expect(page.locator("video")).to_have_attribute("data-src", source)
            await play_past(page, SHORT_S + 6)
        finally:
            for each in processes:
                with suppress(psutil.NoSuchProcess):
                    each.resume()


async def previewed_segments(master_url: str) -> int:
    """Return how many segments each playlist of a preview has at least."""
    counts = []
    async with aiohttp.ClientSession() as session:
        async with session.get(master_url) as response:
            names = re.findall(r'^[^#\s]+|(?<=URI=")[^"]+', await response.text(), re.MULTILINE)
        for name in names:
            async with session.get(urljoin(master_url, name)) as response:
                counts.append((await response.text()).count("#EXTINF"))
    return min(counts)
