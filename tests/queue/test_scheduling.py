"""Order of the queue, passes that give way, and the places that pages show."""

from asyncio import gather
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from api_client import rows, run_sql
from page_rows import READY, make_row

from portal.database.connection import transaction
from portal.database.models import Version, Video
from portal.events.log import PORTAL, Actor, act_as
from portal.features.cuts.service import insert_cut
from portal.features.downloads.service import DOWNLOAD
from portal.features.imports import service as file_imports
from portal.features.posters.service import POSTER
from portal.films.captions import CAPTIONS, TRANSCRIPTION
from portal.films.jobs import REMOVAL, enqueue_completion, enqueue_encode, enqueue_transcode
from portal.films.versions import withdraw
from portal.http.composition import WebContext
from portal.queue.app import Queue, open_queue
from portal.queue.jobs import IMPORT_QUEUE, PREPARE_QUEUE, TRANSCODE_QUEUE
from portal.queue.priorities import (
    EPOCH,
    completion_priority,
    encode_priority,
    look_priority,
    slow_import_priority,
)
from portal.queue.rows import end_job, import_waits, is_overtaken
from portal.transcoding.planning.kept import Kept
from portal.videos.progress import fetch_progress

GB = 10**9
NOW = datetime(2026, 7, 1, tzinfo=UTC)
NO_TIME = timedelta()
NUMBERS = count(1)


@pytest.fixture
async def queue(resources: WebContext) -> AsyncIterator[Queue]:
    """Return an app that fetches jobs like a worker."""
    opened = open_queue(resources.config.database_url)
    async with opened.open_async():
        yield opened


async def waiting(
    size_bytes: int, since: datetime, *, expected_s: float | None = None, **values: Any
) -> Video:
    """Insert a video that waits for its probe, its encode, or, when ready, its ladder."""
    async with transaction():
        row = {"size_bytes": size_bytes, "created_at": since, "transcode_job_id": -next(NUMBERS)}
        video = await make_row(**row, **values)
        version = await video.current_version()
        if values:
            version.complete_job_id = await enqueue_completion(version)
        elif expected_s is None:
            version.transcode_job_id = await enqueue_transcode(version)
        else:
            version.transcode_job_id = await enqueue_encode(version, expected_s=expected_s)
        await version.save()
    return await Video.get(id=video.id)


async def next_id(queue: Queue, queue_name: str) -> UUID | None:
    """Return the video or the import of the job that a worker fetches now."""
    manager = queue.job_manager
    worker_id = await manager.register_worker()
    job = await manager.fetch_job(queues=[queue_name], worker_id=worker_id)
    subject = "import_id" if queue_name == IMPORT_QUEUE else "version_id"
    return UUID(str(job.task_kwargs[subject])) if job else None


def encode(expected_s: float, after: timedelta = NO_TIME) -> int:
    return encode_priority(expected_s, since=NOW + after)


def look(size_bytes: int, after: timedelta = NO_TIME) -> int:
    return look_priority(size_bytes, since=NOW + after)


def test_short_work_goes_first_and_no_video_waits_for_ever() -> None:
    # A short video overtakes a batch of long ones, and a small file a large one.
    assert encode(5, timedelta(hours=10)) > encode(600)
    assert look(1_000_000, timedelta(hours=1)) > look(2 * GB)
    # Equal videos keep their order, and a very long one goes before those of two weeks later.
    assert encode(600) > encode(600, timedelta(seconds=1))
    assert encode(10**7) > encode(1, timedelta(days=14))
    # Ladders wait for every first pass, and priorities fit into 32 bits.
    lowest = min(look(10**14), encode(10**9))
    assert completion_priority(1, since=EPOCH) < lowest
    assert completion_priority(100 * GB, since=datetime(2050, 1, 1, tzinfo=UTC)) > -(2**31)
    assert look_priority(1, since=EPOCH) < 2**31


