"""Idle workers make parts of a film that another worker encodes."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from api_client import Client, rows, run_sql
from passes import EARLY, ended_after, first_attempt, pass_of, published_file, tools_for

from portal.database.models import Outcome, Video, VideoStatus
from portal.database.work_models import MadeSegment, PassRun
from portal.processing import attempts, helping, runs
from portal.processing.attempts import Failure
from portal.processing.progress import Heartbeat
from portal.storage.objects import output_prefix
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import inspect_segment
from portal.transcoding.packaging.hls import parse_media_playlist
from portal.web.composition import WebContext

pytestmark = pytest.mark.usefixtures("early_first", "worth_sharing")
[EARLY_NAME] = EARLY
SEGMENTS = 10


@pytest.fixture
def worth_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the shortest pass be shared."""
    monkeypatch.setattr(runs, "SHARED_FROM_S", 0)


@pytest.fixture
async def begun(
    client: Client, resources: WebContext, film: Path, tmp_path: Path
) -> tuple[Video, PassRun]:
    """Return a film whose first segments are made, and the run of its later half."""
    video = await published_file(client, resources, film)
    await ended_after(await first_attempt(video), resources, tmp_path, segments=2)
    # The pass may have stored more segments while it was ending.
    await MadeSegment.filter(video_id=video.id, number__gte=2).delete()
    await PassRun.filter(video_id=video.id).update(made=2, eta_s=100)
    other = await runs.split(video_id=video.id)
    assert other
    return video, other


async def finished(video: Video, resources: WebContext, work_dir: Path) -> list[str]:
    """Finish the pass; return the addresses of the segments, after a check that they join."""
    await pass_of(await first_attempt(video), resources, work_dir).make_playable()
    video = await Video.get(id=video.id)
    assert video.status is VideoStatus.READY
    assert not await PassRun.exists()
    assert not await MadeSegment.exists()
    prefix = f"{output_prefix(video.id, 1)}{EARLY_NAME}/"
    storage = resources.storage
    playlist = parse_media_playlist((await storage.get(f"{prefix}playlist.m3u8")).decode())
    uris = [segment.uri for segment in playlist.segments]
    facts = [inspect_segment(await storage.get(prefix + uri)) for uri in uris]
    assert [segment.sample_count for segment in facts] == [20] * SEGMENTS
    assert all(a.until_ticks == b.from_ticks for a, b in pairwise(facts))
    return uris


async def test_helper_makes_half_of_the_unmade_segments(
    begun: tuple[Video, PassRun], resources: WebContext, tmp_path: Path
) -> None:
    video, other = begun
    count = await MadeSegment.filter(video_id=video.id, rendition=EARLY_NAME).count()
    assert other.start == count + (SEGMENTS - count + 1) // 2
    await helping.make_run_of(other.id, tools_for(resources, tmp_path), job_id=0)
    assert (await PassRun.get(id=other.id)).is_done
    uris = await finished(video, resources, tmp_path)
    owners = [uri.rpartition("-")[0] for uri in uris]
    assert owners.count("") == count
    assert owners[other.start :] == [f"{other.id}.1"] * (SEGMENTS - other.start)


async def test_pass_whose_runs_helpers_made_is_finished(
    begun: tuple[Video, PassRun], resources: WebContext, tmp_path: Path
) -> None:
    for run in await PassRun.all():
        await helping.make_run_of(run.id, tools_for(resources, tmp_path), job_id=0)
    await finished(begun[0], resources, tmp_path)


async def test_made_run_that_was_not_recorded_as_done_is_not_made_again(
    begun: tuple[Video, PassRun], resources: WebContext, tmp_path: Path
) -> None:
    video, other = begun
    [first, _] = await PassRun.all().order_by("start")
    await helping.make_run_of(first.id, tools_for(resources, tmp_path), job_id=0)
    await PassRun.filter(id=first.id).update(is_done=False)
    uris = await finished(video, resources, tmp_path)
    assert {uri.rpartition("-")[0] for uri in uris[: other.start]} == {"", f"{first.id}.2"}


