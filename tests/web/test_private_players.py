"""Private videos in players that know nothing of the portal: ffmpeg, PyAV, yt-dlp."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import av
import pytest
from closed_portal import RATE, SECONDS, ClosedPortal, portal_with_film
from command_line import run_program
from running_portal import first_segment

from portal.transcoding.encoding.ffmpeg import ffmpeg_path

# Of the source.
QUIET = ("--ignore-config", "--no-cache-dir", "--no-update", "--quiet", "--no-warnings")

DECODE = """
import sys, av
with av.open(sys.argv[1]) as container:
    print(sum(1 for _ in container.decode(video=0)))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
async def closed(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ClosedPortal]:
    async with portal_with_film(services, tmp_path_factory.mktemp("private")) as closed:
        yield closed


async def address_of(closed: ClosedPortal, kind: str) -> str:
    """Where players find the video: by the owner's record, or by a new playback link."""
    if kind == "record":
        return str((await closed.ask("GET"))["playbackUrl"])
    return (await closed.make_link())["playbackUrl"]


KINDS = pytest.mark.parametrize("kind", ["record", "link"])


async def decode(address: str) -> tuple[int, str, str]:
    """How PyAV gets on with an address, in a process of its own: code, pictures, complaints."""
    return await run_program(sys.executable, "-c", DECODE, address)


def frames(path: Path) -> int:
    """How many pictures a file has."""
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


@KINDS
async def test_ffmpeg_plays_all_of_it(closed: ClosedPortal, kind: str, tmp_path: Path) -> None:
    """It warns that no connection to storage serves for the portal's next answer, and opens one.

    Of an answer that is no file it would warn "HTTP error 404 Not Found", and leave it out.
    """
    target = tmp_path / "copy.mp4"
    code, _, complaints = await run_program(
        *(ffmpeg_path(), "-v", "warning", "-i", await address_of(closed, kind)),
        *("-map", "0:v:0", "-map", "0:a:0", "-c", "copy", str(target)),
    )
    assert code == 0, complaints
    assert "HTTP error" not in complaints
    assert frames(target) == SECONDS * RATE


@KINDS
async def test_pyav_decodes_all_of_it(closed: ClosedPortal, kind: str) -> None:
    code, said, complaints = await decode(await address_of(closed, kind))
    assert (code, said.strip()) == (0, str(SECONDS * RATE)), complaints


@KINDS
async def test_yt_dlp_downloads_it(closed: ClosedPortal, kind: str, tmp_path: Path) -> None:
    code, _, complaints = await run_program(
        *(sys.executable, "-m", "yt_dlp", *QUIET, "--fixup", "never", "--hls-prefer-native"),
        *("-f", "bv,ba", "-o", str(tmp_path / "%(format_id)s.mp4")),
        await address_of(closed, kind),
    )
    assert code == 0, complaints
    sound, picture = sorted(tmp_path.iterdir(), key=lambda path: "audio" not in path.name)
    assert frames(picture) == SECONDS * RATE
    with av.open(str(sound)) as container:
        heard_s = sum(it.samples / it.sample_rate for it in container.decode(audio=0))
    assert heard_s == pytest.approx(SECONDS, abs=0.1)


async def named(player: aiohttp.ClientSession, address: str) -> list[str]:
    """What a playlist names, but for what its tags do."""
    async with player.get(address) as answer:
        assert answer.status == 200
        return [it for it in (await answer.text()).splitlines() if it and it[0] != "#"]


async def test_revoked_link_stops_within_a_segment(closed: ClosedPortal) -> None:
    """A player that has begun gets nothing more, neither a segment nor a playlist."""
    link = await closed.make_link()
    address = link["playbackUrl"]
    assert await first_segment(address)
    async with aiohttp.ClientSession() as player:
        playlist = urljoin(address, (await named(player, address))[0])
        segments = await named(player, playlist)
        assert len(segments) > 1
        async with player.get(urljoin(playlist, segments[0])) as answer:
            assert answer.status == 200
        await closed.revoke(link)
        for again in (urljoin(playlist, segments[1]), playlist, address):
            async with player.get(again) as answer:
                assert answer.status == 404
