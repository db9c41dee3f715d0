"""Finished segments of a video can be watched before it is ready."""

import asyncio
import re
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import pytest
from api_client import Client, answered
from page_rows import change_video, make_row
from page_texts import words_of
from passes import Worker, first_attempt
from running_portal import until
from yarl import URL

from portal.database.models import Rendition, Video, VideoStatus
from portal.database.work_models import MadeSegment
from portal.films import progress
from portal.films.progress import held
from portal.http.composition import WebContext
from portal.http.formatting import clock
from portal.transcoding.encoding.parts import Segment
from portal.transcoding.packaging.cmaf import SegmentFacts
from portal.transcoding.packaging.hls import MediaPlaylist, parse_media_playlist, playlist_uris

pytestmark = pytest.mark.usefixtures("early_first")


async def preview_path(client: Client, video: Video) -> str:
    state = await answered(await client.get(f"/api/videos/{video.id}/transcode"))
    assert state["stage"] != "ready"
    return URL(state["previewUrl"]).path


async def text_at(client: Client, path: str) -> tuple[str, str]:
    """Follow redirects from an address, and return the last address and its text."""
    response = await client.get(path)
    while response.status_code == 302:
        path = urljoin(path, response.headers["Location"])
        response = await client.get(path)
    assert response.status_code == 200, path
    return path, await response.get_data(as_text=True)


async def playlists(client: Client, path: str) -> dict[str, MediaPlaylist]:
    """Return the playlists of the early picture and the sound that a master playlist names."""
    path, master = await text_at(client, path)
    by_name = {}
    for uri in playlist_uris(master):
        name = uri.split("/")[-2]
        if name in ("360p", "audio") and "iframes" not in uri:
            by_name[name] = parse_media_playlist((await text_at(client, urljoin(path, uri)))[1])
    return by_name


async def sizes(client: Client, path: str, playlist: MediaPlaylist) -> list[int]:
    """Return the sizes of the init segment and the segments that a playlist names."""
    sizes_bytes = []
    async with aiohttp.ClientSession() as http:
        for uri in [playlist.map_uri or "", *(segment.uri for segment in playlist.segments)]:
            response = await client.get(urljoin(path, uri))
            address = URL(response.headers["Location"], encoded=True)
            async with http.get(address) as stored:
                assert stored.status == 200, uri
                sizes_bytes.append(len(await stored.read()))
    return sizes_bytes


