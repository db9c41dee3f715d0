"""Films whose tracks have different lengths play to the end of the longer one."""

from pathlib import Path

import pytest
from chromium import Publish, play_past
from player_page import open_player, read, wait_for
from playwright.async_api import Page
from running_portal import run_ffmpeg

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
        pytest.param(FILM_S, SHORT_S, ENCODED, id="short sound, encoded picture"),
        pytest.param(SHORT_S, FILM_S, COPIED, id="short picture"),
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
