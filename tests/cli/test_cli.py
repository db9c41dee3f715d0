"""The command line as people use it: publishing a file, and finding out what is wrong."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import pytest
from running_portal import LivePortal, read


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


async def portal(*arguments: str, environ: dict[str, str] | None = None) -> Ended:
    """Run the `portal` command to its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "portal", *arguments),
        env={"PATH": os.environ["PATH"], **(environ or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return Ended(process.returncode or 0, out.decode(), err.decode())


async def test_publish_prints_an_address_that_plays(
    live_portal: LivePortal, short_video: Path
) -> None:
    ended = await portal(
        *("publish", str(short_video), "--title", "From a shell", "--tags", "a, b"),
        *("--category", "music", "--category", "3", "--url", live_portal.base_url),
    )

    assert ended.code == 0, ended.err
    playback_url = ended.out.strip()
    video_id = playback_url.split("/")[-3]
    record = await read(live_portal.base_url, video_id)
    assert record["playbackUrl"] == playback_url
    assert (record["title"], record["tags"]) == ("From a shell", "a, b")
    assert record["categoryIds"] == [2, 3]
    assert await first_segment(playback_url)


async def first_segment(master_url: str) -> bytes:
    """Follow a master playlist to the first bytes of its first variant, as a player does."""
    async with aiohttp.ClientSession() as session:
        media_url = urljoin(master_url, await first_uri(session, master_url))
        async with session.get(await first_uri(session, media_url)) as response:
            assert response.status == 200
            return await response.read()


async def first_uri(session: aiohttp.ClientSession, playlist_url: str) -> str:
    async with session.get(playlist_url) as response:
        assert response.status == 200
        lines = (await response.text()).splitlines()
    return next(line for line in lines if line and not line.startswith("#"))


async def test_publish_without_waiting_prints_the_id(
    live_portal: LivePortal, short_video: Path
) -> None:
    ended = await portal(
        *("publish", str(short_video), "--category", "1", "--no-wait"),
        environ={"PORTAL_URL": live_portal.base_url},
    )

    assert ended.code == 0, ended.err
    record = await read(live_portal.base_url, ended.out.strip())
    assert record["title"] == short_video.stem


async def test_publish_passes_on_what_the_portal_refuses(
    live_portal: LivePortal, short_video: Path
) -> None:
    ended = await portal(
        *("publish", str(short_video), "--title", "x" * 201, "--category", "1"),
        *("--url", live_portal.base_url),
    )

    assert ended.code == 1
    assert "/title: Shorten this to at most 200 characters." in ended.err
    assert "Traceback" not in ended.err


async def test_publish_lists_the_categories_when_one_is_unknown(
    live_portal: LivePortal, short_video: Path
) -> None:
    ended = await portal(
        *("publish", str(short_video), "--category", "Knitting", "--url", live_portal.base_url)
    )

    assert ended.code == 1
    assert "There is no category 'Knitting'" in ended.err
    assert "Travel & Events" in ended.err


@pytest.mark.slow
async def test_publish_says_that_a_video_failed(live_portal: LivePortal, tmp_path: Path) -> None:
    notes = tmp_path / "notes.mov"
    notes.write_text("no video at all")

    ended = await portal("publish", str(notes), "--category", "1", "--url", live_portal.base_url)

    assert ended.code == 1
    assert "could not be converted" in ended.err
    assert live_portal.base_url in ended.err


@pytest.mark.parametrize("name", ["film.avi", "film"])
async def test_publish_refuses_other_files_before_sending_anything(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"x")

    ended = await portal("publish", str(tmp_path / name), "--category", "1")

    assert ended.code == 1
    assert "only .mp4, .m4v, .mov, .qt files" in ended.err


async def test_doctor_finds_nothing_on_a_working_portal(live_portal: LivePortal) -> None:
    ended = await portal("doctor", environ=live_portal.environ)

    assert ended.code == 0, ended.out
    assert "FAIL" not in ended.out
    assert ended.out.count("ok") == 6


@pytest.mark.parametrize(
    ("broken", "complaint", "fix"),
    [
        ({"S3_BUCKET": "missing"}, "no bucket 'missing'", "aws s3api create-bucket"),
        ({"S3_ENDPOINT_URL": "http://127.0.0.1:9"}, "Bucket: Could not connect", "S3_ENDPOINT_URL"),
        ({"AWS_SECRET_ACCESS_KEY": "w" * 40}, "Forbidden", "Check S3_ENDPOINT_URL"),
        ({"S3_PUBLIC_ENDPOINT_URL": "http://127.0.0.1:9"}, "Upload and playback", "browsers"),
        ({"DATABASE_URL": "postgresql://x@127.0.0.1:9/x"}, "Database", "Check DATABASE_URL"),
        ({"IMAGEIO_FFMPEG_EXE": "/nowhere"}, "ffmpeg does not run", "IMAGEIO_FFMPEG_EXE"),
        ({"IMAGEIO_FFMPEG_EXE": "/bin/false"}, "ffmpeg does not run", "IMAGEIO_FFMPEG_EXE"),
    ],
)
@pytest.mark.slow
async def test_doctor_names_the_fix_for_what_is_broken(
    live_portal: LivePortal, broken: dict[str, str], complaint: str, fix: str
) -> None:
    ended = await portal("doctor", environ={**live_portal.environ, **broken})

    assert ended.code == 1
    assert complaint in ended.out
    assert fix.lower() in ended.out.lower()
    assert "Traceback" not in ended.out + ended.err


@pytest.mark.slow
async def test_doctor_notices_an_unmigrated_database(
    live_portal: LivePortal, services: dict[str, str]
) -> None:
    environ = {**live_portal.environ, "DATABASE_URL": services["DATABASE_URL"]}

    ended = await portal("doctor", environ=environ)

    assert ended.code == 1
    assert "the tables are missing" in ended.out
    assert "portal migrate" in ended.out


@pytest.mark.parametrize("command", ["web", "worker", "migrate", "doctor"])
@pytest.mark.slow
async def test_bad_settings_are_all_named_at_once(command: str) -> None:
    ended = await portal(command, environ={"PORT": "many", "LOG_LEVEL": "loud"})

    assert ended.code == 1
    for name in ("DATABASE_URL", "PORT", "LOG_LEVEL"):
        assert name in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow
async def test_worker_says_that_the_database_is_away() -> None:
    ended = await portal("worker", environ={"DATABASE_URL": "postgresql://x@127.0.0.1:9/x"})

    assert ended.code == 1
    assert "database" in ended.err
    assert "Traceback" not in ended.err + ended.out
