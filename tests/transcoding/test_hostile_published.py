"""Files made to do harm, published like any other: the whole service deals with them.

What the probe and ffmpeg make of each is in test_hostile.py; here web, storage, queue and worker
are in between, and the file is read through a signed address.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hls_checks import attributes
from hostile_files import HOSTILE
from running_portal import (
    LivePortal,
    create,
    final_status,
    fresh_database,
    read,
    run_ffmpeg,
    run_portal,
)

from portal.transcoding.errors import RejectCode

TIMEOUT_S = 240
# Of those that only the probe's own tests would otherwise see, one of each kind.
BOMBS = (
    "huge picture in a small entry",
    "a million boxes in each other",
    "a packed index that claims 4 GB",
)
EVIL = "http://evil.example/x.m3u8"
NAMES = (
    f'Voice"\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{EVIL}',
    f'a",URI="{EVIL}',
    "<script>alert(1)</script>\u202e\u2066",
)
SUBTITLES = f"""1
00:00:00,000 --> 00:00:01,000
<script>alert(1)</script> {EVIL} &amp;

2
00:00:01,000 --> 00:00:02,000
NOTE
STYLE
::cue {{ background: url({EVIL}) }}
00:00:00.000 --> 99:00:00.000 line:0
"""


@dataclass(frozen=True, slots=True)
class Service:
    """A running portal, worker included, and what it has logged."""

    portal: LivePortal
    log_dir: Path

    def said(self) -> str:
        """All that web and worker have logged so far."""
        return "".join(path.read_text() for path in sorted(self.log_dir.glob("*.log")))


@pytest.fixture(scope="module")
async def service(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("hostile")
    settings = {"WORK_DIR": str(folder / "work"), "WORKER_CONCURRENCY": "2"}
    async with (
        fresh_database(services) as environ,
        run_portal({**environ, **settings}, log_dir=folder) as portal,
    ):
        yield Service(portal, folder)


async def all_fail(
    service: Service, cases: Mapping[str, tuple[bytes, RejectCode]], folder: Path
) -> str:
    """Publish all of them at once, each to fail for its reason; returns what is said of it."""
    told = await asyncio.gather(
        *(_failure_of(service, name, data, folder) for name, (data, _) in cases.items())
    )
    expected = {name: code for name, (_, code) in cases.items()}
    assert dict(zip(cases, [failure["code"] for failure in told], strict=True)) == expected
    assert all(failure["message"].endswith(".") for failure in told)
    return str(told)


async def _failure_of(service: Service, name: str, data: bytes, folder: Path) -> dict[str, Any]:
    path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name)}.mp4"
    await asyncio.to_thread(path.write_bytes, data)
    base = service.portal.base_url
    record = await create(base, path, title=name)
    assert await final_status(base, record["id"], timeout_s=TIMEOUT_S) == "failed", name
    assert (await read(base, record["id"]))["playbackUrl"] == ""
    async with (
        aiohttp.ClientSession(base) as session,
        session.get(f"/api/videos/{record['id']}/transcode") as response,
    ):
        failure: dict[str, Any] = (await response.json())["failure"]
    return failure


@pytest.mark.slow
async def test_bombs_fail_with_their_reason_and_the_worker_goes_on(
    service: Service, tmp_path: Path
) -> None:
    bombs = {name: (make(), code) for name, (make, code) in HOSTILE.items() if name in BOMBS}
    await all_fail(service, bombs, tmp_path)
    assert "Traceback" not in service.said()


def make_talkative_film(path: Path) -> Path:
    """Two seconds with sound tracks and subtitles whose names would write playlists."""
    subtitles = path.with_suffix(".srt")
    subtitles.write_text(SUBTITLES)
    sounds = [argument for _ in NAMES for argument in ("-f", "lavfi", "-i", "sine=duration=2")]
    maps = [argument for n in range(len(NAMES)) for argument in ("-map", f"{n + 1}:a")]
    named = [
        argument
        for n, name in enumerate(NAMES)
        for argument in (f"-metadata:s:a:{n}", f"handler_name={name}")
    ]
    return run_ffmpeg(
        path,
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30:duration=2", *sounds),
        *("-i", str(subtitles), "-map", "0:v", *maps, "-map", f"{len(NAMES) + 1}:s"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"),
        *("-c:s", "mov_text", *named, "-metadata:s:s:0", f"handler_name={NAMES[0]}"),
        *("-metadata", f"title={NAMES[2]}"),
    )


async def test_what_a_file_says_of_itself_writes_no_playlist(
    service: Service, tmp_path: Path
) -> None:
    base = service.portal.base_url
    record = await create(base, make_talkative_film(tmp_path / "film.mp4"))
    assert await final_status(base, record["id"], timeout_s=TIMEOUT_S) == "ready"
    master_url = (await read(base, record["id"]))["playbackUrl"]
    async with aiohttp.ClientSession() as session:
        master = await _text(session, master_url)
        media = [attributes(line) for line in master.splitlines() if "#EXT-X-MEDIA:" in line]
        assert len([it for it in media if it["TYPE"] == "AUDIO"]) == len(NAMES)
        assert not [line for line in master.splitlines() if line.startswith(EVIL)]
        names = "".join(it["NAME"] for it in media)
        assert "\u202e" not in names
        assert "#EXT-X-STREAM-INF:BANDWIDTH=1" in names
        folder = master_url.rpartition("/")[0]
        for entry in media:
            assert re.fullmatch(r"[a-z0-9-]+/playlist\.m3u8", entry["URI"])
            playlist = await _text(session, f"{folder}/{entry['URI']}")
            addresses = [line for line in playlist.splitlines() if not line.startswith("#")]
            assert not [it for it in addresses if "evil" in it]
            if entry["TYPE"] == "SUBTITLES":
                texts = [await _text(session, address) for address in addresses]
                assert texts
                assert "<script" not in "".join(texts)
                assert "&amp;amp;" in "".join(texts)
        page = await _text(session, f"{base}/videos/{record['id']}")
    assert "<script>alert" not in page


async def _text(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as response:
        assert response.status == 200, url
        return await response.text()
