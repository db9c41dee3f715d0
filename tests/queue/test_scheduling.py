"""Whose turn it is in the queue, when a pass gives way, and that people are told the truth."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from api_client import rows, run_sql
from page_rows import READY, make_row

from portal.database.connection import transaction
from portal.database.models import Video
from portal.queue.enqueue import (
    EPOCH,
    IMPORT_QUEUE,
    PREPARE_QUEUE,
    TRANSCODE_QUEUE,
    completion_priority,
    defer_completion,
    defer_encode,
    defer_import,
    defer_transcode,
    encode_priority,
    end_job,
    look_priority,
    slow_import_priority,
)
from portal.queue.rows import import_waits, is_overtaken
from portal.videos.progress import fetch_progress
from portal.web.composition import WebContext

GB = 10**9
NOW = datetime(2026, 7, 1, tzinfo=UTC)
NO_TIME = timedelta()
NUMBERS = count(1)


@pytest.fixture
async def queue(resources: WebContext) -> AsyncIterator[WebContext]:
    async with resources.queue.open_async():
        yield resources


async def waiting(
    resources: WebContext,
    size_bytes: int,
    since: datetime,
    *,
    expected_s: float | None = None,
    **values: Any,
) -> Video:
    """A video that waits for a look, for its encode, or, when it is ready, for its ladder."""
    async with transaction():
        row = {"size_bytes": size_bytes, "created_at": since, "transcode_job_id": -next(NUMBERS)}
        video = await make_row(**row, **values)
        if values:
            video.complete_job_id = await defer_completion(video, resources.queue)
        elif expected_s is None:
            video.transcode_job_id = await defer_transcode(video, resources.queue)
        else:
            video.transcode_job_id = await defer_encode(
                video, resources.queue, expected_s=expected_s
            )
        await video.save()
    return video


async def next_video(resources: WebContext, queue_name: str = TRANSCODE_QUEUE) -> UUID | None:
    """The video of the job that a worker gets now."""
    manager = resources.queue.job_manager
    worker_id = await manager.register_worker()
    job = await manager.fetch_job(queues=[queue_name], worker_id=worker_id)
    return UUID(str(job.task_kwargs["video_id"])) if job else None


async def test_quick_storyboard_does_not_wait_for_the_end_of_the_job_that_queued_it(
    queue: WebContext,
) -> None:
    video = await waiting(queue, GB, NOW, expected_s=10)
    assert await next_video(queue) == video.id
    async with transaction():
        await defer_completion(video, queue.queue, is_quick=True)
    assert await next_video(queue, PREPARE_QUEUE) == video.id


def encode(expected_s: float, after: timedelta = NO_TIME) -> int:
    return encode_priority(expected_s, since=NOW + after)


def look(size_bytes: int, after: timedelta = NO_TIME) -> int:
    return look_priority(size_bytes, since=NOW + after)


def test_what_is_soon_done_goes_first_and_nothing_waits_for_ever() -> None:
    # A short video that comes ten hours after a batch of long ones, a small file after a large one.
    assert encode(5, timedelta(hours=10)) > encode(600)
    assert look(1_000_000, timedelta(hours=1)) > look(2 * GB)
    # Equal ones in their order; and a very long one before what comes two weeks later.
    assert encode(600) > encode(600, timedelta(seconds=1))
    assert encode(10**7) > encode(1, timedelta(days=14))
    # Ladders wait for every first pass, and the queue has 32 bits.
    lowest = min(look(10**14), encode(10**9))
    assert completion_priority(1, since=EPOCH) < lowest
    assert completion_priority(100 * GB, since=datetime(2050, 1, 1, tzinfo=UTC)) > -(2**31)
    assert look_priority(1, since=EPOCH) < 2**31


@pytest.mark.parametrize("seed", range(2))
async def test_place_in_the_queue_is_the_true_one(seed: int, queue: WebContext) -> None:
    rng = Random(seed)  # noqa: S311  # to be repeated, not to be secret
    videos = []
    for _ in range(12):
        since = NOW + timedelta(hours=rng.randrange(100))
        kind = rng.choice([{}, READY, {"expected_s": rng.choice([1, 60, 3600])}])
        size_bytes = rng.choice([1, 50, 2000, 2000]) * 10**6
        videos.append((await waiting(queue, size_bytes, since, **kind), bool(kind)))
    told: dict[str, dict[int, UUID]] = {PREPARE_QUEUE: {}, TRANSCODE_QUEUE: {}}
    for video, is_encoded in videos:
        progress = (await fetch_progress([video.id]))[video.id]
        place = (progress.remaining or progress.work).queue_position
        assert place is not None
        told[TRANSCODE_QUEUE if is_encoded else PREPARE_QUEUE][place] = video.id
    for name, places in told.items():
        assert sorted(places) == list(range(1, len(places) + 1))
        for place in sorted(places):
            assert await next_video(queue, name) == places[place], f"place {place} of seed {seed}"
    assert sum(map(len, told.values())) == len(videos)


JOB = """
INSERT INTO procrastinate_jobs (id, queue_name, task_name, priority, lock, args, status,
                                scheduled_at)