async def test_shown_place_in_the_queue_is_the_order_in_which_workers_fetch(queue: Queue) -> None:
    rng = Random(0)  # noqa: S311  # repeatable, no secret
    videos = []
    for _ in range(12):
        since = NOW + timedelta(hours=rng.randrange(100))
        kind = rng.choice([{}, READY, {"expected_s": rng.choice([1, 60, 3600])}])
        size_bytes = rng.choice([1, 50, 2000, 2000]) * 10**6
        videos.append((await waiting(size_bytes, since, **kind), bool(kind)))
    places: dict[str, dict[int, UUID]] = {PREPARE_QUEUE: {}, TRANSCODE_QUEUE: {}}
    for video, is_encoded in videos:
        progress = (await fetch_progress([video.id]))[video.id]
        place = (progress.remaining or progress.work).queue_position
        assert place is not None
        places[TRANSCODE_QUEUE if is_encoded else PREPARE_QUEUE][place] = video.id
    for name, video_ids in places.items():
        assert sorted(video_ids) == list(range(1, len(video_ids) + 1))
        for place in sorted(video_ids):
            assert await next_id(queue, name) == video_ids[place], f"place {place}"
    assert sum(map(len, places.values())) == len(videos)


JOB = """
INSERT INTO procrastinate_jobs (id, queue_name, task_name, priority, lock, args, status,
                                scheduled_at)
VALUES ({id}, 'transcode', 'portal:{task}', {priority}, 'video:{lock}', '{{}}', '{status}', {at});
"""
FIRST = -1000
LATER = -1_000_001_000


def job(id: int, task: str, priority: int, status: str, *, lock: int = 0, at: str = "NULL") -> str:
    return JOB.format(id=id, task=task, priority=priority, status=status, lock=lock or id, at=at)


COMPLETION = job(1, "complete", LATER, "doing")
WAITING = job(9, "encode", FIRST, "todo")


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        (COMPLETION + WAITING, True),
        (COMPLETION, False),
        (COMPLETION + job(9, "complete", LATER + 10, "todo"), False),
        (COMPLETION + job(9, "encode", FIRST, "todo", at="now() + interval '1 minute'"), False),
        (COMPLETION + job(9, "encode", FIRST, "todo", lock=1), False),
        (job(1, "encode", FIRST, "doing") + job(9, "encode", FIRST - 1, "todo"), False),
        (job(1, "encode", FIRST - 1, "doing") + WAITING, True),
        # The running job that is due last gives way.
        (COMPLETION + job(2, "complete", LATER - 5, "doing") + WAITING, False),
        (COMPLETION + job(2, "complete", LATER + 5, "doing") + WAITING, True),
        # A job that shares a pass gives way to all other jobs.
        (job(1, "share", LATER - 9, "doing") + job(9, "complete", LATER, "todo"), True),
        (job(1, "share", LATER - 9, "doing") + job(9, "share", LATER - 9, "todo"), False),
    ],
)
async def test_only_an_earlier_due_job_without_another_slot_overtakes(
    resources: WebContext, jobs: str, *, expected: bool
) -> None:
    await run_sql(resources.config.database_url, jobs)
    assert await is_overtaken(1) is expected


def act_as_new_account() -> UUID:
    """Act as an account that has queued nothing yet, and return its id."""
    account_id = uuid4()
    act_as(Actor("person", account_id))
    return account_id


