"""The storyboard of a video is made by a separate job, beside the passes."""

import asyncio

import pytest
from passes import Worker
from running_portal import make_video

from portal.database.connection import lock_video, transaction
from portal.database.event_models import Event
from portal.database.models import Version, Video
from portal.features import VERSION_HOOKS
from portal.features.cuts import service as cuts
from portal.films import attempts, storyboards
from portal.films.jobs import STORYBOARD
from portal.transcoding.encoding.sound_samples import WAVEFORM_NAME
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.planning.kept import Interval
from portal.transcoding.planning.storyboard import STORYBOARD_NAME


@pytest.fixture
async def ready(worker: Worker) -> Video:
    """Return a video that is ready by copying, and lacks a rendition and its storyboard."""
    clip = make_video(worker.folder / "clip.mp4", size="640x360")
    return await worker.look_into(await worker.publish(clip))


async def is_complete(video: Video) -> bool:
    return await Event.exists(video_id=video.id, type="video.completed")


async def test_video_is_complete_with_its_last_rendition_or_its_storyboard(
    ready: Video, worker: Worker
) -> None:
    assert await worker.make_missing(ready)
    assert not await is_complete(ready)

    await storyboards.make(ready.id, worker.tools)
    video = await Video.get(id=ready.id)
    assert (video.has_storyboard, video.storyboard_job_id) == (True, None)
    assert await worker.resources.storage.get(f"hls/{video.id}/1/{STORYBOARD_NAME}")
    assert any(await worker.resources.storage.get(f"hls/{video.id}/1/{WAVEFORM_NAME}"))
    assert await is_complete(ready)

    # A job that runs again has nothing to do.
    await storyboards.make(ready.id, worker.tools)
    assert await Event.filter(video_id=video.id, type="video.completed").count() == 1


async def test_storyboard_that_fails_is_given_up_and_holds_up_no_rendition(
    ready: Video, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    error: BaseException = asyncio.CancelledError()

    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(storyboards, "make_storyboard", fail)
    with pytest.raises(asyncio.CancelledError):
        await storyboards.make(ready.id, worker.tools)
    video = await Video.get(id=ready.id)
    # An interrupted try doesn't count.
    assert (video.storyboard_tries, video.storyboard_job_id) == (0, ready.storyboard_job_id)

    error = TranscodeFailed(FailCode.FFMPEG_FAILED)
    for _ in range(STORYBOARD.max_tries):
        with pytest.raises(TranscodeFailed):
            await storyboards.make(ready.id, worker.tools)
    await storyboards.make(ready.id, worker.tools)
    video = await Video.get(id=ready.id)
    assert (video.has_storyboard, video.storyboard_job_id) == (False, None)
    assert not await is_complete(ready)
    assert await worker.make_missing(ready)
    assert await is_complete(ready)


async def test_waveform_that_fails_holds_up_no_storyboard(
    ready: Video, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise TranscodeFailed(FailCode.FFMPEG_FAILED)

    monkeypatch.setattr(storyboards, "make_waveform", fail)
    await storyboards.make(ready.id, worker.tools)
    assert (await Video.get(id=ready.id)).has_storyboard


async def test_loudness_of_a_film_is_that_of_its_cuts(ready: Video, worker: Worker) -> None:
    async def cut(until_s: float) -> None:
        keep = [Interval(0, until_s)]
        await cuts.save(ready.id, keep, expected=None, hooks=VERSION_HOOKS)

    await cut(1.5)
    await storyboards.make(ready.id, worker.tools)
    film = await Version.get(id=ready.id)
    # A low tone of 1/8 of full scale, which is mono.
    assert film.integrated_lufs == pytest.approx(-18.8, abs=0.5)
    assert film.true_peak_dbtp == pytest.approx(-18, abs=1.5)
    [begun_before] = await Version.filter(base_id=film.id)
    assert begun_before.integrated_lufs == film.integrated_lufs
    await cut(1)
    begun_later = await Version.get(base_id=film.id, retired_at=None)
    assert begun_later.id != begun_before.id
    assert begun_later.true_peak_dbtp == film.true_peak_dbtp


async def test_storyboard_of_an_earlier_output_is_not_used(
    ready: Video, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def process_again(*_: object, **__: object) -> None:
        async with transaction():
            video = await lock_video(ready.id)
            assert video is not None
            await attempts.start_again(await video.current_version())

    monkeypatch.setattr(storyboards, "make_storyboard", process_again)
    await storyboards.make(ready.id, worker.tools)
    assert not (await Video.get(id=ready.id)).has_storyboard
