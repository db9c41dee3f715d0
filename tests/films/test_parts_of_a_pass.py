"""Parts of a pass: which segments a worker gets, and leases of parts."""

from collections.abc import Sequence

import pytest
from api_client import rows, run_sql
from page_rows import make_row, make_segment
from passes import Worker, first_attempt
from psycopg import AsyncConnection

from portal.database.connection import transaction
from portal.database.models import Outcome, Video
from portal.database.work_models import MadeSegment, PassInProgress
from portal.films import attempts, encoding, parts
from portal.films.attempts import Failure, LeaseLost
from portal.films.jobs import enqueue_encode
from portal.films.parts import Lease, PassState
from portal.http.composition import WebContext
from portal.queue.app import WorkerConnector
from portal.queue.rows import WORKER_PREFIX
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.parts import Part

RENDITIONS = ["240p", "360p"]
SEGMENTS = 10
# Makes leases expire without waiting.
EXPIRE = "UPDATE pass_parts SET lease_expires_at = now() - interval '1 s' WHERE NOT is_done"
END_JOBS = "UPDATE procrastinate_jobs SET status = 'cancelled'"


@pytest.fixture
async def video(resources: WebContext) -> Video:
    """Return a video with a pass of ten segments, two of which are stored."""
    video = await make_row()
    await PassInProgress.create(
        version_id=video.version_id,
        folder=1,
        renditions=RENDITIONS,
        starts_s=[4.0 * number for number in range(SEGMENTS)],
        segment_count=SEGMENTS,
        segment_s=1.0,
    )
    for name in RENDITIONS:
        for number in range(2):
            await make_segment(video, name, number)
    return video


async def claimed(video: Video, *, is_helper: bool = False) -> Lease:
    lease = await claim(video, is_helper=is_helper)
    assert lease is not None
    return lease


async def claim(video: Video, *, is_helper: bool = False) -> Lease | None:
    lease, _ = await parts.claim(video.id, worker="test", is_helper=is_helper)
    return lease


@pytest.mark.parametrize(
    ("unclaimed", "processes", "live_parts", "claimed", "segment_s", "length"),
    [
        # Little work isn't divided.
        (range(2), 2, 0, 0, 1.0, 2),
        # The only worker takes all, up to a minute.
        (range(10), 1, 0, 0, 4.0, 10),
        (range(200), 1, 0, 0, 4.0, 15),
        # The first of two workers takes half, and the second one half of the rest.
        (range(20), 2, 0, 0, 4.0, 10),
        (range(10), 2, 1, 10, 4.0, 5),
        # Near the end, both finish together.
        (range(24), 2, 0, 0, 0.5, 12),
        (range(12), 2, 1, 8, 0.5, 10),
        # Each of many workers takes its share, but at least 3 s.
        (range(20), 4, 0, 0, 4.0, 5),
        (range(20), 64, 0, 0, 1.0, 3),
        # The names of workers may be hidden, so their parts count, too.
        (range(20), 0, 1, 0, 4.0, 10),
        # A part ends where a segment is stored.
        ([3, 4, 9, 10, 11, 12, 13, 14, 15, 16], 1, 0, 0, 4.0, 2),
        # A segment can be longer than a part.
        (range(5), 1, 0, 0, 90.0, 1),
    ],
)
def test_part_is_the_share_of_a_worker(
    unclaimed: Sequence[int],
    processes: int,
    live_parts: int,
    claimed: int,
    segment_s: float,
    length: int,
) -> None:
    state = PassState(
        list(unclaimed),
        live_parts=live_parts,
        claimed_count=claimed,
        helper_failures=0,
        share_stored=0.0,
        worker_processes=processes,
    )
    assert parts.part_length(state, segment_s) == length


