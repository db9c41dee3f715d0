"""Players that are not ours download what was published, over http, with picture and sound."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from command_line import run_program
from decoded_media import flashes_s, listen, look
from media_recipes import COPYABLE
from published import PublishCard, Published
from serving import serving

from portal.transcoding.packaging.master import MASTER_NAME


@pytest.fixture(params=[("card.mp4",), ("copyable.mp4", *COPYABLE)], ids=["encoded", "copied"])
async def published(request: pytest.FixtureRequest, publish_card: PublishCard) -> Published:
    return await publish_card(*request.param)


@pytest.fixture
async def master_url(published: Published) -> AsyncIterator[str]:
    async with serving(web.static("/", published.folder)) as address:
        yield f"{address}/{MASTER_NAME}"


async def test_yt_dlp_downloads_picture_and_sound(
    published: Published, master_url: str, tmp_path: Path
) -> None:
    code, _, complaints = await run_program(
        *(sys.executable, "-m", "yt_dlp", "--ignore-config", "--no-cache-dir", "--no-update"),
        *("--quiet", "--no-warnings", "--fixup", "never", "--hls-prefer-native"),
        *("-f", "bv,ba", "-o", str(tmp_path / "%(format_id)s.mp4")),
        master_url,
    )
    assert code == 0, complaints
    sound, picture = sorted(tmp_path.iterdir(), key=lambda path: "audio" not in path.name)
    check_download(published, picture, sound)


def check_download(published: Published, picture: Path, sound: Path) -> None:
    """All pictures at their times, all of the sound, and both in step."""
    pictures = look(picture)
    heard = listen(sound)
    start_s = pictures[0].time_s
    assert len(pictures) == len(published.top)
    assert pictures[-1].time_s - start_s == pytest.approx(published.top[-1].time_s, abs=0.001)
    assert heard.end_s == pytest.approx(published.sounds["audio"].end_s, abs=0.05)
    flashed = [at - start_s for at in flashes_s(pictures)]
    assert flashed == pytest.approx(flashes_s(published.top), abs=0.002)
    assert heard.onsets_s() == pytest.approx(flashed, abs=0.04)
