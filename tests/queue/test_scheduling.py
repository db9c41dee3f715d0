"""Whose turn it is in the queue, and that people are told the truth about it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any
from uuid import UUID

import pytest
from api_client import run_sql
from page_rows import READY, make_row

from portal.database.connection import transaction
from portal.database.models import Video
from portal.queue.enqueue import TRANSCODE_QUEUE, defer_completion, defer_transcode
from portal.queue.priority import EPOCH, completion_priority, first_pass_priority
from portal.videos.progress import fetch_progress
from portal.web.composition import WebContext

GB = 10**9
NOW = datetime(2026, 7, 1, tzinfo=UTC)
NUMBERS = count(1)


@pytest.fixture
async def queue(resources: WebContext) -> AsyncIterator[WebContext]:
    async with resources.queue.open_async():
        yield resources


async def waiting(resources: WebContext, size_bytes: int, since: datetime, **values: Any) -> Video:
    """A video that waits for its first pass, or, when it is ready, for its ladder."""
    async with transaction():
        row = {"size_bytes": size_bytes, "created_at": since, "transcode_job_id": -next(NUMBERS)}
        video = await make_row(**row, **values)
        if values:
            video.complete_job_id = await defer_completion(video, resources.queue)
        else:
            video.transcode_job_id = await defer_transcode(video, resources.queue)
        await video.save()
    return video


async def next_video(resources: WebContext) -> UUID | None:
    """The video of the job that a worker gets now."""
    manager = resources.queue.job_manager
    worker_id = await manager.register_worker()
    job = await manager.fetch_job(queues=[TRANSCODE_QUEUE], worker_id=worker_id)
    return UUID(str(job.task_kwargs["video_id"])) if job else None


async def test_batch_of_long_videos_does_not_hold_up_a_short_one(queue: WebContext) -> None:
    longs = [await waiting(queue, 2 * GB, NOW + timedelta(seconds=n)) for n in range(100)]
    # The only slot is taken by the first of them.
    assert await next_video(queue) == longs[0].id
    # What the batch may have waited for already: 60 of its first passes, ten minutes each.
    short = await waiting(queue, 10_000_000, NOW + timedelta(hours=10))
    assert await next_video(queue) == short.id
    assert [await next_video(queue) for _ in longs[1:]] == [video.id for video in longs[1:]]


async def test_stream_of_short_videos_does_not_hold_up_a_long_one_for_ever(
    queue: WebContext,
) -> None:
    long = await waiting(queue, 2 * GB, NOW)
    later = NOW + timedelta(days=2)
    shorts = [await waiting(queue, 1_000_000, later + timedelta(minutes=n)) for n in range(5)]
    assert await next_video(queue) == long.id
    assert await next_video(queue) == shorts[0].id


def test_videos_alike_are_served_in_the_order_they_came() -> None:
    first = first_pass_priority(GB, since=NOW)
    assert first > first_pass_priority(GB, since=NOW + timedelta(seconds=1))
    assert first > first_pass_priority(GB + 10_000_000, since=NOW)


def test_ladders_wait_for_every_first_pass_and_priorities_fit_the_queue() -> None:
    largest, last = 10**14, datetime(2050, 1, 1, tzinfo=UTC)
    assert completion_priority(1, since=EPOCH) < first_pass_priority(largest, since=NOW)
    assert completion_priority(100 * GB, since=last) > -(2**31)
    assert first_pass_priority(1, since=EPOCH) < 2**31


@pytest.mark.parametrize("seed", range(3))
async def test_place_in_the_queue_is_the_true_one(seed: int, queue: WebContext) -> None:
    rng = Random(seed)  # noqa: S311  # to be repeated, not to be secret
    videos = []
    for _ in range(12):
        since = NOW + timedelta(hours=rng.randrange(100))
        values = READY if rng.random() < 0.3 else {}
        videos.append(
            await waiting(queue, rng.choice([1, 50, 2000, 2000]) * 10**6, since, **values)
        )
    told = {}
    for video in videos:
        progress = (await fetch_progress([video.id]))[video.id]
        place = (progress.remaining or progress.work).queue_position
        assert place is not None
        told[place] = video.id
    assert sorted(told) == list(range(1, len(videos) + 1))
    for place in sorted(told):
        assert await next_video(queue) == told[place], f"place {place} of seed {seed}"


async def test_pass_tried_again_keeps_its_place(queue: WebContext) -> None:
    first, second = [await waiting(queue, GB, NOW + timedelta(hours=n)) for n in range(2)]
    assert await next_video(queue) == first.id
    await run_sql(
        queue.config.database_url,
        "SELECT procrastinate_retry_job_v2(id, now(), NULL, NULL, NULL) FROM procrastinate_jobs"
        " WHERE status = 'doing'",
    )
    assert await next_video(queue) == first.id
    assert await next_video(queue) == second.id