VALUES ({id}, 'transcode', 'portal:{task}', {priority}, 'video:{lock}', '{{}}', '{status}', {at});
"""
FIRST, LATER = -1000, -1_000_001_000


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
        # Of several that run, the one that is due last ends.
        (COMPLETION + job(2, "complete", LATER - 5, "doing") + WAITING, False),
        (COMPLETION + job(2, "complete", LATER + 5, "doing") + WAITING, True),
        # Who helps gives way to whatever is more.
        (job(1, "share", LATER - 9, "doing") + job(9, "complete", LATER, "todo"), True),
        (job(1, "share", LATER - 9, "doing") + job(9, "share", LATER - 9, "todo"), False),
    ],
)
async def test_only_what_is_due_before_and_has_no_other_slot_overtakes(
    resources: WebContext, jobs: str, *, expected: bool
) -> None:
    await run_sql(resources.config.database_url, jobs)
    assert await is_overtaken(1) is expected


async def next_import(resources: WebContext) -> UUID | None:
    """The import of the job that a worker gets now."""
    manager = resources.queue.job_manager
    worker_id = await manager.register_worker()
    job = await manager.fetch_job(queues=[IMPORT_QUEUE], worker_id=worker_id)
    return UUID(str(job.task_kwargs["import_id"])) if job else None


async def test_owner_with_many_imports_does_not_delay_anothers_first(queue: WebContext) -> None:
    busy = uuid4()
    other = uuid4()
    imports = [uuid4() for _ in range(5)]
    async with transaction():
        for import_id in imports[:4]:
            await defer_import(import_id, busy, queue.queue)
        await defer_import(imports[4], other, queue.queue)
    order = [await next_import(queue) for _ in range(5)]
    assert order == [imports[0], imports[4], *imports[1:4]]


async def test_account_takes_four_slots_and_fills_the_emptiest_lane(queue: WebContext) -> None:
    owner = uuid4()
    imports = [uuid4() for _ in range(6)]
    async with transaction():
        jobs = [await defer_import(import_id, owner, queue.queue) for import_id in imports[:5]]
    assert [await next_import(queue) for _ in range(5)] == [*imports[:4], None]
    await end_job(jobs[1], queue.queue)
    async with transaction():
        await defer_import(imports[5], owner, queue.queue)
    assert await next_import(queue) == imports[5]


async def test_slow_import_gives_way_to_one_that_could_begin(queue: WebContext) -> None:
    owner = uuid4()
    async with transaction():
        slow = await defer_import(uuid4(), owner, queue.queue)
    await next_import(queue)
    url = queue.config.database_url
    [(priority,)] = await rows(url, "SELECT priority FROM procrastinate_jobs")
    above = slow_import_priority(priority)
    assert not await import_waits(slow, above)
    async with transaction():
        waiting = await defer_import(uuid4(), owner, queue.queue)
    # The second import has the same lock, which the slow one holds, and a lower priority.
    await run_sql(url, "UPDATE procrastinate_jobs SET lock = 'same'")
    assert await import_waits(slow, above)
    assert slow_import_priority(above) == above
    # Behind all others it gives way to none that is as slow.
    await run_sql(url, f"UPDATE procrastinate_jobs SET priority = {above} WHERE id = {waiting}")
    assert not await import_waits(slow, above)
