"""The commands `portal publish` and `portal doctor`."""

from pathlib import Path

import pytest
from command_line import Ended, portal
from numbered_film import make_numbered
from running_portal import LivePortal, first_segment, free_port, read
from single_sign_on import small_provider

from portal.transcoding.encoding import ffmpeg


async def test_publish_prints_a_playback_url_or_the_errors_of_the_portal(
    live_portal: LivePortal, short_video: Path
) -> None:
    publish = ("publish", str(short_video), "--url", live_portal.base_url, "--category", "music")
    texts = ("--title", "From the command line", "--tags", "a, b", "--visibility", "unlisted")
    ended = await portal({}, *publish, *texts, "--category", "3")
    assert ended.code == 0, ended.err
    playback_url = ended.out.strip()
    video_id = playback_url.split("/")[-2]
    record = await read(live_portal.base_url, f"{video_id}?include=details")
    assert record["playbackUrl"] == playback_url
    assert (record["title"], record["tags"]) == ("From the command line", "a, b")
    assert (record["categoryIds"], record["details"]["visibility"]) == ([2, 3], "unlisted")
    assert await first_segment(playback_url)

    refused = await portal({}, *publish, "--title", "x" * 201)
    assert refused.code == 1
    assert "/title: Shorten this to at most 200 characters." in refused.err


async def test_publish_repacks_other_films(live_portal: LivePortal, tmp_path: Path) -> None:
    film = make_numbered(tmp_path / "Herons at 7.mkv", "-c:a", "aac", seconds=2)
    ended = await portal(
        {}, "publish", str(film), "--url", live_portal.base_url, "--category", "music"
    )
    assert ended.code == 0, ended.err
    assert "Repacked from Matroska; nothing is lost." in ended.err
    record = await read(live_portal.base_url, ended.out.strip().split("/")[-2])
    assert (record["title"], record["fileName"]) == ("Herons at 7", "Herons at 7.mp4")


async def test_publish_refuses_other_files_before_sending_anything(tmp_path: Path) -> None:
    film = tmp_path / "film.avi"
    film.write_bytes(b"x")
    ended = await portal({}, "publish", str(film), "--category", "1")
    assert ended.code == 1
    assert "film.avi can't be read as a video or sound file" in ended.err


async def test_doctor_checks_the_provider_of_single_sign_on(live_portal: LivePortal) -> None:
    """The provider works, has another issuer, or is unreachable."""
    client = {"OIDC_CLIENT_ID": "portal", "OIDC_CLIENT_SECRET": "secret-5ec7e7"}

    async def doctor(issuer: str) -> Ended:
        return await portal({**live_portal.environ, **client, "OIDC_ISSUER": issuer}, "doctor")

    async with small_provider() as provider:
        good = await doctor(provider.issuer)
        other = await doctor(f"{provider.issuer}/")
    away = await doctor(f"http://127.0.0.1:{free_port()}")
    assert good.code == 0, good.out
    assert "FAIL" not in good.out
    assert good.out.count("ok") == 11
    assert "Single sign-on" in good.out
    for ended, words in ((other, "its issuer is"), (away, "Cannot connect to host")):
        assert ended.code == 1
        assert f"FAIL  Single sign-on: {words}" in ended.out
        assert "Set OIDC_ISSUER to exactly the issuer" in ended.out
        assert "secret-5ec7e7" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("broken", "complaint", "fix"),
    [
        ({"S3_ENDPOINT_URL": "http://127.0.0.1:9"}, "Bucket: Could not connect", "S3_ENDPOINT_URL"),
        ({"S3_PUBLIC_ENDPOINT_URL": "http://127.0.0.1:9"}, "Upload and playback", "browsers"),
        ({"DATABASE_URL": "postgresql://x@127.0.0.1:9/x"}, "Database", "Check DATABASE_URL"),
    ],
)
@pytest.mark.slow
async def test_doctor_names_the_fix_of_a_broken_part(
    live_portal: LivePortal, broken: dict[str, str], complaint: str, fix: str
) -> None:
    ended = await portal({**live_portal.environ, **broken}, "doctor")

    assert ended.code == 1
    assert complaint in ended.out
    assert fix.lower() in ended.out.lower()


async def test_doctor_reports_an_unmigrated_database_and_a_broken_ffmpeg(
    live_portal: LivePortal, services: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ffmpeg, "ffmpeg_path", lambda: "/bin/false")
    environ = {**live_portal.environ, "DATABASE_URL": services["DATABASE_URL"]}
    ended = await portal(environ, "doctor")
    assert ended.code == 1
    for words in ("the tables are missing", "portal migrate", "ffmpeg does not run"):
        assert words in ended.out


@pytest.mark.parametrize("command", ["web", "worker"])
async def test_all_invalid_settings_are_reported_at_once(command: str) -> None:
    ended = await portal({"PORT": "many", "LOG_LEVEL": "loud"}, command)
    assert ended.code == 1
    for name in ("DATABASE_URL", "PORT", "LOG_LEVEL"):
        assert name in ended.err
