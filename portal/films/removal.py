"""Removal of a deleted video's files from storage, by a job that is repeated until it succeeds.

A row of `Deletion` is written in the transaction that deletes the video, and is deleted once
storage has no more of its files. A worker may write files after the removal has listed them. So a
removal ends at `settles_at` at the earliest, and a worker that finds its video deleted queues
another one (`remove_again`).
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from portal.database.connection import server_time, transaction
from portal.database.models import Deletion, Publication, Version
from portal.errors import StorageUnavailable
from portal.films.jobs import REMOVAL
from portal.queue.jobs import RunAgain
from portal.queue.tools import Tools
from portal.storage.bucket import Storage
from portal.storage.calls import StorageRefused
from portal.storage.objects import output_root

logger = logging.getLogger(__name__)

# Time after which files that a stopped worker was sending are in storage.
SETTLE_S = 5


class Unsettled(RunAgain):
    """The removal has to run again: it took long, or more files may have been written."""

    pause_s = SETTLE_S


async def promise_removal(video_id: UUID, storage_keys: Sequence[str], *, is_written: bool) -> None:
    """Queue the removal of a video's files, in the transaction that deletes the video.

    `storage_keys` are the keys of its sources.

    `is_written` if a worker may be writing files at this moment.
    """
    now = await server_time()
    await Deletion.create(
        video_id=video_id,
        storage_keys=list(storage_keys),
        job_id=await REMOVAL.enqueue(video_id=video_id),
        settles_at=now + timedelta(seconds=SETTLE_S) if is_written else now,
    )


async def remove_again(video_id: UUID, storage_key: str) -> None:
    """Queue another removal of a deleted video's files: some may have been written since.

    Does nothing if the video exists: a worker may find its version deleted, but not the video.
    """
    async with transaction():
        if await Publication.exists(id=video_id):
            return
        settles_at = await server_time() + timedelta(seconds=SETTLE_S)
        if not await Deletion.filter(video_id=video_id).update(settles_at=settles_at):
            await promise_removal(video_id, [storage_key], is_written=True)


async def remove_files(video_id: UUID, tools: Tools) -> None:
    """Remove all files of a deleted video. May run any number of times.

    Sources that another video shares are kept.

    Raises:
        Unsettled: the removal has to run again.
        StorageUnavailable: some files could not be removed.
    """
    pending = await Deletion.get_or_none(video_id=video_id)
    if pending is None:
        return
    try:
        async with asyncio.timeout(REMOVAL.longest_s):
            removed = await remove_below(output_root(video_id), tools.storage)
            if sources := await _unused_sources(pending.storage_keys):
                await tools.storage.delete_many(sources)
    except TimeoutError as exc:
        raise Unsettled from exc
    unchanged = Deletion.filter(video_id=video_id, settles_at=pending.settles_at)
    if not await unchanged.filter(settles_at__lte=await server_time()).delete():
        raise Unsettled
    logger.info("Files removed", extra={"action": "files_removed", "objects": removed})


async def remove_source(version: Version, storage: Storage) -> None:
    """Remove the file of a version that can't become current, unless another version has it."""
    sharing = Version.filter(storage_key=version.storage_key).exclude(id=version.id)
    if not await sharing.exists():
        await storage.delete(version.storage_key)


async def _unused_sources(storage_keys: Sequence[str]) -> list[str]:
    """Return the keys of sources that no version of any video has."""
    versions = await Version.filter(storage_key__in=list(storage_keys))
    used = {version.storage_key for version in versions}
    return [key for key in storage_keys if key not in used]


async def remove_below(prefix: str, storage: Storage) -> int:
    """Remove every object whose key begins with a prefix, and return their number.

    Raises `StorageUnavailable`, also if storage still lists removed objects.
    """
    removed = 0
    previous: list[str] = []
    while keys := await storage.list_some(prefix):
        if keys == previous:
            raise StorageUnavailable
        await storage.delete_many(keys)
        removed += len(keys)
        previous = keys
    return removed


@contextmanager
def logging_refusals() -> Iterator[None]:
    """Log objects that storage refuses to delete, and continue with the others."""
    try:
        yield
    except (StorageRefused, StorageUnavailable) as exc:
        if isinstance(exc, StorageUnavailable) and not isinstance(exc.__cause__, StorageRefused):
            raise
        logger.warning(
            "Storage refused a deletion", exc_info=exc, extra={"action": "janitor_refused"}
        )