async def test_part_is_shorter_if_another_worker_process_is_there(
    video: Video, resources: WebContext
) -> None:
    await PassInProgress.filter(version_id=video.version_id).update(segment_s=2.0)
    url = resources.config.database_url
    connector = WorkerConnector(url)
    await connector.open_async()
    lease = await claimed(video)
    assert lease.part.until == SEGMENTS
    await parts.release(lease)
    async with await AsyncConnection.connect(url, application_name=f"{WORKER_PREFIX}1@other"):
        assert (await claimed(video)).part.until == 6
        _, state = await parts.claim(video.id, worker="other")
        assert (state.live_parts, state.claimed_count) == (1, 4)
    await connector.close_async()


async def test_part_begins_at_the_first_segment_that_a_rendition_lacks(video: Video) -> None:
    await make_segment(video, RENDITIONS[0], 2)
    lease = await claimed(video)
    assert lease.part == Part(first=2, until=SEGMENTS, prefix=f"{lease.id}-")
    await MadeSegment.filter(number=1, rendition=RENDITIONS[0]).delete()
    assert (await claimed(video)).part.first == 1
    assert await claim(video) is None


async def test_done_part_counts_as_stored_and_a_released_one_does_not(video: Video) -> None:
    lease = await claimed(video)
    await parts.release(lease)
    again = await claimed(video)
    # The film may end before the last planned segment.
    await parts.finish(again, RunReport(frames_decoded=100))
    assert await claim(video) is None
    with pytest.raises(LeaseLost):
        await parts.renew(again)


async def test_helper_does_not_begin_a_film(video: Video) -> None:
    await MadeSegment.filter(number=0, rendition=RENDITIONS[0]).delete()
    assert await claim(video, is_helper=True) is None
    assert (await claimed(video)).part.first == 0


async def test_helper_gets_no_part_after_failures(video: Video) -> None:
    for _ in range(parts.MAX_FAILURES):
        lease = await claimed(video, is_helper=True)
        await parts.fail(lease, is_helper=True)
    assert await claim(video, is_helper=True) is None
    assert (await claimed(video)).part.first == 2


async def test_part_with_an_expired_lease_is_lost(video: Video, resources: WebContext) -> None:
    lease = await claimed(video)
    await parts.renew(lease)
    assert await claim(video) is None
    await run_sql(resources.config.database_url, EXPIRE)
    other = await claimed(video)
    assert (other.part.first, other.part.until) == (lease.part.first, lease.part.until)
    assert other.part.prefix != lease.part.prefix
    with pytest.raises(LeaseLost):
        await parts.renew(lease)


async def test_helper_ends_once_its_part_is_no_longer_needed(video: Video, worker: Worker) -> None:
    attempt = await first_attempt(video)
    lease = await claimed(video, is_helper=True)
    await attempts.release(attempt, Outcome.FAILED, Failure("internal_error"))
    with pytest.raises(LeaseLost):
        await parts.renew(lease)
    await encoding.help_with(video.id, worker.tools)
    assert not await MadeSegment.exists()


async def test_pass_of_an_earlier_attempt_is_resumed_if_it_is_the_same(video: Video) -> None:
    attempt = await first_attempt(video)
    starts_s = [4.0 * number for number in range(SEGMENTS)]
    same = await parts.prepare(attempt, RENDITIONS, starts_s, expected_s=10)
    assert same.folder == 1
    assert await MadeSegment.all().count() == 4
    other = await parts.prepare(attempt, ["720p"], starts_s, expected_s=10)
    assert other.renditions == ["720p"]
    assert not await MadeSegment.exists()


async def test_help_is_offered_only_while_nothing_waits(
    video: Video, resources: WebContext
) -> None:
    database_url = resources.config.database_url
    await PassInProgress.all().update(segment_s=0.3)
    assert await parts.offer_help() is None, "too little is left"
    await PassInProgress.all().update(segment_s=10.0)
    async with transaction():
        await enqueue_encode(await make_row(2), expected_s=1)
    assert await parts.offer_help() is None, "an encode waits"
    await run_sql(database_url, END_JOBS)
    assert await parts.offer_help() == video.id
    assert await parts.offer_help() is None, "help is under way"
    jobs = """
        SELECT args->>'version_id' FROM procrastinate_jobs
        WHERE task_name = 'portal:share' AND status = 'todo'
    """
    assert await rows(database_url, jobs) == [(str(video.id),)]
