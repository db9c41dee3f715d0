"""What was made of a video that becomes private is moved: all of it, to the end, whatever comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import cast

import pytest
from aged_videos import hence, tidy, video_with_history
from api_client import Client, run_sql
from moved_videos import (
    PRIVATE,
    PUBLIC,
    BreakingStorage,
    PausedStorage,
    finished_video,
    given_out,
    is_moving,
    move,
    plays,
    set_access,
    statuses,
    tools,
)
from stored_objects import stored, with_own_bucket

from portal.database.models import Attempt, Video
from portal.database.move_models import Move
from portal.database.states import Outcome
from portal.errors import StorageUnavailable
from portal.maintenance.consistency.compare import compare
from portal.maintenance.consistency.findings import Difference
from portal.processing import masters, removal
from portal.processing.moving import move_output
from portal.processing.removal import Unsettled
from portal.storage.bucket import Storage
from portal.storage.keys import output_prefix
from portal.videos.deletion import delete_video
from portal.web.composition import WebContext


@pytest.fixture
async def environ(environ: dict[str, str]) -> dict[str, str]:
    """A bucket of its own, too: what other tests leave in theirs would be found."""
    return await with_own_bucket(environ)


@pytest.fixture
async def video(resources: WebContext) -> Video:
    return await finished_video(resources)


@pytest.fixture
async def moving(video: Video, resources: WebContext) -> AsyncIterator[Video]:
    """One that has just become private. Afterwards it is moved, and nothing is left over."""
    before = await plays(video, resources.storage)
    files = await names(video, resources)
    await set_access(video, PRIVATE, resources)
    yield video
    assert await plays(video, resources.storage) == before
    assert await names(video, resources) == files
    assert not await is_moving(video)
    async with resources.queue.open_async():
        report = await compare(
            resources.config, storage=resources.storage, queue=resources.queue, now=hence(days=9)
        )
    # It was never uploaded, and nobody runs its jobs.
    assert set(report.counts) <= {Difference.SOURCE_MISSING, Difference.WORK_ABANDONED}


async def names(video: Video, resources: WebContext) -> list[str]:
    """What is stored of a video, by the names below its attempts."""
    keys = await stored(resources.storage, video.id)
    return sorted(key.split("/", 3)[3] for key in keys)


async def folders(video: Video, resources: WebContext) -> set[int]:
    """The attempts that something is stored of."""
    return {int(key.split("/")[2]) for key in await stored(resources.storage, video.id)}


async def test_addresses_given_out_are_dead_and_the_video_plays(
    client: Client, resources: WebContext, moving: Video
) -> None:
    await set_access(moving, PUBLIC, resources)
    before = await given_out(client, moving)
    kinds = {address.partition("?")[0].rpartition(".")[2] for address in before}
    assert kinds == {"m4s", "mp4", "jpg"}
    assert await statuses(before) == {200}
    await set_access(moving, PRIVATE, resources)
    await move(moving, resources)
    assert await statuses(before) <= {403, 404}
    video = await Video.get(id=moving.id)
    after = await given_out(client, video)
    assert len(after) == len(before)
    assert await statuses(after) == {200}
    assert await folders(video, resources) == {video.published_attempt}


async def test_folder_can_not_be_guessed(resources: WebContext, moving: Video) -> None:
    await move(moving, resources)
    made = await Attempt.get(video_id=moving.id, outcome=Outcome.MOVED)
    assert made.number > 2**32
    assert (await Video.get(id=moving.id)).published_attempt == made.number


@pytest.mark.parametrize("error", [asyncio.CancelledError(), StorageUnavailable()], ids=type)
async def test_move_that_is_broken_off_anywhere_goes_on(
    resources: WebContext, moving: Video, error: BaseException
) -> None:
    broken, whole = 0, await plays(moving, resources.storage)
    for after in range(99):
        storage = BreakingStorage(resources.storage, error, after=after)
        with suppress(Unsettled, asyncio.CancelledError, StorageUnavailable):
            await move_output(moving.id, tools(resources, storage=storage))
        assert await plays(moving, resources.storage) == whole
        broken += storage.left < 0
        if not await is_moving(moving):
            break
    assert broken > 3


async def test_move_copies_nothing_twice(resources: WebContext, moving: Video) -> None:
    broken = BreakingStorage(resources.storage, StorageUnavailable(), after=5)
    with pytest.raises(StorageUnavailable):
        await move_output(moving.id, tools(resources, storage=broken))
    number = (await Move.get(video_id=moving.id)).attempt_number
    copied = set(await resources.storage.list_some(output_prefix(moving.id, number or 0)))
    copies: list[str] = []

    class Noting(BreakingStorage):
        async def copy(self, source_key: str, key: str) -> None:
            copies.append(key)
            await self._storage.copy(source_key, key)

    await move(moving, resources, storage=Noting(resources.storage, broken._error, after=999))
    assert copies
    assert len(set(copies)) == len(copies)
    assert copied.isdisjoint(copies)


async def test_video_that_is_public_again_stays_where_it_is(
    client: Client, resources: WebContext, moving: Video
) -> None:
    await set_access(moving, PUBLIC, resources)
    before = await given_out(client, moving)
    await set_access(moving, PRIVATE, resources)
    storage = PausedStorage(resources.storage, "copy")
    running = asyncio.create_task(move(moving, resources, storage=storage))
    await storage.is_asked.wait()
    await set_access(moving, PUBLIC, resources)
    storage.may_go_on.set()
    await running
    assert await statuses(before) == {200}
    assert (await Video.get(id=moving.id)).published_attempt == moving.published_attempt
    assert await folders(moving, resources) == {moving.published_attempt}


async def test_addresses_given_out_in_between_are_dead_too(
    client: Client, resources: WebContext, moving: Video
) -> None:
    storage = PausedStorage(resources.storage, "copy")
    running = asyncio.create_task(move(moving, resources, storage=storage))
    await storage.is_asked.wait()
    await set_access(moving, PUBLIC, resources)
    between = await given_out(client, moving)
    await set_access(moving, PRIVATE, resources)
    storage.may_go_on.set()
    await running
    # That move was void.
    assert await statuses(between) == {200}
    await move(moving, resources)
    assert await statuses(between) <= {403, 404}


async def test_public_and_private_again_moves_again(
    client: Client, resources: WebContext, moving: Video
) -> None:
    await move(moving, resources)
    await set_access(moving, PUBLIC, resources)
    video = await Video.get(id=moving.id)
    again = await given_out(client, video)
    assert await statuses(again) == {200}
    await set_access(moving, PRIVATE, resources)
    await move(moving, resources)
    assert await statuses(again) <= {403, 404}


async def test_video_deleted_meanwhile_leaves_nothing(resources: WebContext, video: Video) -> None:
    await set_access(video, PRIVATE, resources)
    storage = PausedStorage(resources.storage, "copy")
    running = asyncio.create_task(move(video, resources, storage=storage))
    await storage.is_asked.wait()
    await delete_video(video.id, queue=resources.queue)
    with pytest.raises(Unsettled):
        await removal.remove_files(video.id, storage=resources.storage)
    storage.may_go_on.set()
    await running
    # A copy may have arrived after the removal had listed: it is carried out once more.
    with pytest.raises(Unsettled):
        await removal.remove_files(video.id, storage=resources.storage)
    await run_sql(resources.config.database_url, "UPDATE deletions SET settles_at = now()")
    await removal.remove_files(video.id, storage=resources.storage)
    assert await stored(resources.storage, video.id) == []


async def test_master_that_a_slow_pass_writes_lies_where_the_video_does(
    resources: WebContext, moving: Video
) -> None:
    storage = PausedStorage(resources.storage, "put", "master.m3u8")
    writing = asyncio.create_task(masters.put_master(moving, cast("Storage", storage)))
    await storage.is_asked.wait()
    await move(moving, resources)
    storage.may_go_on.set()
    await writing
    video = await Video.get(id=moving.id)
    assert await folders(moving, resources) == {video.published_attempt}


async def test_janitor_leaves_a_move_alone(resources: WebContext, moving: Video) -> None:
    storage = BreakingStorage(resources.storage, StorageUnavailable(), after=5)
    with pytest.raises(StorageUnavailable):
        await move_output(moving.id, tools(resources, storage=storage))
    before = await stored(resources.storage, moving.id)
    await tidy(resources, now=hence(days=3))
    assert await stored(resources.storage, moving.id) == before
    await move(moving, resources)
    await tidy(resources, now=hence(days=3))


async def test_sound_that_only_the_master_knows_of_is_moved(resources: WebContext) -> None:
    video, used, _ = await video_with_history(resources)
    await set_access(video, PRIVATE, resources)
    await move(video, resources)
    number = (await Video.get(id=video.id)).published_attempt or 0
    wanted = sorted({output_prefix(video.id, number) + key.split("/", 3)[3] for key in used})
    assert sorted(await stored(resources.storage, video.id)) == wanted
    text = (await resources.storage.get(output_prefix(video.id, number) + "master.m3u8")).decode()
    assert "\naudio/playlist.m3u8" in text
    assert "\n720p/playlist.m3u8" in text


async def test_video_that_is_not_ready_has_only_what_nobody_needs_removed(
    resources: WebContext,
) -> None:
    video, used, unused = await video_with_history(resources)
    await Video.filter(id=video.id).update(published_attempt=None, status="processing")
    await set_access(video, PRIVATE, resources)
    await move(video, resources)
    left = await stored(resources.storage, video.id)
    assert set(left).isdisjoint(unused)
    assert {key.split("/")[3] for key in left} == {"360p", "720p"}
    assert set(left) <= set(used)
