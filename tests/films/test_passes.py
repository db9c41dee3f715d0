"""Videos are playable early and completed later; a failure takes no rendition away."""

import asyncio
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from api_client import Client
from passes import (
    EARLY,
    LATER,
    begun,
    make_missing,
    make_playable,
    published_file,
    ready_video,
    states,
    tools_for,
)
from running_portal import make_video
from serving import children_naming, eventually

from portal.database.models import Attempt, Rendition, Video, VideoStatus
from portal.films import passes, renditions
from portal.http.composition import WebContext
from portal.transcoding.errors import FailCode, TranscodeFailed


@pytest.fixture
async def playable(
    client: Client, resources: WebContext, film: Path, tmp_path: Path, early_first: None
) -> Video:
    return await ready_video(client, resources, film, tmp_path)


def variants(master: str) -> list[str]:
    """Return the media playlists of the variants, the lowest first."""
    matches = re.findall(r"#EXT-X-STREAM-INF:.*RESOLUTION=(\d+)x\d+.*\n(.+)", master)
    return [uri for _, uri in sorted(matches, key=lambda match: int(match[0]))]


async def master(client: Client, video: Video) -> str:
    response = await client.get(f"/hls/{video.id}/master.m3u8")
    assert response.status_code == 200
    return str(await response.get_data(as_text=True))


@pytest.mark.slow
async def test_long_video_is_playable_before_its_ladder_is_complete(
    client: Client, resources: WebContext, playable: Video, tmp_path: Path
) -> None:
    assert playable.status is VideoStatus.READY
    assert await states(playable) == {
        **dict.fromkeys([*EARLY, "audio"], "complete"),
        **dict.fromkeys(LATER, "planned"),
    }
    early = await master(client, playable)
    assert variants(early) == [f"1/{name}/playlist.m3u8" for name in EARLY]

    assert await make_missing(playable, resources, tmp_path) is True
    assert await renditions.begin_next(playable.id, worker="test") is None

    assert set((await states(playable)).values()) == {"complete"}
    whole = await master(client, playable)
    later = [f"2/{name}/playlist.m3u8" for name in LATER]
    assert sorted(variants(whole)) == sorted([*later, *variants(early)])
    for uri in variants(whole):
        address = f"/hls/{playable.id}/{uri}"
        for name in (address, address.replace("playlist", "iframes")):
            assert (await client.get(name)).status_code == 200, name
    video = await Video.get(id=playable.id)
    assert (video.status, video.published_attempt) == (VideoStatus.READY, 1)
    assert video.complete_job_id is None
    assert video.transcode_job_id == playable.transcode_job_id


async def killed(pass_: Coroutine[Any, Any, object]) -> None:
    """Run a pass, and kill its ffmpeg."""
    task = asyncio.create_task(pass_)
    running = []

    def has_begun() -> bool:
        running[:] = children_naming("-filter_complex")
        return task.done() or bool(running)

    await eventually(has_begun)
    assert not task.done(), "the pass ended before its ffmpeg could be killed"
    running[0].kill()
    with pytest.raises(TranscodeFailed):
        await task


@pytest.mark.slow
async def test_pass_after_a_failed_one_is_cautious_and_one_without_its_lease_adds_nothing(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    file = make_video(tmp_path / "short.mp4", seconds=10, size="854x480", copyable=False)
    video = await published_file(client, resources, file)
    await killed(make_playable(video, resources, tmp_path))

    video = await make_playable(video, resources, tmp_path)

    assert video.status is VideoStatus.READY
    assert (await states(video))["240p"] == "planned"
    assert video.complete_job_id is not None
    [failed, _] = await Attempt.filter(video_id=video.id).order_by("number")
    assert failed.error_code in set(FailCode)

    before = await master(client, video)
    attempt = await begun(video.id)
    await Rendition.filter(name__in=attempt.targets).delete()
    await Attempt.filter(id=attempt.id).update(outcome="failed")
    lost = type(attempt)(id=attempt.id, version=attempt.version, number=attempt.number)
    await passes.make_missing(lost, tools_for(resources, tmp_path))
    assert await master(client, video) == before
    assert (await Video.get(id=video.id)).complete_job_id is not None


@pytest.mark.slow
async def test_failing_rendition_holds_up_no_other(
    client: Client, resources: WebContext, playable: Video, tmp_path: Path
) -> None:
    async def killed_pass() -> tuple[str, ...]:
        attempt = await begun(playable.id)
        await killed(passes.make_missing(attempt, tools_for(resources, tmp_path)))
        return attempt.targets

    assert await killed_pass() == tuple(LATER)
    for name, folder in (("240p", "3"), ("480p", "4")):
        assert await make_missing(playable, resources, tmp_path) is False
        assert (await states(playable))[name] == "complete"
        assert f"{folder}/{name}/playlist.m3u8" in variants(await master(client, playable))
    assert [await killed_pass(), await killed_pass()] == [("720p",), ("720p",)]
    assert await make_missing(playable, resources, tmp_path) is True

    failed = await Rendition.get(version_id=playable.id, name="720p")
    assert (failed.state, failed.tries) == ("failed", 3)
    assert failed.error_code in set(FailCode)
    video = await Video.get(id=playable.id)
    assert (video.status, video.complete_job_id) == (VideoStatus.READY, None)
    assert len(variants(await master(client, playable))) == 3
