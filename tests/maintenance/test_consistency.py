"""`portal doctor --deep`: differences between database and storage, and the jobs for lost files."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aged_videos import ended_attempt, put_master, put_output
from api_client import Client, answered, published, run_sql
from command_line import portal
from page_rows import READY, change_video, make_cut, make_rendition
from passes import make_missing, ready_video, tools_for
from stored_objects import s3_client
from upload_client import started

from portal.database.models import Outcome, Rendition, RenditionState, Video, VideoStatus
from portal.features.captions import service as captions
from portal.films import storyboards
from portal.http.composition import WebContext
from portal.maintenance.consistency import Report, compare
from portal.maintenance.video_files import Difference
from portal.storage.objects import output_prefix
from portal.transcoding.packaging.master import Kind

PLAYLIST = """#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:4
#EXT-X-MAP:URI="init.mp4"
#EXTINF:4.0,
00000.m4s
#EXTINF:2.0,
00001.m4s
#EXT-X-ENDLIST
"""
SEGMENTS = ("init.mp4", "00000.m4s", "00001.m4s", "iframes.m3u8")


@pytest.fixture
async def environ(environ: dict[str, str]) -> dict[str, str]:
    """Use a separate bucket: objects of other tests would be reported."""
    name = f"bucket-{uuid4().hex}"
    async with s3_client(environ) as client:
        await client.create_bucket(Bucket=name)
    return {**environ, "S3_BUCKET": name}


async def compared(resources: WebContext, **options: Any) -> Report:
    return await compare(resources.config, storage=resources.storage, **options)


async def differences(resources: WebContext, **options: Any) -> dict[str, int]:
    """Return the number of differences of each kind."""
    report = await compared(resources, **options)
    return {kind.value: tally.count for kind, tally in report.counts.items()}


async def count_left_after_fix(resources: WebContext) -> int:
    """Enqueue jobs for missing files; return the number of differences without one."""
    return (await compared(resources, fix=True)).left


async def put_rendition(resources: WebContext, video: Video, name: str, attempt: int) -> None:
    """Create a rendition with all its files."""
    await make_rendition(
        video, name, attempt_number=attempt, codecs="avc1.64001f", bandwidth_bps=10**6
    )
    await put_output(resources, video, attempt, *(f"{name}/{each}" for each in SEGMENTS))
    key = f"{output_prefix(video.id, attempt)}{name}/playlist.m3u8"
    await resources.storage.put(key, PLAYLIST.encode(), content_type="text/plain")


@pytest.fixture
async def grown(client: Client, resources: WebContext) -> Video:
    """Create a ready video with its source, whose second rendition is of a later attempt."""
    record = await published(client)
    await run_sql(resources.config.database_url, "DELETE FROM procrastinate_jobs")
    await change_video(record["id"], **{**READY, "has_poster": False})
    video = await Video.get(id=record["id"])
    for number in (1, 2):
        await ended_attempt(video, number, Outcome.PUBLISHED)
        await put_rendition(resources, video, f"{number * 360}p", number)
    await put_master(resources, video, "360p/playlist.m3u8", "../2/720p/playlist.m3u8")
    return video


async def test_lost_files_of_a_ready_video_are_reported_and_made_again_by_jobs(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await ready_video(client, resources, short_video, tmp_path)
    await started(client, 3)
    deleted = await published(client)
    await client.delete(f"/api/videos/{deleted['id']}")
    assert await differences(resources) == {}
    prefix = output_prefix(video.id, 1)
    master = await resources.storage.get(prefix + "master.m3u8")

    await resources.storage.delete(prefix + "master.m3u8")
    assert await differences(resources) == {"master_missing": 1}
    assert await count_left_after_fix(resources) == 0
    assert await make_missing(video, resources, tmp_path) is True
    assert await resources.storage.get(prefix + "master.m3u8") == master

    await resources.storage.delete(prefix + "storyboard-000.jpg")
    assert await differences(resources) == {"storyboard_missing": 1}
    assert await count_left_after_fix(resources) == 0
    await storyboards.make(video.id, tools_for(resources, tmp_path))
    assert (await Video.get(id=video.id)).has_storyboard
    assert await differences(resources) == {}

    headers = {"Content-Type": "text/vtt"}
    cues = b"WEBVTT\n\n00:00.000 --> 00:01.000\nHello.\n"
    added = await client.post(
        f"/api/videos/{video.id}/captions?language=en", data=cues, headers=headers
    )
    caption = await answered(added, 201)
    await captions.store(video.id, tools_for(resources))
    assert await differences(resources) == {}
    await resources.storage.delete(f"hls/{video.id}/captions/{caption['version']}/00000.vtt")
    assert await differences(resources) == {"captions_incomplete": 1}
    assert await count_left_after_fix(resources) == 0
    await captions.store(video.id, tools_for(resources))
    assert await differences(resources) == {}

    # Only a first pass makes sound, and only an editor chooses another poster.
    await resources.storage.delete(prefix + "poster.jpg")
    for key in await resources.storage.list_some(prefix + "audio"):
        await resources.storage.delete(key)
    lost = {"rendition_incomplete": 1, "master_outdated": 1, "poster_missing": 1}
    assert await differences(resources) == lost
    assert await count_left_after_fix(resources) == 3


@pytest.mark.parametrize(
    ("name", "attempt"),
    [("720p", 2), ("360p", 1)],
)
async def test_rendition_that_lost_a_segment_is_made_again_alone(
    name: str, attempt: int, resources: WebContext, grown: Video
) -> None:
    assert await differences(resources) == {}
    # A former cut names segments of the lost rendition.
    cut = await make_cut(grown, retired_at=datetime.now(UTC))
    await Rendition.create(
        version_id=cut.id, kind=Kind.VIDEO, name=name, position=1, state=RenditionState.COMPLETE
    )
    await resources.storage.delete(f"{output_prefix(grown.id, attempt)}{name}/00001.m4s")

    report = await compared(resources)
    [example] = report.counts[Difference.RENDITION_INCOMPLETE].examples
    assert f"{name} without {attempt}/{name}/00001.m4s" in example
    assert await count_left_after_fix(resources) == 0

    video = await Video.get(id=grown.id)
    assert video.status is VideoStatus.READY
    assert video.complete_job_id is not None
    lost = await Rendition.get(version_id=video.version_id, name=name)
    assert lost.state is RenditionState.PLANNED
    assert (await Rendition.get(version_id=cut.id)).state is RenditionState.PLANNED


async def test_renditions_are_not_made_again_from_a_changed_source(
    resources: WebContext, grown: Video
) -> None:
    await resources.storage.put(grown.storage_key, b"another", content_type="video/mp4")
    await resources.storage.delete(f"{output_prefix(grown.id, 1)}360p/00000.m4s")
    assert await differences(resources) == {"source_changed": 1, "rendition_incomplete": 1}
    assert await count_left_after_fix(resources) == 2
    lost = await Rendition.get(version_id=grown.id, name="360p")
    assert lost.state is RenditionState.COMPLETE


async def test_changed_and_missing_sources_are_reported(
    client: Client, resources: WebContext
) -> None:
    record = await published(client)
    await change_video(record["id"], source_etag="of-another-bucket")
    report = await compared(resources)
    [example] = report.counts[Difference.SOURCE_CHANGED].examples
    assert "instead of of-another-bucket" in example
    await resources.storage.put(record["storageKey"], b"another", content_type="video/mp4")
    report = await compared(resources)
    [example] = report.counts[Difference.SOURCE_CHANGED].examples
    assert "7 bytes instead of" in example
    await resources.storage.delete(record["storageKey"])
    report = await compared(resources, fix=True)
    [example] = report.counts[Difference.SOURCE_MISSING].examples
    assert record["id"] in example
    assert report.left == 1


async def test_objects_that_no_row_refers_to_are_reported_and_kept(
    resources: WebContext, grown: Video
) -> None:
    storage = resources.storage
    foreign = [f"videos/{uuid4().hex}.mp4", "hls/stray", f"hls/{uuid4()}/1/master.m3u8"]
    for key in foreign:
        await storage.put(key, b"x", content_type="video/mp4")
    unused = await put_output(resources, grown, 7, "360p/00000.m4s")

    assert await differences(resources) == {"object_unused": 4}
    assert await count_left_after_fix(resources) == 4

    for key in (*foreign, *unused):
        assert await storage.list_some(key)


@pytest.mark.slow
async def test_command_prints_examples_and_a_remedy_and_exits_with_1(
    client: Client, resources: WebContext, environ: dict[str, str]
) -> None:
    # The first file creates the folder of uploads, in which the others can then be put at once.
    records = [await published(client)]
    records += await asyncio.gather(*(published(client) for _ in range(11)))
    for record in records:
        await resources.storage.delete(record["storageKey"])
    code, out, _ = await portal(environ, "doctor", "--deep")
    assert code == 1
    assert "12 videos whose uploaded file is missing" in out
    assert "and 2 more" in out
    assert Difference.SOURCE_MISSING.remedy in out
    code, out, _ = await portal(environ, "doctor", "--deep", "--fix", "--json")
    assert code == 1
    assert json.loads(out)["left"] == 12
