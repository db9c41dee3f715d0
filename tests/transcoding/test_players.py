"""Players that are not ours download what was published, over http, with picture and sound."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from decoded_media import flashes_s, listen, look
from media_recipes import MakeMedia, make_card
from published import Publish, Published

from portal.transcoding.encoding.ffmpeg import ffmpeg_path
from portal.transcoding.packaging.master import MASTER_NAME

_LIMIT_S = 60


@pytest.fixture
async def serve_folder() -> AsyncIterator[Callable[[Path], Awaitable[str]]]:
    runners: list[web.AppRunner] = []

    async def start(folder: Path) -> str:
        app = web.Application()
        app.router.add_static("/", folder)
        runners.append(web.AppRunner(app, shutdown_timeout=0.1))
        await runners[-1].setup()
        await web.TCPSite(runners[-1], "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runners[-1].addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture(params=["encoded", "copied"])
async def published(
    request: pytest.FixtureRequest, make_media: MakeMedia, publish: Publish
) -> Published:
    if request.param == "encoded":
        return await publish(make_card(make_media, "card.mp4"))
    return await publish(make_card(make_media, "copyable.mp4", "-g", "50"))


async def run(*argv: str) -> str:
    """Run a program to its end and return what it had to complain about."""
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(_LIMIT_S):
            _, stderr = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, stderr.decode()
    return stderr.decode()


@pytest.mark.slow
async def test_ffmpeg_plays_every_variant_without_a_complaint(
    published: Published, serve_folder: Callable[[Path], Awaitable[str]], tmp_path: Path
) -> None:
    address = await serve_folder(published.folder)
    for number in range(len(published.result.renditions)):
        target = tmp_path / f"{number}.mp4"
        complaints = await run(
            *(ffmpeg_path(), "-v", "warning", "-i", f"{address}/{MASTER_NAME}"),
            *("-map", f"0:v:{number}", "-map", "0:a:0", "-c", "copy", str(target)),
        )
        assert complaints == ""
        check_download(published, target, target)


async def test_yt_dlp_downloads_picture_and_sound(
    published: Published, serve_folder: Callable[[Path], Awaitable[str]], tmp_path: Path
) -> None:
    address = await serve_folder(published.folder)
    await run(
        *(sys.executable, "-m", "yt_dlp", "--ignore-config", "--no-cache-dir", "--no-update"),
        *("--quiet", "--no-warnings", "--fixup", "never", "--hls-prefer-native"),
        *("-f", "bv,ba", "-o", str(tmp_path / "%(format_id)s.mp4")),
        f"{address}/{MASTER_NAME}",
    )
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
