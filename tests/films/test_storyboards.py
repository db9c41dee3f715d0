"""The storyboard of a video is made by a separate job, beside the passes."""

import asyncio
from pathlib import Path

import pytest
from api_client import Client
from passes import looked_into, make_missing, published_file, tools_for
from running_portal import make_video

from portal.database.connection import lock_video, transaction
from portal.database.event_models import Event
from portal.database.models import Video
from portal.films import attempts, storyboards
from portal.films.jobs import STORYBOARD
from portal.http.composition import WebContext
from portal.transcoding.encoding.sound_samples import WAVEFORM_NAME
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.planning.storyboard import STORYBOARD_NAME


@pytest.fixture
async def ready(client: Client, resources: WebContext, tmp_path: Path) -> Video:
    """Return a video that is ready by copying, and lacks a rendition and its storyboard."""
    clip = make_video(tmp_path / "clip.mp4", size="640x360")
    return await looked_into(await published_file(client, resources, clip), resources, tmp_path)


async def is_complete(video: Video) -> bool:
    return await Event.exists(video_id=video.id, type="video.completed")


async def test_video_is_complete_with_its_last_rendition_or_its_storyboard(
    ready: Video, resources: WebContext, tmp_path: Path
) -> None:
    assert await make_missing(ready, resources, tmp_path)
    assert not await is_complete(ready)

    await storyboards.make(ready.id, tools_for(resources, tmp_path))
    video = await Video.get(id=ready.id)
    assert (video.has_storyboard, video.storyboard_job_id) == (True, None)
    assert await resources.storage.get(f"hls/{video.id}/1/{STORYBOARD_NAME}")
    assert any(await resources.storage.get(f"hls/{video.id}/1/{WAVEFORM_NAME}"))
    assert await is_complete(ready)

    # A job that runs again has nothing to do.
    await storyboards.make(ready.id, tools_for(resources, tmp_path))
    assert await Event.filter(video_id=video.id, type="video.completed").count() == 1


async def test_storyboard_that_fails_is_given_up_and_holds_up_no_rendition(
    ready: Video, resources: WebContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise TranscodeFailed(FailCode.FFMPEG_FAILED)

    monkeypatch.setattr(storyboards, "make_storyboard", fail)
    for _ in range(STORYBOARD.max_tries):
        with pytest.raises(TranscodeFailed):
            await storyboards.make(ready.id, tools_for(resources, tmp_path))
    await storyboards.make(ready.id, tools_for(resources, tmp_path))
    video = await Video.get(id=ready.id)
    assert (video.has_storyboard, video.storyboard_job_id) == (False, None)
    assert not await is_complete(ready)
    assert await make_missing(ready, resources, tmp_path)
    assert await is_complete(ready)


async def test_waveform_that_fails_holds_up_no_storyboard(
    ready: Video, resources: WebContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise TranscodeFailed(FailCode.FFMPEG_FAILED)

    monkeypatch.setattr(storyboards, "make_waveform", fail)
    await storyboards.make(ready.id, tools_for(resources, tmp_path))
    assert (await Video.get(id=ready.id)).has_storyboard


async def test_interrupted_try_does_not_count(
    ready: Video, resources: WebContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def be_cancelled(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(storyboards, "make_storyboard", be_cancelled)
    with pytest.raises(asyncio.CancelledError):
        await storyboards.make(ready.id, tools_for(resources, tmp_path))
    video = await Video.get(id=ready.id)
    assert (video.storyboard_tries, video.storyboard_job_id) == (0, ready.storyboard_job_id)


async def test_storyboard_of_an_earlier_output_is_not_used(
    ready: Video, resources: WebContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def process_again(*_: object, **__: object) -> None:
        async with transaction():
            video = await lock_video(ready.id)
            assert video is not None
            await attempts.start_again(await video.current_version())

    monkeypatch.setattr(storyboards, "make_storyboard", process_again)
    await storyboards.make(ready.id, tools_for(resources, tmp_path))
    assert not (await Video.get(id=ready.id)).has_storyboard
