"""First job of a file: it is refused, made playable by copying, or left to an encode."""

import gzip
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from api_client import Client, presign, put, rows
from passes import EARLY, LATER, Worker, first_attempt
from published import probe

from portal.database.models import Attempt, Rendition, VideoStatus
from portal.films import encoding, sources
from portal.films.encoding import WorkMeter
from portal.films.progress import Progress, Stage
from portal.http.composition import WebContext
from portal.transcoding.errors import RejectCode, SourceRejected
from portal.transcoding.probing.probe import SourceLimits

JOBS = "SELECT id, task_name, queue_name, status::text FROM procrastinate_jobs ORDER BY id"


async def queued(worker: Worker) -> list[tuple[int, str, str, str]]:
    return [tuple(row) for row in await rows(worker.resources.config.database_url, JOBS)]


@pytest.mark.slow
@pytest.mark.usefixtures("early_first")
async def test_file_that_needs_an_encoder_is_left_to_another_job(
    worker: Worker, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await worker.publish(film)

    video = await worker.look_into(created)

    assert video.status is VideoStatus.PROCESSING
    assert not await Attempt.exists()
    planned = await Rendition.filter(version_id=video.version_id)
    assert {row.name for row in planned} == {*EARLY, *LATER, "audio"}
    assert {(row.state, row.attempt_number, row.tries) for row in planned} == {("planned", None, 0)}
    [look, encode] = await queued(worker)
    assert look == (created.transcode_job_id, "portal:transcode", "prepare", "todo")
    assert encode == (video.encode_job_id, "portal:encode", "transcode", "todo")

    # The probe of the first job is stored.
    monkeypatch.delattr(sources, "examine")
    await worker.end_after(await first_attempt(video), segments=1)


async def test_file_that_is_only_copied_is_made_playable_at_once(
    worker: Worker, short_video: Path
) -> None:
    created = await worker.publish(short_video)
    video = await worker.look_into(created)
    assert video.status is VideoStatus.READY
    assert (await Rendition.get(version_id=video.version_id, kind="video")).copied
    assert video.transcode_job_id == created.transcode_job_id
    [_, storyboard] = await queued(worker)
    assert storyboard == (video.storyboard_job_id, "portal:storyboard", "chores", "todo")
    assert video.complete_job_id is None


async def test_file_that_is_refused_leaves_its_attempt_as_before(worker: Worker) -> None:
    text = worker.folder / "notes.mp4"
    text.write_text("These are notes, not a video.\n" * 100)
    created = await worker.publish(text)
    video = await worker.look_into(created)
    assert (video.status, video.failure_code) == (VideoStatus.FAILED, "not_a_video")
    [attempt] = await Attempt.filter(video_id=video.id)
    assert (attempt.outcome, attempt.error_code) == ("failed", "not_a_video")
    assert len(await queued(worker)) == 1


async def test_file_with_a_content_encoding_is_not_inflated(
    client: Client, resources: WebContext, film: Path
) -> None:
    """A few kilobytes of gzip may inflate to hundreds of megabytes."""
    upload = await presign(client)
    body = gzip.compress(film.read_bytes())
    assert await put(upload["uploadUrl"], body, **{"Content-Encoding": "gzip"}) == 200
    address = await resources.storage.internal.presign_source(upload["key"], ttl_s=60)
    with pytest.raises(SourceRejected) as caught:
        await probe(address)
    assert caught.value.code is RejectCode.NOT_A_VIDEO


async def test_file_is_refused_by_its_expected_time(worker: Worker, film: Path) -> None:
    config = replace(worker.resources.config, max_transcode_s=0.1)
    limited = replace(worker, resources=replace(worker.resources, config=config))
    video = await limited.look_into(await worker.publish(film))
    assert (video.status, video.failure_code) == (VideoStatus.FAILED, "too_much_work")


def test_too_much_work_is_refused_by_the_time_that_ffmpeg_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = count(1)
    monkeypatch.setattr(encoding, "monotonic", lambda: next(seconds))

    meter = WorkMeter(SourceLimits(max_transcode_s=3600), seen_at=0.0)
    for _ in range(60):
        meter.follow(0.0)
    # A thousandth per minute makes 17 hours; an hour in which ffmpeg was paused doesn't count.
    seconds = count(3600)
    meter.follow(0.0156)
    assert meter.worked_s == 60 + encoding.MAX_STEP_S
    with pytest.raises(SourceRejected) as caught:
        meter.follow(0.001)
    assert caught.value.code == RejectCode.TOO_MUCH_WORK
    unlimited = WorkMeter(SourceLimits(max_transcode_s=0), worked_s=1e6)
    unlimited.follow(0.001)


def test_percentage_never_falls() -> None:
    progress = Progress(40.0)
    progress.reach(Stage.TRANSCODING)
    progress.reach(Stage.TRANSCODING, 0.1, 60.0)
    assert (progress.percent, progress.eta_s) == (40.0, 60.0)
    progress.reach(Stage.TRANSCODING, 0.5)
    assert progress.percent == 49.0
    progress.reach(Stage.FINISHING, 1.2)
    assert progress.percent == 97.0
    progress.finish()
    assert (progress.stage, progress.percent, progress.eta_s) == (Stage.FINISHING, 100.0, None)
