"""Deleting a video: its record at once, its files by a job that does not give up.

The row of `Deletion` is the promise that the files go; it is written in the transaction that
removes the record, and goes when storage holds nothing more of the video. A transcode under way
is aborted; should its worker have written something after the removal had looked, the removal
looks again (`settles_at`), and a worker that finds its video gone asks for another look.

Not removed here: what arrives long after, by an address that was still valid. The row of
`Tombstone` has the janitor look again when none can be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tortoise.expressions import RawSQL

from portal.database.connection import server_time, transaction
from portal.database.models import (
    Attempt,
    Deletion,
    PosterRequest,
    PosterState,
    Tombstone,
    Upload,
    Video,
)
from portal.database.rows import lock_video
from portal.errors import StorageUnavailable, VideoNotFound
from portal.queue.enqueue import defer_removal
from portal.storage.keys import output_root

if TYPE_CHECKING:
    from procrastinate import App as Queue
    from psycopg import AsyncConnection

    from portal.storage.bucket import Storage

logger = logging.getLogger(__name__)

# What a worker had sent when it was stopped is in storage by then.
SETTLE_S = 5
# A removal shows at its start and with each batch that it lives; storage has less for one.
LEASE_S = 30
BATCH_TIMEOUT_S = 20

LEASE_END = RawSQL(f"now() + interval '{LEASE_S} seconds'")
SETTLE_END = RawSQL(f"now() + interval '{SETTLE_S} seconds'")


class Unsettled(Exception):
    """Everything found was removed, but someone may have written more since."""


async def delete_video(video_id: UUID, *, queue: Queue) -> None:
    """Delete a video's record, and have its files removed; both or neither.

    Raises `VideoNotFound` when there is no such video, or someone else has just deleted it.
    """
    async with transaction() as connection:
        video = await lock_video(video_id)
        if video is None:
            raise VideoNotFound
        is_written = await _stop_work(video, queue, connection)
        await _promise(video_id, video.storage_key, queue, connection, is_written=is_written)
        # Attempts, renditions and a poster asked for go with it.
        await video.delete()
        await Upload.filter(key=video.storage_key).delete()
        await Tombstone.create(
            video_id=video_id, storage_key=video.storage_key, deleted_at=await server_time()
        )
    logger.info("Video deleted", extra={"action": "delete", "video_id": str(video_id)})


async def was_deleted(video_id: UUID) -> bool:
    """Whether there was a video with this id, for as long as that is remembered."""
    return await Tombstone.exists(video_id=video_id)


async def look_again(video_id: UUID, storage_key: str, *, queue: Queue) -> None:
    """Have the files of a deleted video removed once more: some may have been written since."""
    async with transaction() as connection:
        pending = await Deletion.filter(video_id=video_id).update(settles_at=SETTLE_END)
        if not pending:
            await _promise(video_id, storage_key, queue, connection, is_written=True)


async def remove_files(video_id: UUID, *, storage: Storage) -> None:
    """Remove everything that storage holds of a deleted video. May run any number of times.

    Raises:
        Unsettled: it has to be done again, since someone may have written more meanwhile.
        StorageUnavailable: not everything could be removed.
    """
    pending = await Deletion.get_or_none(video_id=video_id)
    if pending is None:
        return
    removed, lease = 0, Deletion.filter(video_id=video_id)
    # It may have run out while the job waited.
    await lease.update(lease_expires_at=LEASE_END)
    async for count in remove_below(output_root(video_id), storage):
        removed += count
        await lease.update(lease_expires_at=LEASE_END)
    async with _time_limit():
        await storage.delete(pending.storage_key)
    unchanged = Deletion.filter(video_id=video_id, settles_at=pending.settles_at)
    if not await unchanged.filter(settles_at__lte=await server_time()).delete():
        raise Unsettled
    logger.info("Files removed", extra={"action": "files_removed", "objects": removed})


async def _promise(
    video_id: UUID,
    storage_key: str,
    queue: Queue,
    connection: AsyncConnection[Any],
    *,
    is_written: bool,
) -> None:
    now = await server_time()
    await Deletion.create(
        video_id=video_id,
        storage_key=storage_key,
        job_id=await defer_removal(video_id, queue, connection),
        settles_at=now + timedelta(seconds=SETTLE_S) if is_written else now,
        lease_expires_at=now + timedelta(seconds=LEASE_S),
    )


async def _stop_work(video: Video, queue: Queue, connection: AsyncConnection[Any]) -> bool:
    """Take a video's jobs back; whether someone may be writing files of it at this moment."""
    poster = await PosterRequest.get_or_none(video_id=video.id)
    job_ids = {video.transcode_job_id, video.complete_job_id, poster.job_id if poster else None}
    for job_id in job_ids - {None}:
        await queue.job_manager.cancel_job_by_id_async(job_id, abort=True, connection=connection)
    is_cut = poster is not None and poster.state is PosterState.WORKING
    return is_cut or await Attempt.filter(video_id=video.id, outcome=None).exists()


async def remove_below(prefix: str, storage: Storage) -> AsyncIterator[int]:
    """Remove every object whose key begins with this; yields how many after each batch.

    Raises `StorageUnavailable`, also when storage kept some of them.
    """
    previous: list[str] = []
    while True:
        async with _time_limit():
            keys = await storage.list_some(prefix)
            if not keys:
                return
            if keys == previous:
                # Storage says that they are gone, and lists them: a pause may help.
                raise StorageUnavailable
            await storage.delete_many(keys)
        previous = keys
        yield len(keys)


@asynccontextmanager
async def _time_limit() -> AsyncIterator[None]:
    """Storage's own limits, with its retries, are longer than the lease."""
    try:
        async with asyncio.timeout(BATCH_TIMEOUT_S):
            yield
    except TimeoutError as exc:
        raise StorageUnavailable from exc