# Each kind of job that a person can request again and again, apart from those with a version.
KINDS: dict[str, Callable[[], Awaitable[int]]] = {
    "poster": lambda: POSTER.enqueue(video_id=uuid4(), number=1),
    "captions": lambda: CAPTIONS.enqueue(video_id=uuid4()),
    "removal": lambda: REMOVAL.enqueue(video_id=uuid4()),
    "download": lambda: DOWNLOAD.enqueue(video_id=uuid4(), number=1),
    "transcription": lambda: TRANSCRIPTION.enqueue(video_id=uuid4()),
    "import": lambda: file_imports.enqueue(uuid4(), None),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_many_jobs_of_one_requester_delay_no_other(kind: str, resources: WebContext) -> None:
    act_as(Actor("anyone", address="192.0.2.1"))
    mine = []
    for _ in range(25):
        async with transaction():
            mine.append(await KINDS[kind]())
    act_as(Actor("anyone", address="192.0.2.2"))
    async with transaction():
        other = await KINDS[kind]()
    by_priority = "SELECT id FROM procrastinate_jobs ORDER BY priority DESC, id"
    order = [id for (id,) in await rows(resources.config.database_url, by_priority)]
    assert order == [*mine[:3], other, *mine[3:]]


async def test_jobs_of_all_kinds_count_together_and_one_after_another(
    resources: WebContext,
) -> None:
    act_as_new_account()

    async def request(kind: str) -> None:
        async with transaction():
            await KINDS[kind]()

    await gather(*(request(kind) for kind in (*KINDS, *KINDS)))
    priorities = "SELECT priority FROM procrastinate_jobs ORDER BY priority DESC"
    stored = [priority for (priority,) in await rows(resources.config.database_url, priorities)]
    days = [round((stored[0] - priority) / 86_400) for priority in stored]
    assert days == [0] * 3 + [14] * 7 + [28] * 2


async def test_cuts_that_give_way_still_count_for_their_requester(queue: Queue) -> None:
    now = datetime.now(UTC)
    other = await waiting(20_000_000, now)
    film = await (await make_row(2, **READY)).current_version()
    act_as_new_account()
    for _ in range(5):
        async with transaction():
            for former in await Version.filter(base_id=film.id):
                await withdraw(former)
            keep = Kept.of([(0.0, 4.0)])
            await insert_cut(film, keep, version_id=uuid4(), video_id=film.video_id)
    assert await next_id(queue, PREPARE_QUEUE) == other.id


async def test_requester_of_much_does_not_keep_a_requester_of_some_waiting(queue: Queue) -> None:
    act_as_new_account()
    some = [await waiting(100_000_000, NOW) for _ in range(5)]
    act_as_new_account()
    much = [await waiting(0, NOW) for _ in range(15)]
    order = [await next_id(queue, PREPARE_QUEUE) for _ in (*some, *much)]
    expected = [*much[:3], *some[:3], *much[3:10], *some[3:], *much[10:]]
    assert order == [video.id for video in expected]


async def test_short_video_overtakes_most_of_the_long_ones_of_its_requester(queue: Queue) -> None:
    act_as_new_account()
    videos = [await waiting(1, NOW, expected_s=600) for _ in range(8)]
    videos.append(await waiting(1, NOW, expected_s=1))
    order = [await next_id(queue, TRANSCODE_QUEUE) for _ in videos]
    assert order == [video.id for video in (*videos[:3], videos[8], *videos[3:8])]


async def test_encode_and_ladder_count_from_the_same_time_as_the_probe(
    resources: WebContext,
) -> None:
    act_as_new_account()
    videos = [await waiting(1_000_000, NOW) for _ in range(4)]
    act_as(PORTAL)
    since = NOW + timedelta(days=14)
    version = await videos[-1].current_version()
    async with transaction():
        await enqueue_encode(version, expected_s=60)
        await enqueue_completion(version)
    query = "SELECT priority FROM procrastinate_jobs WHERE queue_name = 'transcode' ORDER BY id"
    stored = [priority for (priority,) in await rows(resources.config.database_url, query)]
    expected = [encode_priority(60, since=since), completion_priority(1_000_000, since=since)]
    assert stored == pytest.approx(expected, abs=60)


async def test_account_takes_four_slots_and_fills_the_emptiest_lane(queue: Queue) -> None:
    owner = uuid4()
    imports = [uuid4() for _ in range(6)]
    async with transaction():
        jobs = [await file_imports.enqueue(import_id, owner) for import_id in imports[:5]]
    assert [await next_id(queue, IMPORT_QUEUE) for _ in range(5)] == [*imports[:4], None]
    await end_job(jobs[1])
    async with transaction():
        await file_imports.enqueue(imports[5], owner)
    assert await next_id(queue, IMPORT_QUEUE) == imports[5]


async def test_slow_import_gives_way_to_one_that_could_begin(
    queue: Queue, resources: WebContext
) -> None:
    owner = uuid4()
    async with transaction():
        slow = await file_imports.enqueue(uuid4(), owner)
    await next_id(queue, IMPORT_QUEUE)
    url = resources.config.database_url
    [(priority,)] = await rows(url, "SELECT priority FROM procrastinate_jobs")
    above = slow_import_priority(priority)
    assert not await import_waits(slow, above)
    async with transaction():
        waiting = await file_imports.enqueue(uuid4(), owner)
    # The second import has the same lock, which the slow one holds, and a lower priority.
    await run_sql(url, "UPDATE procrastinate_jobs SET lock = 'same'")
    assert await import_waits(slow, above)
    assert slow_import_priority(above) == above
    # A slow import doesn't give way to another slow one.
    await run_sql(url, f"UPDATE procrastinate_jobs SET priority = {above} WHERE id = {waiting}")
    assert not await import_waits(slow, above)
