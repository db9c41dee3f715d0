"""HLS out of a private bucket: who gets which playlist, and what its addresses open."""

import re
from urllib.parse import parse_qsl, urljoin, urlsplit
from uuid import uuid4

import aiohttp
import pytest
from api_client import Client, problem, run_sql
from page_rows import change_video, make_rendition
from playable_videos import MASTER, MEDIA, PLAYLIST_TYPE, SEGMENT, STORYBOARD, make_ready
from signed_in import text_of
from yarl import URL

from portal.database.models import Rendition, VideoStatus
from portal.errors import InvalidClip
from portal.http.clips import parse_clip
from portal.http.composition import WebContext
from portal.transcoding.packaging.hls import playlist_uris

pytestmark = pytest.mark.shared_app

REFUSED = (400, 401, 403)
FIRST_BYTES = {"Range": "bytes=0-1"}


def addresses(playlist: str, base: str) -> list[str]:
    """All that a playlist refers to, made absolute."""
    lines = [line for line in playlist.splitlines() if line and not line.startswith("#")]
    return [urljoin(base, uri) for uri in lines + re.findall(r'URI="([^"]+)"', playlist)]


async def test_players_of_any_site_get_playlists_and_signed_segments_of_a_private_bucket(
    client: Client, resources: WebContext
) -> None:
    """Without cookies and credentials."""
    video = await make_ready(resources, audience="public")
    headers = {"Origin": "https://player.example"}
    storage = resources.config.s3_endpoint_url

    async def playlist(address: str) -> list[str]:
        response = await client.get(address, headers=headers)
        assert response.status_code == 200
        assert response.headers["Content-Type"] == PLAYLIST_TYPE
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        return addresses(await text_of(response), address)

    async with aiohttp.ClientSession(headers=headers) as http:

        async def status_of(address: str) -> int:
            async with http.get(URL(address, encoded=True)) as response:
                return response.status

        [low] = await playlist(f"/hls/{video.id}/master.m3u8")
        first, second = await playlist(low)
        assert first.startswith(storage)
        # An hour longer than the video, which native players read the addresses of once.
        assert 3600 < int(URL(first, encoded=True).query["X-Amz-Expires"]) < 3700
        async with http.get(URL(first, encoded=True)) as response:
            assert response.status == 200
            assert response.headers["Access-Control-Allow-Origin"]
        bare = first.partition("?")[0]
        path = urlsplit(first).path
        # A signature opens one object, and nothing opens without.
        for address in (
            bare,
            bare.rpartition("/")[0],
            re.sub("(X-Amz-Signature=).", r"\1z", first),
            first.replace(path, urlsplit(second).path),
            first.replace(path, f"/{path.split('/')[1]}/{video.storage_key}"),
        ):
            assert await status_of(address) in REFUSED, address


async def test_everything_but_published_playlists_is_not_found(
    client: Client, resources: WebContext
) -> None:
    video = await make_ready(resources, audience="public")
    own = f"/hls/{video.id}"
    key = video.storage_key
    media = "low/playlist.m3u8"
    for name in ("master.m3u8", "1/master.m3u8", f"1/{media}"):
        assert (await client.get(f"{own}/{name}")).status_code == 200
    for path in (
        *(f"/hls/{uuid4()}/{name}" for name in ("master.m3u8", "1/master.m3u8", f"1/{media}")),
        *("/hls/not-an-id/master.m3u8", f"/hls/not-an-id/1/{media}"),
        *(f"{own}/{number}/{media}" for number in ("0", "2", "-1", "1.0", "9" * 30)),
        *(f"{own}/1/{name}" for name in ("other.m3u8", "", ".mp4", "a.exe", "a/b/master.m3u8")),
        *(f"{own}/1/{up}{media}" for up in ("../1/", "..%2f1%2f", "%2e%2e/1/", "..%5c1%5c")),
        *(f"{own}/{name}{end}" for name in ("master.m3u8", f"1/{media}") for end in ("%00", "%0a")),
        f"/{key}",
    ):
        assert (await client.get(path)).status_code == 404, path


async def test_output_of_an_unpublished_attempt_stays_hidden(
    client: Client, resources: WebContext
) -> None:
    video = await make_ready(resources, audience="public")
    changes = {
        "status = 'processing', published_attempt = NULL": 404,
        "status = 'ready', published_attempt = 2": 404,
        "status = 'failed', published_attempt = NULL": 404,
    }
    for change, status in changes.items():
        await run_sql(resources.config.database_url, f"UPDATE versions SET {change}")
        paths = [f"/hls/{video.id}/{name}" for name in ("master.m3u8", "1/poster.jpg")]
        if "ready" not in change:
            paths += [f"/videos/{video.id}/{name}" for name in ("poster.jpg", "storyboard.vtt")]
        for path in paths:
            assert (await client.get(path)).status_code == status, (change, path)


