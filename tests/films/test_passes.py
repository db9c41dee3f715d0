"""Videos are playable early and completed later; a failure takes no rendition away."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from api_client import Client
from passes import (
    EARLY,
    LATER,
    Worker,
    begun,
    ready_video,
    states,
)
from published_checks import variants
from running_portal import make_video
from serving import children_naming, eventually

from portal.database.models import Attempt, Rendition, Video, VideoStatus
from portal.films import passes, renditions
from portal.transcoding.errors import FailCode, TranscodeFailed


@pytest.fixture
async def playable(worker: Worker, film: Path, early_first: None) -> Video:
    return await ready_video(worker.client, worker.resources, film, worker.folder)


async def master(client: Client, video: Video) -> str:
    response = await client.get(f"/hls/{video.id}/master.m3u8")
    assert response.status_code == 200
    return str(await response.get_data(as_text=True))


@pytest.mark.slow
async def test_long_video_is_playable_before_its_ladder_is_complete(
    worker: Worker, playable: Video
) -> None:
    assert playable.status is VideoStatus.READY
    assert await states(playable) == {
        **dict.fromkeys([*EARLY, "audio"], "complete"),
        **dict.fromkeys(LATER, "planned"),
    }
    early = await master(worker.client, playable)
    assert [*variants(early)] == [f"1/{name}/playlist.m3u8" for name in EARLY]

    assert await worker.make_missing(playable) is True
    assert await renditions.begin_next(playable.id, worker="test") is None

    assert set((await states(playable)).values()) == {"complete"}
    whole = await master(worker.client, playable)
    later = [f"2/{name}/playlist.m3u8" for name in LATER]
    assert sorted(variants(whole)) == sorted([*later, *variants(early)])
    for uri in variants(whole):
        address = f"/hls/{playable.id}/{uri}"
        for name in (address, address.replace("playlist", "iframes")):
            assert (await worker.client.get(name)).status_code == 200, name
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
    worker: Worker,
) -> None:
    file = make_video(worker.folder / "short.mp4", seconds=10, size="854x480", copyable=False)
    video = await worker.publish(file)
    await killed(worker.make_playable(video))

    video = await worker.make_playable(video)

    assert video.status is VideoStatus.READY
    assert (await states(video))["240p"] == "planned"
    assert video.complete_job_id is not None
    [failed, _] = await Attempt.filter(video_id=video.id).order_by("number")
    assert failed.error_code in set(FailCode)

    before = await master(worker.client, video)
    attempt = await begun(video.id)
    await Rendition.filter(name__in=attempt.targets).delete()
    await Attempt.filter(id=attempt.id).update(outcome="failed")
    lost = type(attempt)(id=attempt.id, version=attempt.version, number=attempt.number)
    await passes.make_missing(lost, worker.tools)
    assert await master(worker.client, video) == before
    assert (await Video.get(id=video.id)).complete_job_id is not None


@pytest.mark.slow
async def test_failing_rendition_holds_up_no_other(worker: Worker, playable: Video) -> None:
    async def killed_pass() -> tuple[str, ...]:
        attempt = await begun(playable.id)
        await killed(passes.make_missing(attempt, worker.tools))
        return attempt.targets

    assert await killed_pass() == tuple(LATER)
    for name, folder in (("240p", "3"), ("480p", "4")):
        assert await worker.make_missing(playable) is False
        assert (await states(playable))[name] == "complete"
        assert f"{folder}/{name}/playlist.m3u8" in variants(await master(worker.client, playable))
    assert [await killed_pass(), await killed_pass()] == [("720p",), ("720p",)]
    assert await worker.make_missing(playable) is True

    failed = await Rendition.get(version_id=playable.id, name="720p")
    assert (failed.state, failed.tries) == ("failed", 3)
    assert failed.error_code in set(FailCode)
    video = await Video.get(id=playable.id)
    assert (video.status, video.complete_job_id) == (VideoStatus.READY, None)
    assert len(variants(await master(worker.client, playable))) == 3
