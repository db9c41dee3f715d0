"""Passes that end early: any worker resumes them, and they end for a video that is due before."""

from pathlib import Path

import pytest
from api_client import Client, rows, run_sql, until_found
from passes import ended_after, first_attempt, make_source, published_file
from running_portal import LivePortal, create, final_status, make_video, process

from portal.database.models import Attempt, Outcome
from portal.database.work_models import MadeSegment, PassInProgress
from portal.films import attempts
from portal.http.composition import WebContext

pytestmark = pytest.mark.slow

LONG_S = 80
# Makes leases expire without waiting.
LEASE_PASSES = """
UPDATE attempts SET lease_expires_at = now() - interval '1 s' WHERE outcome IS NULL;
UPDATE procrastinate_workers SET last_heartbeat = now() - interval '60 s'
"""


@pytest.fixture(scope="module")
def long_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a film that takes long enough for its pass to be observed."""
    return make_source(tmp_path_factory.mktemp("media") / "long.mp4", seconds=LONG_S)


async def test_film_with_far_key_frames_is_not_divided(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    options = ("-g", "9999", "-sc_threshold", "0")
    film = make_source(tmp_path / "film.mp4", *options, seconds=63, size="320x180", rate=5)
    video = await published_file(client, resources, film)
    await ended_after(await first_attempt(video), resources, tmp_path, segments=1)
    # No part is expected to take any time, so one part has all segments.
    assert (await PassInProgress.get(version_id=video.version_id)).segment_s == 0


@pytest.mark.usefixtures("early_first")
async def test_lost_attempt_with_segments_does_not_count_and_a_failed_one_leaves_none(
    client: Client, resources: WebContext, film: Path, tmp_path: Path
) -> None:
    video = await published_file(client, resources, film)
    await ended_after(await first_attempt(video), resources, tmp_path, segments=2)
    # The attempt looks as if it had not been released.
    await Attempt.filter(video_id=video.id).update(outcome=None, finished_at=None)
    await run_sql(resources.config.database_url, LEASE_PASSES)
    second = await first_attempt(video)
    assert not second.is_cautious
    [lost, _] = await Attempt.filter(video_id=video.id).order_by("number")
    assert (lost.outcome, lost.error_code) == (Outcome.HANDED_BACK, "worker_lost")
    # Segments of a failed attempt are deleted.
    await attempts.release(second, Outcome.FAILED, attempts.Failure("internal_error"))
    assert not await MadeSegment.exists(version_id=video.version_id)


@pytest.mark.soak
async def test_completion_gives_way_to_a_video_that_waits(
    web: LivePortal, long_film: Path, tmp_path: Path
) -> None:
    database_url = web.environ["DATABASE_URL"]
    video = await create(web.base_url, long_film)
    clip = make_video(tmp_path / "clip.mp4", seconds=3, copyable=False)
    under_way = """
        SELECT 1 FROM attempts JOIN videos ON videos.id = video_id
        WHERE number > published_attempt AND outcome IS NULL AND percent > 3
          AND EXISTS (SELECT FROM made_segments)
    """
    async with process("worker", {**web.environ, "WORKER_CONCURRENCY": "1"}):
        await until_found(database_url, under_way, timeout_s=120)
        newest = await rows(database_url, "SELECT max(number) FROM made_segments")
        short = await create(web.base_url, clip)
        assert await final_status(web.base_url, short["id"], timeout_s=30) == "ready"
        assert await rows(database_url, "SELECT max(number) FROM made_segments") >= newest
    is_queued = """
        SELECT complete_job_id IS NULL OR job.status IN ('todo', 'doing') FROM videos
        LEFT JOIN procrastinate_jobs job ON job.id = complete_job_id WHERE videos.id = %s
    """
    assert await rows(database_url, is_queued, video["id"]) == [(True,)]
