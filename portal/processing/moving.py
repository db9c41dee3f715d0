"""What was made of a video goes elsewhere once the video has become private.

A signed address can't be taken back before it expires, and one of a CDN never expires. So what
lies where such addresses lead is copied, within storage, to the folder of an attempt of its own.
The number of that can't be guessed: who knows where the video lay does not know where it lies. One
transaction leads players there, and then the old folders are emptied.

A pass that completes the ladder goes on meanwhile; what it makes was never seen by others, and
stays where it is. The row of `Move` is the promise that this is done to the end.
"""

import asyncio
import logging
import posixpath
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from tortoise.queryset import QuerySet

from portal.concurrency.task_group import task_group
from portal.database.connection import server_time, transaction
from portal.database.lease import LeaseLost, first_end, renew
from portal.database.models import Attempt, Rendition, Video
from portal.database.move_models import Move
from portal.database.rows import lock_video
from portal.database.states import Outcome, RenditionState, VideoStatus, Visibility
from portal.errors import StorageUnavailable
from portal.processing.masters import put_master, read_master, write_master
from portal.processing.references import named_playlists, unused_in_attempts
from portal.processing.removal import Unsettled, remove_again, remove_below
from portal.processing.tools import Tools
from portal.queue.app import Queue
from portal.queue.enqueue import defer_move
from portal.storage.bucket import Storage
from portal.storage.errors import ObjectMissing
from portal.storage.keys import output_prefix
from portal.storage.listing import entries_of
from portal.storage.objects import StoredObject
from portal.transcoding.packaging.hls import sign_playlist
from portal.transcoding.packaging.master import MASTER_NAME

logger = logging.getLogger(__name__)

