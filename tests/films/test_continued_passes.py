"""Passes that end early: any worker resumes them, and they end for a video that is due before."""

from pathlib import Path

import pytest
from api_client import run_sql
from passes import (
    Worker,
    begun,
    first_attempt,
    make_source,
)
from running_portal import make_video

from portal.database.models import Attempt, Outcome, Video
from portal.database.work_models import MadeSegment, PassInProgress
from portal.films import attempts, encoding, passes

# Makes leases expire without waiting.
LEASE_PASSES = """
UPDATE attempts SET lease_expires_at = now() - interval '1 s' WHERE outcome IS NULL;
UPDATE procrastinate_workers SET last_heartbeat = now() - interval '60 s'
"""


@pytest.mark.slow
async def test_film_with_far_key_frames_is_not_divided(worker: Worker) -> None:
    options = ("-g", "9999", "-sc_threshold", "0")
    film = make_source(worker.folder / "film.mp4", *options, seconds=63, size="320x180", rate=5)
    video = await worker.publish(film)
    await worker.end_after(await first_attempt(video), segments=1)
    # No part is expected to take any time, so one part has all segments.
    assert (await PassInProgress.get(version_id=video.version_id)).segment_s == 0


@pytest.mark.slow
@pytest.mark.usefixtures("early_first")
async def test_lost_attempt_with_segments_does_not_count_and_a_failed_one_leaves_none(
    worker: Worker, film: Path
) -> None:
    video = await worker.publish(film)
    await worker.end_after(await first_attempt(video), segments=2)
    # The attempt looks as if it had not been released.
    await Attempt.filter(video_id=video.id).update(outcome=None, finished_at=None)
    await run_sql(worker.resources.config.database_url, LEASE_PASSES)
    second = await first_attempt(video)
    assert not second.is_cautious
    [lost, _] = await Attempt.filter(video_id=video.id).order_by("number")
    assert (lost.outcome, lost.error_code) == (Outcome.HANDED_BACK, "worker_lost")
    # Segments of a failed attempt are deleted.
    await attempts.release(second, Outcome.FAILED, attempts.Failure("internal_error"))
    assert not await MadeSegment.exists(version_id=video.version_id)


async def test_pass_gives_way_to_a_video_that_waits(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "MIN_RUN_S", 0)
    monkeypatch.setattr(encoding, "LOOK_S", 0)
    clip = make_video(worker.folder / "clip.mp4", size="640x360")
    video = await worker.look_into(await worker.publish(clip))
    attempt = await begun(video.id)

    async def another_waits(job_id: int) -> bool:
        return job_id == video.complete_job_id

    monkeypatch.setattr(encoding, "is_overtaken", another_waits)
    with pytest.raises(encoding.Preempted):
        await passes.make_missing(attempt, worker.tools)
    assert (await Attempt.get(id=attempt.id)).outcome == Outcome.HANDED_BACK
    assert (await Video.get(id=video.id)).complete_job_id is not None