async def test_worker_of_the_pass_makes_runs_without_a_helper(
    begun: tuple[Video, PassRun], resources: WebContext, tmp_path: Path
) -> None:
    await finished(begun[0], resources, tmp_path)


async def test_run_at_which_helpers_fail_is_left_to_the_worker_of_the_pass(
    begun: tuple[Video, PassRun],
    resources: WebContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    video, other = begun
    tools = tools_for(resources, tmp_path)

    async def failing(*_: Any, **__: Any) -> None:
        raise TranscodeFailed(FailCode.FFMPEG_FAILED, detail="out of order")

    monkeypatch.setattr(helping, "make_run", failing)
    for _ in range(runs.MAX_FAILURES):
        with pytest.raises(TranscodeFailed):
            await helping.make_run_of(other.id, tools, job_id=0)
    await helping.make_run_of(other.id, tools, job_id=0)
    await finished(video, resources, tmp_path)


async def test_segments_that_do_not_join_are_made_again(
    begun: tuple[Video, PassRun], resources: WebContext, tmp_path: Path
) -> None:
    video, other = begun
    await helping.make_run_of(other.id, tools_for(resources, tmp_path), job_id=0)
    await MadeSegment.filter(number=other.start).update(from_ticks=0)
    uris = await finished(video, resources, tmp_path)
    assert f"{other.id}.1" not in {uri.rpartition("-")[0] for uri in uris}


async def test_unusable_segments_are_deleted(
    begun: tuple[Video, PassRun], resources: WebContext
) -> None:
    video, other = begun
    heartbeat = Heartbeat(video.id, await first_attempt(video))
    held = await runs.claim_first(video.id, worker="test", storage=resources.storage)
    assert held
    [segment, _] = held.run.made[EARLY_NAME].segments
    await held.release()
    recorded = MadeSegment.filter(rendition=EARLY_NAME)
    await recorded.filter(number=0).delete()
    heartbeat.held = await runs.claim_first(video.id, worker="test", storage=resources.storage)
    assert not await recorded.exists(), "the first segment is lost"
    heartbeat.note_stored(EARLY_NAME, other.start, segment)
    await heartbeat.restart()
    await heartbeat.beat()
    assert not await MadeSegment.exists(), "the segment was reported before the restart"


async def test_helper_ends_once_its_run_is_no_longer_needed(
    begun: tuple[Video, PassRun], resources: WebContext, tmp_path: Path
) -> None:
    video, other = begun
    attempt = await first_attempt(video)
    held = await runs.claim(other.id, worker="helper", storage=resources.storage)
    assert held
    await attempts.release(attempt, Outcome.FAILED, Failure("internal_error"))
    with pytest.raises(attempts.LeaseLost):
        await held.renew(None)
    await helping.make_run_of(other.id, tools_for(resources, tmp_path), job_id=0)
    assert not await MadeSegment.exists()


async def test_runs_are_shared_only_while_nothing_waits(
    begun: tuple[Video, PassRun], client: Client, resources: WebContext, film: Path, tmp_path: Path
) -> None:
    queue = resources.queue
    database_url = resources.config.database_url
    [first, _] = await PassRun.all().order_by("start")
    assert await runs.split(queue=queue) is None, "the runs are too short"
    await PassRun.filter(id=first.id).update(eta_s=60)
    waiting = await published_file(client, resources, film)
    work = pass_of(await first_attempt(waiting), resources, tmp_path)
    await work.make_playable(may_encode=False)
    assert await runs.split(queue=queue) is None, "an encode waits"
    await run_sql(database_url, "UPDATE procrastinate_jobs SET status = 'cancelled'")
    other = await runs.split(queue=queue)
    assert other
    jobs = "SELECT args->>'run_id' FROM procrastinate_jobs WHERE task_name = 'portal:share'"
    assert await rows(database_url, jobs) == [(str(other.id),)]