async def test_recorded_segments_can_be_watched_until_the_video_is_ready(
    worker: Worker, film: Path
) -> None:
    video = await worker.publish(film)
    state = await answered(await worker.client.get(f"/api/videos/{video.id}/transcode"))
    assert state["previewUrl"] is None
    await expect_nothing(worker.client, video)
    await worker.end_after(await first_attempt(video), segments=2)

    path = await preview_path(worker.client, video)
    record = await answered(await worker.client.get(f"/api/videos/{video.id}"))
    assert (record["status"], record["playbackUrl"]) == ("processing", "")
    master = (await text_at(worker.client, path))[1]
    assert 'CODECS="avc1.' in master
    assert "RESOLUTION=640x360" in master
    assert "I-FRAME" not in master
    page = await text_at(worker.client, f"/videos/{video.id}")
    made_s = (await playlists(worker.client, path))["360p"].duration_s
    part = f"You can watch the first {clock(made_s)} of 0:40."
    assert f"Still processing. {part}" in words_of(page[1])
    duration = re.search(r'data-duration="([\d.]+)"', page[1])
    assert duration is not None
    assert float(duration[1]) == pytest.approx(40, abs=0.2)
    assert f'data-src="{path}"' in page[1]
    assert 'viewBox="0 0 1280 720"' in page[1]
    begun = await playlists(worker.client, path)
    assert begun.keys() == {"360p", "audio"}
    for name, playlist in begun.items():
        at = urljoin(path, f"{name}/playlist.m3u8")
        text = (await text_at(worker.client, at))[1]
        assert "#EXT-X-PLAYLIST-TYPE:EVENT" in text
        assert "#EXT-X-START:TIME-OFFSET=0" in text
        assert not playlist.complete
        assert all(await sizes(worker.client, at, playlist))
    # The pass may have stored another segment while it was ending.
    count = len(begun["360p"].segments)
    assert count >= 2
    assert begun["360p"].duration_s == pytest.approx(4 * count, abs=0.1)
    assert len(begun["audio"].segments) >= 2

    # A second attempt resumes after the stored video segments, and makes all sound again.
    second = await first_attempt(video)
    assert second.percent > 0
    assert not second.is_cautious
    await worker.end_after(second, segments=2)
    grown = await playlists(worker.client, path)
    assert grown["360p"].segments[:count] == begun["360p"].segments
    assert grown["audio"].segments[:2] == begun["audio"].segments[:2]
    assert len(grown["360p"].segments) >= count + 2

    third = await first_attempt(video)
    assert third.percent >= second.percent
    await worker.run(third)
    whole = await playlists(worker.client, path)
    for playlist in whole.values():
        assert playlist.complete
        assert playlist.duration_s == pytest.approx(40, abs=0.1)
    # The picture lasts as long as the sound, which may have half a frame of AAC more.
    assert whole["360p"].duration_s == pytest.approx(40, abs=0.02)
    names = [URL(segment.uri).name for segment in whole["360p"].segments]
    assert {name.partition("-")[0] if "-" in name else "1" for name in names} == {"1", "2", "3"}
    await check_resumed(worker.client, video)


async def check_resumed(client: Client, video: Video) -> None:
    """Check that the third attempt made the video playable with segments of the first one."""
    video = await Video.get(id=video.id)
    assert (video.status, video.published_attempt) == (VideoStatus.READY, 3)
    numbers = {row.name: row.attempt_number for row in await Rendition.filter(tries__gte=1)}
    assert numbers == {"360p": 1, "audio": 3}
    assert not await MadeSegment.exists(version_id=video.version_id)
    master = await client.get(f"/hls/{video.id}/3/master.m3u8")
    assert "../1/360p/playlist.m3u8" in await master.get_data(as_text=True)
    assert (await client.get(f"/hls/{video.id}/1/360p/playlist.m3u8")).status_code == 200


async def expect_nothing(client: Client, video: Video) -> None:
    for name in ("master.m3u8", "360p/playlist.m3u8"):
        response = await client.get(f"/hls/{video.id}/preview/{name}")
        assert response.status_code == 404, name


async def test_preview_has_no_other_files_and_ends_when_the_video_fails(
    worker: Worker, film: Path
) -> None:
    video = await worker.publish(film)
    await worker.end_after(await first_attempt(video), segments=1)
    path = await preview_path(worker.client, video)
    for name in ("720p/playlist.m3u8", "../1/360p/playlist.m3u8", "x", "360p/iframes.m3u8"):
        assert (await worker.client.get(urljoin(path, name))).status_code == 404, name
    await change_video(video.id, status="failed")
    for name in ("master.m3u8", "360p/playlist.m3u8", "../1/360p/00000.m4s"):
        assert (await worker.client.get(urljoin(path, name))).status_code == 404, name


async def test_first_segment_is_recorded_at_once(
    resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "HEARTBEAT_S", 3600)
    attempt = await first_attempt(await make_row(status=VideoStatus.PROCESSING))
    facts = SegmentFacts(
        is_closed=True,
        key_size_bytes=1,
        sample_count=1,
        from_ticks=0,
        last_ticks=0,
        until_ticks=1,
    )
    first = Segment(number=0, uri="00000.m4s", size_bytes=1, duration_s=4.0, facts=facts)
    async with held(attempt) as reports:
        await asyncio.sleep(0)
        reports.report_stored("360p", first)
        await until(MadeSegment.exists, timeout_s=10)
