"""HLS out of a private bucket: who gets which playlist, and what its addresses open."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import aiohttp
import av
import pytest
from api_kit import Client, published, run_sql
from portal_kit import LivePortal, create, final_status, read
from yarl import URL

from portal.app import create_app
from portal.config import Config
from portal.resources import Resources

PLAYLIST_TYPE = "application/vnd.apple.mpegurl"
REFUSED = (400, 401, 403)
MASTER = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/media.m3u8\n"
MEDIA = """#EXTM3U
#EXT-X-TARGETDURATION:4
#EXT-X-MAP:URI="init.mp4"
#EXTINF:4.0,
one.m4s
#EXT-X-ENDLIST
"""


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


async def test_unchanged_playlist_is_not_sent_again(
    video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    for address in (video["playbackUrl"], (await media_playlists(http, video))[0]):
        _, headers = await fetched(http, address)
        given = {"If-None-Match": headers["Etag"]}
        async with http.get(address, headers=given) as response:
            assert response.status == 304
            assert response.headers["Access-Control-Allow-Origin"] == "*"


async def test_everything_but_published_playlists_is_not_found(
    live_portal: LivePortal, video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    base, own = live_portal.base_url, f"{live_portal.base_url}/hls/{video['id']}"
    segment = urlsplit((await segments(http, video))[0]).path.rpartition("/1/")[2]
    paths = [
        f"{base}/hls/{uuid4()}/1/master.m3u8",
        f"{base}/hls/not-an-id/1/master.m3u8",
        *(f"{own}/{number}/master.m3u8" for number in ("0", "2", "-1", "x", "1.0", "9" * 30)),
        *(f"{own}/1/{name}" for name in (segment, "poster.jpg", "other.m3u8", "", ".m3u8")),
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


async def test_failed_video_has_no_playback_address(
    live_portal: LivePortal, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    file = tmp_path / "broken.mp4"
    file.write_bytes(b"this is no video")
    created = await create(live_portal.base_url, file)
    assert await final_status(live_portal.base_url, created["id"]) == "failed"
    assert (await read(live_portal.base_url, created["id"]))["playbackUrl"] == ""
    own = f"{live_portal.base_url}/hls/{created['id']}/1/master.m3u8"
    assert await status_of(http, own) == 404


async def with_playlists(client: Client, resources: Resources) -> dict[str, Any]:
    """The record of a processing video whose output lies in storage already."""
    record = await published(client)
    folder = f"hls/{record['id']}/1/"
    for name, text in {"master.m3u8": MASTER, "low/media.m3u8": MEDIA}.items():
        await resources.storage.put(folder + name, text.encode(), content_type=PLAYLIST_TYPE)
    return record


async def test_output_of_an_unpublished_attempt_stays_hidden(
    client: Client, resources: Resources, config: Config
) -> None:
    record = await with_playlists(client, resources)
    master = f"/hls/{record['id']}/1/master.m3u8"
    changes = {
        "status = 'processing'": 404,
        "status = 'ready', published_attempt = 2": 404,
        "status = 'ready', published_attempt = 1": 200,
        "status = 'failed', published_attempt = NULL": 404,
    }
    for change, status in changes.items():
        await run_sql(config.database_url, f"UPDATE videos SET {change}")
        assert (await client.get(master)).status_code == status, change


async def test_playlist_missing_from_storage_is_not_found(
    client: Client, resources: Resources, config: Config
) -> None:
    record = await with_playlists(client, resources)
    await run_sql(config.database_url, "UPDATE videos SET status='ready', published_attempt=1")
    own = f"/hls/{record['id']}/1"
    assert (await client.get(f"{own}/low/media.m3u8")).status_code == 200
    assert (await client.get(f"{own}/high/media.m3u8")).status_code == 404


async def test_init_segment_is_signed_too(
    client: Client, resources: Resources, config: Config
) -> None:
    record = await with_playlists(client, resources)
    await run_sql(config.database_url, "UPDATE videos SET status='ready', published_attempt=1")
    response = await client.get(f"/hls/{record['id']}/1/low/media.m3u8")
    init, segment = sorted(addresses(await response.get_data(as_text=True), "none"))
    folder = f"{config.s3_endpoint_url}/{config.s3_bucket}/hls/{record['id']}/1/low/"
    assert init.partition("?")[0] == f"{folder}init.mp4"
    assert segment.partition("?")[0] == f"{folder}one.m4s"
    for address in (init, segment):
        assert f"X-Amz-Expires={config.playback_url_ttl_s}" in address


async def test_poster_of_a_ready_video_is_an_image_from_storage(
    live_portal: LivePortal, video: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    poster = f"{live_portal.base_url}/videos/{video['id']}/poster.jpg"
    async with http.get(poster) as response:
        assert str(response.url).startswith(live_portal.environ["S3_ENDPOINT_URL"])
        assert response.content_type == "image/jpeg"
        assert (await response.read()).startswith(b"\xff\xd8")


async def test_only_ready_videos_have_a_poster(client: Client, config: Config) -> None:
    record = await published(client)
    poster = f"/videos/{record['id']}/poster.jpg"
    assert (await client.get(poster)).status_code == 404
    await run_sql(config.database_url, "UPDATE videos SET status = 'failed'")
    assert (await client.get(poster)).status_code == 404
    assert (await client.get(f"/videos/{uuid4()}/poster.jpg")).status_code == 404


async def test_cdn_address_replaces_the_portals_own(client: Client, config: Config) -> None:
    record = await published(client)
    await run_sql(config.database_url, "UPDATE videos SET status='ready', published_attempt=3")
    behind_cdn = replace(config, playback_base_url="https://cdn.example/v")
    app = create_app(behind_cdn)
    async with app.test_app():
        other = app.test_client()
        read = await (await other.get(f"/api/videos/{record['id']}")).get_json()
        poster = await other.get(f"/videos/{record['id']}/poster.jpg")
    folder = f"https://cdn.example/v/hls/{record['id']}/3"
    assert read["playbackUrl"] == f"{folder}/master.m3u8"
    assert poster.status_code == 302
    assert poster.headers["Location"] == f"{folder}/poster.jpg"
