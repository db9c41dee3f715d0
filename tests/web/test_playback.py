"""HLS out of a private bucket: who gets which playlist, and what its addresses open."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import aiohttp
import av
import pytest
from api_client import Client, published, run_sql
from page_rows import make_rendition
from running_portal import LivePortal, create, final_status, read, storyboard
from video_output import MASTER, MEDIA, PLAYLIST_TYPE, READY, STORYBOARD, Output
from yarl import URL

from portal.database.models import Rendition, Video
from portal.web.composition import WebContext

pytestmark = pytest.mark.shared_app

REFUSED = (400, 401, 403)


@pytest.fixture(scope="module")
async def video(live_portal: LivePortal, short_video: Path) -> dict[str, Any]:
    """The retrieval record of a video that was really transcoded."""
    created = await create(live_portal.base_url, short_video)
    assert await final_status(live_portal.base_url, created["id"]) == "ready"
    return await read(live_portal.base_url, created["id"])


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """A player on some other site: no cookies, no credentials."""
    headers = {"Origin": "https://player.example"}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield session


async def fetched(http: aiohttp.ClientSession, address: str) -> tuple[str, dict[str, str]]:
    async with http.get(URL(address, encoded=True)) as response:
        assert response.status == 200, address
        return await response.text(), dict(response.headers)


async def status_of(http: aiohttp.ClientSession, address: str) -> int:
    async with http.get(URL(address, encoded=True), allow_redirects=False) as response:
        return response.status


def addresses(playlist: str, base: str) -> list[str]:
    """All that a playlist refers to, made absolute."""
    lines = [line for line in playlist.splitlines() if line and not line.startswith("#")]
    return [urljoin(base, uri) for uri in lines + re.findall(r'URI="([^"]+)"', playlist)]


async def media_playlists(http: aiohttp.ClientSession, video: dict[str, Any]) -> list[str]:
    master, _ = await fetched(http, video["playbackUrl"])
    return addresses(master, video["playbackUrl"])


async def segments(http: aiohttp.ClientSession, video: dict[str, Any]) -> list[str]:
    first = (await media_playlists(http, video))[0]
    return addresses((await fetched(http, first))[0], first)


async def test_players_of_any_site_may_read_all_playlists(
    live_portal: LivePortal, video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    playlists = await media_playlists(http, video)
    assert len(playlists) >= 2  # video and audio
    for address in (video["playbackUrl"], *playlists):
        assert address.startswith(f"{live_portal.base_url}/hls/{video['id']}/1/")
        text, headers = await fetched(http, address)
        assert text.startswith("#EXTM3U")
        assert headers["Content-Type"] == PLAYLIST_TYPE
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert headers["Cache-Control"].startswith("private")


async def test_segments_come_from_storage_without_credentials(
    live_portal: LivePortal, video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    for playlist in await media_playlists(http, video):
        found = addresses((await fetched(http, playlist))[0], playlist)
        assert len(found) >= 2
        for address in found:
            assert address.startswith(live_portal.environ["S3_ENDPOINT_URL"])
            # An hour longer than the video, which native players read the addresses of once.
            assert 3600 < int(URL(address, encoded=True).query["X-Amz-Expires"]) < 3700
            async with http.get(URL(address, encoded=True)) as response:
                assert response.status == 200
                assert len(await response.read()) > 0
                assert response.headers["Access-Control-Allow-Origin"]


async def test_bucket_is_private(video: dict[str, Any], http: aiohttp.ClientSession) -> None:
    signed = (await segments(http, video))[0]
    bare = signed.partition("?")[0]
    assert await status_of(http, signed) == 200
    assert await status_of(http, bare) in REFUSED
    assert await status_of(http, bare.rpartition("/")[0]) in REFUSED
    forged = re.sub("(X-Amz-Signature=).", r"\1z", signed)
    assert await status_of(http, forged) in REFUSED


async def test_signed_address_opens_one_object(
    video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    first, second, *_ = await segments(http, video)
    moved = first.replace(urlsplit(first).path, urlsplit(second).path)
    assert moved != first
    assert await status_of(http, moved) in REFUSED
    raw_file = f"/{urlsplit(first).path.split('/')[1]}/{video['storageKey']}"
    moved = first.replace(urlsplit(first).path, raw_file)
    assert await status_of(http, moved) in REFUSED


async def test_real_player_decodes_the_video(video: dict[str, Any]) -> None:
    def decode() -> tuple[int, int]:
        with av.open(video["playbackUrl"], timeout=20) as container:
            frames = sum(1 for _ in container.decode(video=0))
            return frames, len(container.streams.audio)

    frames, sounds = await asyncio.to_thread(decode)
    assert 55 <= frames <= 62  # two seconds at 30 a second
    assert sounds >= 1


async def test_everything_but_published_playlists_is_not_found(
    live_portal: LivePortal, video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    base, own = live_portal.base_url, f"{live_portal.base_url}/hls/{video['id']}"
    paths = [
        f"{base}/hls/{uuid4()}/1/master.m3u8",
        f"{base}/hls/not-an-id/1/master.m3u8",
        *(f"{own}/{number}/master.m3u8" for number in ("0", "2", "-1", "x", "1.0", "9" * 30)),
        *(f"{own}/1/{name}" for name in ("other.m3u8", "", ".m3u8", ".mp4", "a.exe")),
        *(f"{own}/1/{up}master.m3u8" for up in ("../1/", "..%2f1%2f", "%2e%2e/1/", "..%5c1%5c")),
        f"{own}/1/%2e%2e%2f%2e%2e%2f{video['id']}/1/master.m3u8",
        f"{own}/1/a/b/master.m3u8",
        f"{own}/1/master.m3u8%00",
        f"{own}/1/master.m3u8%0a",
        f"{own}/1/MASTER.M3U8",
        f"{base}/{video['storageKey']}",
        f"{base}/hls/",
    ]
    for address in paths:
        assert await status_of(http, address) == 404, address


async def test_output_of_an_unpublished_attempt_stays_hidden(
    client: Client, unpublished: Output
) -> None:
    changes = {
        "status = 'processing'": 404,
        "status = 'ready', published_attempt = 2": 404,
        READY: 200,
        "status = 'failed', published_attempt = NULL": 404,
    }
    for change, status in changes.items():
        await unpublished.change(change)
        response = await client.get(f"/{unpublished.folder}/master.m3u8")
        assert response.status_code == status, change


async def test_renditions_of_later_attempts_are_served_once_complete(
    client: Client, output: Output
) -> None:
    later = f"hls/{output.video_id}/2/720p/media.m3u8"
    for key in (later, later.replace("media", "iframes"), later.replace("720p/media", "master")):
        await output.put(key, MEDIA)
    assert (await client.get(f"/{later}")).status_code == 404
    video = await Video.get(id=output.video_id)
    await make_rendition(video, "720p", state="planned", attempt_number=2)
    assert (await client.get(f"/{later}")).status_code == 404
    await Rendition.filter(name="720p").update(state="complete")
    found = {"720p/media": 200, "720p/iframes": 200, "low/media": 404, "master": 404}
    for name, status in found.items():
        response = await client.get(f"/hls/{output.video_id}/2/{name}.m3u8")
        assert response.status_code == status, name
    await output.change("status = 'failed', published_attempt = NULL")
    assert (await client.get(f"/{later}")).status_code == 404


async def test_master_playlist_may_grow_and_is_kept_only_for_seconds(
    client: Client, output: Output
) -> None:
    address = f"/{output.folder}/master.m3u8"
    first = await client.get(address)
    grown = MASTER + "#EXT-X-STREAM-INF:BANDWIDTH=2\n../2/high/media.m3u8\n"
    await output.put(address[1:], grown)
    second = await client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert second.status_code == 200
    assert await second.get_data(as_text=True) == grown
    assert second.headers["Cache-Control"] == "private, max-age=5"
    media = await client.get(f"/{output.folder}/low/media.m3u8")
    assert media.headers["Cache-Control"] == "private, max-age=300"


async def test_trick_play_and_subtitle_playlists_are_signed(client: Client, output: Output) -> None:
    texts = {
        "low/iframes": MEDIA.replace("#EXTINF", "#EXT-X-BYTERANGE:900@0\n#EXTINF"),
        "subtitles-1/playlist": MEDIA.replace("one.m4s", "00000.vtt").replace("init.mp4", "x"),
    }
    for name, text in texts.items():
        key = f"{output.folder}/{name}.m3u8"
        await output.put(key, text)
        served = await (await client.get(f"/{key}")).get_data(as_text=True)
        for address in addresses(served, "none"):
            assert "X-Amz-Signature=" in address
        assert served.count("#EXT-X-BYTERANGE:900@0") == text.count("#EXT-X-BYTERANGE")


async def test_storyboard_leads_to_signed_sprites_and_keeps_their_parts(
    client: Client, unpublished: Output, resources: WebContext
) -> None:
    own = f"/videos/{unpublished.video_id}/storyboard.vtt"
    await unpublished.put(f"{unpublished.folder}/storyboard.vtt", STORYBOARD, "text/vtt")
    assert (await client.get(own)).status_code == 404
    await unpublished.change(f"{READY}, has_storyboard = true")
    response = await client.get(own)
    assert response.mimetype == "text/vtt"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    lines = (await response.get_data(as_text=True)).splitlines()
    assert lines[:3] == STORYBOARD.splitlines()[:3]
    for line, part in ((lines[3], "#xywh=0,0,192,108"), (lines[6], "#xywh=192,0,192,108")):
        address, mark, rest = line.partition("#")
        assert mark + rest == part
        assert address.startswith(resources.config.s3_endpoint_url)
        assert "X-Amz-Signature=" in address


async def test_storyboard_of_a_transcoded_video_shows_real_pictures(
    live_portal: LivePortal, video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    await storyboard(live_portal.base_url, video["id"])
    own = f"{live_portal.base_url}/videos/{video['id']}/storyboard.vtt"
    text, _ = await fetched(http, own)
    [first, *_] = [line for line in text.splitlines() if "#xywh=" in line]
    async with http.get(URL(first.partition("#")[0], encoded=True)) as response:
        assert response.content_type == "image/jpeg"
        assert (await response.read()).startswith(b"\xff\xd8")


async def test_poster_of_a_ready_video_is_an_image_from_storage(
    live_portal: LivePortal, video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    poster = f"{live_portal.base_url}/videos/{video['id']}/poster.jpg"
    async with http.get(poster) as response:
        assert str(response.url).startswith(live_portal.environ["S3_ENDPOINT_URL"])
        assert response.content_type == "image/jpeg"
        assert (await response.read()).startswith(b"\xff\xd8")


async def test_only_ready_videos_have_a_poster(client: Client, resources: WebContext) -> None:
    record = await published(client)
    poster = f"/videos/{record['id']}/poster.jpg"
    assert (await client.get(poster)).status_code == 404
    await run_sql(resources.config.database_url, "UPDATE videos SET status = 'failed'")
    assert (await client.get(poster)).status_code == 404
    assert (await client.get(f"/videos/{uuid4()}/poster.jpg")).status_code == 404