async def test_renditions_of_later_attempts_are_served_once_complete(
    client: Client, resources: WebContext
) -> None:
    video = await make_ready(resources, audience="public")
    folder = f"hls/{video.id}/2"
    for name in ("720p/media", "720p/iframes", "master"):
        key = f"{folder}/{name}.m3u8"
        await resources.storage.put(key, MEDIA.encode(), content_type=PLAYLIST_TYPE)
    await make_rendition(video, "720p", state="planned", attempt_number=2)
    assert (await client.get(f"/{folder}/720p/media.m3u8")).status_code == 404
    await Rendition.filter(name="720p").update(state="complete")
    statuses = {"720p/media": 200, "720p/iframes": 200, "low/media": 404, "master": 302}
    for name, status in statuses.items():
        assert (await client.get(f"/{folder}/{name}.m3u8")).status_code == status, name
    await change_video(video.id, status=VideoStatus.FAILED, published_attempt=None)
    assert (await client.get(f"/{folder}/720p/media.m3u8")).status_code == 404


async def test_master_playlist_may_grow_and_is_kept_only_for_seconds(
    client: Client, resources: WebContext
) -> None:
    video = await make_ready(resources, audience="public")
    folder = f"hls/{video.id}/1"
    address = f"/hls/{video.id}/master.m3u8"
    first = await client.get(address)
    grown = f"{MASTER}#EXT-X-STREAM-INF:BANDWIDTH=2\n../2/high/media.m3u8\n"
    await resources.storage.put(f"{folder}/master.m3u8", grown.encode(), content_type=PLAYLIST_TYPE)
    stale = {"If-None-Match": first.headers["ETag"]}
    second = await client.get(address, headers=stale)
    assert second.status_code == 200
    assert playlist_uris(await text_of(second)) == ["1/low/playlist.m3u8", "2/high/media.m3u8"]
    assert second.headers["Cache-Control"] == "private, max-age=5"
    media = await client.get(f"/{folder}/low/playlist.m3u8")
    assert media.headers["Cache-Control"] == "private, max-age=300"


async def test_no_cache_takes_a_part_of_a_segment_for_the_whole(
    client: Client, resources: WebContext
) -> None:
    """Storage answers a range with 200, and addresses of frames are asked with ranges."""
    video = await make_ready(resources, audience="public")
    folder = f"hls/{video.id}/1/low"
    frames = MEDIA.replace("00000.m4s", "#EXT-X-BYTERANGE:4@4\n00000.m4s")
    key = f"{folder}/iframes.m3u8"
    await resources.storage.put(key, frames.encode(), content_type=PLAYLIST_TYPE)
    named = [
        set(playlist_uris(await text_of(await client.get(f"/{folder}/{name}.m3u8"))))
        for name in ("playlist", "iframes")
    ]
    assert named[0].isdisjoint(named[1])
    # A preview, and players of private videos, are led there one by one.
    led = (await client.get(f"/{folder}/00000.m4s")).headers["Location"]
    signed = [*named[0], *named[1], led]
    assert len(signed) == 5
    async with aiohttp.ClientSession() as http:
        for address in signed:
            async with http.get(URL(address, encoded=True), headers=FIRST_BYTES) as stored:
                assert await stored.read() == SEGMENT[:2]
                assert "no-store" in stored.headers["Cache-Control"]


async def test_storyboard_leads_to_signed_sprites_and_keeps_their_parts(
    client: Client, resources: WebContext
) -> None:
    video = await make_ready(resources, audience="public")
    response = await client.get(f"/videos/{video.id}/storyboard.vtt")
    assert response.mimetype == "text/vtt"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    [*head, sprite] = (await text_of(response)).splitlines()
    assert head == STORYBOARD.splitlines()[:-1]
    address, _, part = sprite.partition("#")
    assert part == "xywh=0,0,192,108"
    assert address.startswith(resources.config.s3_endpoint_url)
    assert "X-Amz-Signature=" in address


async def test_playlists_of_a_clip_are_cut_and_name_each_other(
    client: Client, resources: WebContext
) -> None:
    video = await make_ready(resources, audience="public")
    master = f"/hls/{video.id}/master.m3u8"
    response = await client.get(f"{master}?start=0m1s&end=2.50")
    [address] = addresses(await text_of(response), master)
    assert address == f"/hls/{video.id}/1/low/playlist.m3u8?start=1&end=2.5"
    assert response.headers["Cache-Control"] == "private, max-age=5"
    cut = await client.get(address)
    assert cut.headers["Cache-Control"] == "private, max-age=300"
    text = await text_of(cut)
    assert "#EXT-X-START:TIME-OFFSET=1.000,PRECISE=YES\n" in text
    assert all(uri.startswith(resources.config.s3_endpoint_url) for uri in playlist_uris(text))


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("start=soon", "start"),
        ("end=-1", "end"),
        ("start=nan", "start"),
        ("start=", "start"),
        ("start=3&end=3", "end"),
        ("start=90&end=1m", "end"),
        ("start=2:00:00", "start"),
        # Less than players can play.
        ("start=1:02:05", "start"),
    ],
)
def test_fault_of_a_clip_names_its_parameter(query: str, parameter: str) -> None:
    arguments = dict(parse_qsl(query, keep_blank_values=True))
    with pytest.raises(InvalidClip, match=f"`{parameter}` must be"):
        parse_clip(arguments, duration_s=3725.4)


async def test_playlists_refuse_an_invalid_clip(client: Client, resources: WebContext) -> None:
    video = await make_ready(resources, audience="public")
    for name in ("master", "1/master", "1/low/playlist"):
        response = await client.get(f"/hls/{video.id}/{name}.m3u8?start=soon")
        await problem(response, 422, "invalid_clip")
        assert response.headers["Access-Control-Allow-Origin"] == "*"