# Renewed with each batch; storage has less time for one.
LEASE_S = 75
BATCH = 16
BATCH_TIMEOUT_S = 60
# How many numbers a folder's is chosen of: too many to be tried, and programs read it exactly.
NUMBERS = 2**44
# What a copy depends on: once one of these has changed it is looked over again.
COPIED_STATE = (
    "status",
    "visibility",
    "published_attempt",
    "poster_version",
    "has_poster",
    "has_storyboard",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """A move under its lease, to the folder of this number; None if there is nothing to copy."""

    video: Video
    number: int | None
    job_id: int

    @property
    def held(self) -> QuerySet[Move]:
        """Its row, unless it is void by now."""
        found = Move.filter(video_id=self.video.id, job_id=self.job_id)
        return found.filter(attempt_number=self.number)


async def request_move(video_id: UUID, queue: Queue) -> None:
    """Ask for it, in the transaction that makes a video private; an earlier request is void."""
    values = {
        "attempt_number": None,
        "job_id": await defer_move(video_id, queue),
        "lease_expires_at": await first_end(LEASE_S),
    }
    await Move.update_or_create(values, video_id=video_id)


async def move_output(video_id: UUID, tools: Tools) -> None:
    """Carry out what was asked for. May run any number of times; a void request does nothing.

    Raises:
        Unsettled: what is left is to be removed a moment later.
        StorageUnavailable: not everything could be copied or removed.
    """
    moving = await _begin(video_id, tools.worker)
    if moving is None:
        return
    try:
        await _carry_out(moving, tools.storage)
    except LeaseLost:
        logger.info("Move is void", extra={"action": "move_void"})
    finally:
        if not await Video.exists(id=video_id):
            await remove_again(video_id, moving.video.storage_key, queue=tools.queue)


async def _begin(video_id: UUID, worker: str) -> Moving | None:
    async with transaction():
        video = await lock_video(video_id)
        move = await Move.get_or_none(video_id=video_id)
        if video is None or move is None:
            return None
        if move.attempt_number is None and _can_be_moved(video):
            move.attempt_number = await _choose_folder(video, worker)
        move.lease_expires_at = await first_end(LEASE_S)
        await move.save()
    return Moving(video=video, number=move.attempt_number, job_id=move.job_id)


def _can_be_moved(video: Video) -> bool:
    return video.status is VideoStatus.READY and video.visibility is Visibility.PRIVATE


async def _choose_folder(video: Video, worker: str) -> int:
    """An attempt that made nothing, so that whatever looks after attempts knows of the folder."""
    last = await Attempt.filter(video_id=video.id).order_by("-number").first()
    number = (last.number if last else 0) + 1 + secrets.randbelow(NUMBERS)
    now = await server_time()
    await Attempt.create(
        video_id=video.id,
        number=number,
        worker=worker,
        stage="moving",
        # Of a pass that is gone on with after it.
        percent=last.percent if last else 0.0,
        lease_expires_at=now,
        started_at=now,
        finished_at=now,
        outcome=Outcome.MOVED,
    )
    return number


async def _carry_out(moving: Moving, storage: Storage) -> None:
    video = await _present(moving)
    while moving.number and _can_be_moved(video) and video.published_attempt != moving.number:
        places = await _copy(video, moving, moving.number, storage)
        if await _switch(video, moving, moving.number, places):
            logger.info("Files moved", extra={"action": "moved", "attempt": moving.number})
            # Who was led to a file a moment ago still gets it.
            raise Unsettled
        video = await _present(moving)
    if video.published_attempt is not None:
        await _update_master(video, storage)
    await _remove_unused(moving, storage)
    await moving.held.delete()


async def _present(moving: Moving) -> Video:
    await renew(moving.held, LEASE_S)
    video = await Video.get_or_none(id=moving.video.id)
    if video is None:
        raise LeaseLost
    return video


async def _copy(video: Video, moving: Moving, number: int, storage: Storage) -> Mapping[str, int]:
    """Copy what players may ask for, the master playlist last.

    What an earlier try copied is not copied again. Returns the numbers of the attempts that the
    renditions lay with, by name.
    """
    master = await read_master(video, storage)
    published = video.published_attempt or 0
    places = await _places(video, master)
    old, new = output_prefix(video.id, published), output_prefix(video.id, number)
    for name, place in places.items():
        folder = f"{output_prefix(video.id, place)}{name}/"
        await _copy_folder(folder, f"{new}{name}/", moving, storage)
    await _copy_folder(old, new, moving, storage)

    def relocated(uri: str) -> str:
        return posixpath.normpath(posixpath.join(str(published), uri)).partition("/")[2]

    await write_master(storage, new, sign_playlist(master, relocated))
    return places


async def _places(video: Video, master: str) -> dict[str, int]:
    """With which attempts the renditions lie that are complete, or that the master names."""
    rows = await Rendition.filter(video_id=video.id, state=RenditionState.COMPLETE)
    places = {row.name: row.attempt_number or 0 for row in rows}
    for playlist in named_playlists(master, video.published_attempt or 0):
        number, name, _ = playlist.split("/")
        places.setdefault(name, int(number))
    return places


async def _copy_folder(source: str, target: str, moving: Moving, storage: Storage) -> None:
    """Copy what lies directly in a folder, but for a master playlist."""
    there = {it.key: it.size_bytes for it in await _files(target, storage)}
    sizes = {it.key.removeprefix(source): it.size_bytes for it in await _files(source, storage)}
    missing = [it for it in sizes if it != MASTER_NAME and there.get(target + it) != sizes[it]]
    for begin in range(0, len(missing), BATCH):
        await renew(moving.held, LEASE_S)
        try:
            async with asyncio.timeout(BATCH_TIMEOUT_S), task_group() as tasks:
                for name in missing[begin : begin + BATCH]:
                    tasks.create_task(_copy_file(source + name, target + name, storage))
        except TimeoutError as exc:
            raise StorageUnavailable from exc


async def _files(folder: str, storage: Storage) -> list[StoredObject]:
    return [it async for it in entries_of(folder, storage) if isinstance(it, StoredObject)]


async def _copy_file(source_key: str, key: str, storage: Storage) -> None:
    # A poster may have been replaced since it was listed.
    with suppress(ObjectMissing):
        await storage.copy(source_key, key)


async def _switch(seen: Video, moving: Moving, number: int, places: Mapping[str, int]) -> bool:
    """Have players led to the copies; False if something was changed since that was copied."""
    async with transaction():
        video = await lock_video(seen.id)
        await renew(moving.held, LEASE_S)
        if any(getattr(video, name) != getattr(seen, name) for name in COPIED_STATE):
            return False
        for name, place in places.items():
            await Rendition.filter(
                video_id=seen.id, name=name, attempt_number=place, state=RenditionState.COMPLETE
            ).update(attempt_number=number)
        await Video.filter(id=seen.id).update(published_attempt=number)
        # Whatever is written into the old folders from now on is in use no more.
        await Attempt.filter(video_id=seen.id).exclude(number=number).update(is_swept=False)
    return True


async def _update_master(video: Video, storage: Storage) -> None:
    """Have what was completed meanwhile join the master playlist.

    One that names what no row knows, such as the sound of old videos, is left as it was copied.
    """
    named = named_playlists(await read_master(video, storage), video.published_attempt or 0)
    known = {row.name for row in await Rendition.filter(video_id=video.id)}
    if {playlist.split("/")[1] for playlist in named} <= known:
        await put_master(video, storage)


async def _remove_unused(moving: Moving, storage: Storage) -> None:
    """Remove what nothing leads to any more; what a pass is making stays."""
    removed = 0
    async for prefix in unused_in_attempts(moving.video.id, storage):
        async for count in remove_below(prefix, storage):
            removed += count
            await renew(moving.held, LEASE_S)
    logger.info("Old files removed", extra={"action": "move_done", "objects": removed})
