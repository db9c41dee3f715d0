"""Workers make parts of a film: those that are missing, under leases, and helpers with them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from api_client import run_sql
from passes import EARLY, Worker, first_attempt, make_source

from portal.database.models import Attempt, Outcome, Rendition, Video, VideoStatus
from portal.database.work_models import MadeSegment, PassInProgress, PassPart
from portal.films import attempts, encoding, parts
from portal.films.outputs import open_rendition
from portal.storage.objects import output_prefix
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import inspect_segment

pytestmark = pytest.mark.usefixtures("early_first")
[EARLY_NAME] = EARLY
SEGMENTS = 10
# Make leases of attempts and of parts expire without waiting.
LEASE_PASSES = """
UPDATE attempts SET lease_expires_at = now() - interval '1 s' WHERE outcome IS NULL;
UPDATE procrastinate_workers SET last_heartbeat = now() - interval '60 s'
"""
EXPIRE = "UPDATE pass_parts SET lease_expires_at = now() - interval '1 s' WHERE NOT is_done"


@pytest.fixture
async def begun(worker: Worker, film: Path) -> Video:
    """Return a film of which the first two segments are made."""
    video = await worker.publish(film)
    await worker.end_after(await first_attempt(video), segments=2)
    # The pass may have stored more segments while it was ending.
    await MadeSegment.filter(version_id=video.version_id, number__gte=2).delete()
    assert not await PassPart.filter(is_done=False).exists()
    await PassPart.all().delete()
    return video


async def finished(video: Video, worker: Worker) -> list[str]:
    """Finish the pass; return the names of the segments, after a check that they join."""
    await worker.run(await first_attempt(video))
    video = await Video.get(id=video.id)
    assert video.status is VideoStatus.READY
    assert not await PassInProgress.exists()
    assert not await PassPart.exists()
    assert not await MadeSegment.exists()
    rendition = await Rendition.get(version_id=video.version_id, name=EARLY_NAME)
    files = await open_rendition(rendition, video.id, worker.resources.storage)
    uris = [segment.uri for segment in files.playlist.segments]
    facts = [inspect_segment(await files.read(uri)) for uri in uris]
    assert [segment.sample_count for segment in facts] == [20] * SEGMENTS
    assert all(a.until_ticks == b.from_ticks for a, b in pairwise(facts))
    return uris


def parts_of(uris: Sequence[str]) -> list[str]:
    """Return the prefixes of the names of segments, which tell their parts."""
    return list(dict.fromkeys(uri.partition("-")[0] for uri in uris))


async def test_helper_makes_the_parts_that_are_missing_and_free(
    begun: Video, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each segment of this short film is a part.
    monkeypatch.setattr(parts, "LONGEST_PART_S", 1e-6)
    monkeypatch.setattr(parts, "SHORTEST_PART_S", 1e-6)
    # Another worker holds the next part, so the helper begins after it.
    other, _ = await parts.claim(begun.id, worker="test")
    assert other is not None
    await PassPart.filter(id=other.id).update(
        lease_expires_at=datetime.now(UTC) + timedelta(hours=1)
    )
    await encoding.help_with(begun.id, worker.tools)
    numbers = [row.number for row in await MadeSegment.filter(rendition=EARLY_NAME)]
    assert sorted(numbers) == [0, 1, *range(3, SEGMENTS)]
    assert await PassPart.filter(is_done=True).count() == SEGMENTS - 3
    await run_sql(worker.resources.config.database_url, EXPIRE)
    # The helper makes the last part, too, so that the worker of the pass has none to make.
    await encoding.help_with(begun.id, worker.tools)
    uris = await finished(begun, worker)
    assert len(parts_of(uris)) == SEGMENTS - 1


@pytest.mark.slow
async def test_worker_begins_anew_where_helpers_fail_and_the_init_segment_is_missing(
    begun: Video, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = worker.tools

    async def failing(*_: Any, **__: Any) -> None:
        raise TranscodeFailed(FailCode.FFMPEG_FAILED, detail="out of order")

    with monkeypatch.context() as patch:
        patch.setattr(encoding, "encode_part", failing)
        for _ in range(parts.MAX_FAILURES):
            with pytest.raises(TranscodeFailed):
                await encoding.help_with(begun.id, tools)
        await encoding.help_with(begun.id, tools)
    assert await MadeSegment.filter(rendition=EARLY_NAME).count() == 2
    await worker.resources.storage.delete(f"{output_prefix(begun.id, 1)}{EARLY_NAME}/init.mp4")
    await finished(begun, worker)


async def test_segments_that_do_not_join_are_made_again(begun: Video, worker: Worker) -> None:
    await encoding.help_with(begun.id, worker.tools)
    later = await MadeSegment.filter(rendition=EARLY_NAME, number__gte=2)
    await MadeSegment.filter(number=2, rendition=EARLY_NAME).update(from_ticks=0)
    uris = await finished(begun, worker)
    assert len(parts_of(uris)) == 1
    assert not {row.uri for row in later} & {*uris}


@pytest.mark.slow
async def test_film_with_far_key_frames_is_not_divided(worker: Worker) -> None:
    options = ("-g", "9999", "-sc_threshold", "0")
    film = make_source(worker.folder / "film.mp4", *options, seconds=63, size="320x180", rate=5)
    video = await worker.publish(film)
    await worker.end_after(await first_attempt(video), segments=1)
    # No part is expected to take any time, so one part has all segments.
    assert (await PassInProgress.get(version_id=video.version_id)).segment_s == 0


@pytest.mark.slow
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
