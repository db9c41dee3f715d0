"""Uploads in parts: start, get, sign a part, complete, discard.

Storage knows what has arrived; the database records which multipart upload belongs to a key, and
the size announced for it. No transaction spans a call to storage: storage is changed first, then
the row, on condition that it is as it was read; otherwise the change in storage is undone. Every
call may be repeated. An upload is found by the unique id in its key.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from time import monotonic
from uuid import UUID

from portal import errors
from portal.database.connection import execute, fetch_rows, transaction
from portal.storage.bucket import Storage
from portal.storage.calls import MultipartMissing, ObjectMissing, PartsRefused
from portal.storage.objects import (
    ObjectInfo,
    StoredPart,
    missing_parts,
    part_count,
    size_of_part,
    upload_id,
    whole_parts,
)
from portal.telemetry import metrics
from portal.uploads.quotas import NO_QUOTA, Quota, require_start

logger = logging.getLogger(__name__)

# Some servers forget a multipart upload a moment before its object shows.
SETTLE_TIMEOUT_S = 2
SETTLE_INTERVAL_S = 0.2
START_TRIES = 5
MAX_NAMED = 10
PART_NUMBER = re.compile(r"[1-9][0-9]{0,4}")
# PostgreSQL raises errors for some texts: NUL, lone surrogates.
UPLOAD_ID = re.compile(r"[0-9a-f]{32}")

UPLOAD = """
SELECT key, owner_id, content_type, multipart_id, size_bytes, is_discarded,
       EXISTS (SELECT FROM videos WHERE storage_key = key) AS has_video
FROM uploads WHERE substr(key, 8, 32) = %s
"""
# Makes creations of a video and changes of its upload wait for each other.
LOCK = "SELECT 1 FROM uploads WHERE substr(key, 8, 32) = %s FOR NO KEY UPDATE"
RECORD_START = """
UPDATE uploads SET multipart_id = %s, size_bytes = %s, active_at = now() WHERE key = %s
"""
RECORD_SIZE = "UPDATE uploads SET size_bytes = %s WHERE key = %s"
# Parts are signed many at once; a minute more or less is nothing to a day.
RECORD_ACTIVITY = """
UPDATE uploads SET active_at = now()
WHERE substr(key, 8, 32) = %s AND NOT is_discarded
  AND greatest(created_at, active_at) < now() - interval '1 minute'
"""
RECORD_END = "UPDATE uploads SET multipart_id = NULL WHERE key = %s AND multipart_id = %s"
DISCARD = "UPDATE uploads SET is_discarded = true WHERE key = %s"
IS_IDLE = "SELECT 1 FROM uploads WHERE key = %s AND greatest(created_at, active_at) < %s"
DELETE_DISCARDED = """
DELETE FROM uploads WHERE key = %s AND is_discarded AND greatest(created_at, active_at) < %s
"""


@dataclass(frozen=True, slots=True)
class UploadRow:
    """What the database holds of an upload; see `models.Upload`."""

    key: str
    owner_id: UUID | None
    content_type: str
    multipart_id: str | None
    size_bytes: int | None
    is_discarded: bool
    has_video: bool


class UploadState(StrEnum):
    """Whether storage has nothing of an upload, maybe parts, or the whole file."""

    PENDING = "pending"
    UPLOADING = "uploading"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class UploadView:
    """The state of an upload. A pending one has no size; `parts` are those stored in full."""

    key: str
    state: UploadState
    size_bytes: int | None = None
    parts: tuple[StoredPart, ...] = ()

    @property
    def upload_id(self) -> str:
        return upload_id(self.key)


async def find(upload_id: str) -> UploadRow | None:
    """The upload with this id, discarded or not; None for an unknown one."""
    rows = await fetch_rows(UPLOAD, _valid_id(upload_id))
    return UploadRow(**rows[0]) if rows else None


async def lock(upload_id: str) -> UploadRow | None:
    """As `find`; the upload is kept as it is until the end of the transaction."""
    await execute(LOCK, _valid_id(upload_id))
    # A statement of its own, so that it sees what was committed while waiting for the lock.
    return await find(upload_id)


async def start(
    key: str,
    size_bytes: int,
    *,
    storage: Storage,
    owner_id: UUID | None = None,
    quota: Quota = NO_QUOTA,
) -> tuple[UploadView, bool]:
    """Start an upload in parts, or find the one that was started with the same size.

    Returns it, and whether this call started it.

    Raises:
        UploadNotIssued: the portal did not issue this key.
        KeyAlreadyUsed: the key belongs to a video.
        UploadAlreadyStarted: with another size.
        StorageQuotaExceeded: the account has no room for it.
    """
    require = partial(require_start, owner_id, quota, key=key, size_bytes=size_bytes)
    for _ in range(START_TRIES):
        row = await _touched(upload_id(key))
        if row.key != key:
            raise errors.UploadNotIssued
        _require_unused(row)
        found = await _view(row, storage)
        if found.state is not UploadState.PENDING:
            if found.size_bytes != size_bytes:
                raise errors.UploadAlreadyStarted
            return found, False
        if await _create(row, size_bytes, storage, require):
            metrics.UPLOAD_STARTED.inc()
            logger.info("Upload started", extra={"action": "start_upload", "key": key})
            return UploadView(key, UploadState.UPLOADING, size_bytes), True
    raise errors.UploadAlreadyStarted(
        "Others keep starting and ending this upload. Ask for a new key."
    )


async def grow(key: str, size_bytes: int, *, owner_id: UUID | None, quota: Quota) -> None:
    """Announce more of an upload than it was started with; or `StorageQuotaExceeded`."""
    async with transaction():
        await require_start(owner_id, quota, key=key, size_bytes=size_bytes)
        await execute(RECORD_SIZE, size_bytes, key)


async def get(upload_id: str, *, storage: Storage) -> UploadView:
    """The upload as storage has it; `UploadNotIssued` for an unknown id."""
    return await _view(_issued(await find(upload_id)), storage)


async def sign_part(upload_id: str, number: str, *, storage: Storage, url_ttl_s: int) -> str:
    """Address to PUT a part to.

    Raises:
        UploadNotStarted: no upload in parts is under way.
        PartNotFound: the number is none of 1 to the number of parts.
    """
    row = await _touched(upload_id)
    if row.multipart_id is None or row.size_bytes is None:
        raise errors.UploadNotStarted
    if not PART_NUMBER.fullmatch(number) or int(number) > part_count(row.size_bytes):
        raise errors.PartNotFound
    return await storage.public.presign_part(
        row.key,
        row.multipart_id,
        int(number),
        size_bytes=size_of_part(int(number), row.size_bytes),
        ttl_s=url_ttl_s,
    )


async def complete(upload_id: str, *, storage: Storage) -> UploadView:
    """Make the file of its parts. Repeated and simultaneous calls give the same answer.

    Raises:
        UploadNotStarted: nothing was ever uploaded.
        PartsMissing: parts are not there, or not with their right size.
        UploadGone: storage knows neither the parts nor the file any more.
        UploadSizeDiffers: the file in storage is not as large as announced.
    """
    row = await _touched(upload_id)
    if row.multipart_id is None:
        stored = await _object(row.key, storage)
    else:
        stored = await _assemble(row, row.multipart_id, storage)
        if stored is not None:
            await _record_end(row)
            metrics.UPLOAD_COMPLETED.inc()
    if stored is None:
        raise errors.UploadNotStarted if row.size_bytes is None else errors.UploadGone
    if row.size_bytes not in (None, stored.size_bytes):
        raise errors.UploadSizeDiffers
    logger.info("Upload completed", extra={"action": "complete_upload", "key": row.key})
    return UploadView(row.key, UploadState.STORED, stored.size_bytes)


async def give_up_parts(upload_id: str, *, storage: Storage) -> None:
    """Remove the parts that have arrived; the upload may be started again, with any size."""
    row = _issued(await find(upload_id))
    if row.multipart_id is not None:
        await storage.multiparts.abort(row.key, row.multipart_id)
        await _record_end(row)


async def discard(upload_id: str, *, storage: Storage) -> None:
    """Discard an upload and remove what has arrived of it; `KeyAlreadyUsed` if a video has it.

    Its key is never used again, so that a late removal hits nothing else, and a removal that an
    outage broke off may be repeated.
    """
    async with transaction():
        row = await lock(upload_id)
        if row is None:
            raise errors.UploadNotIssued
        _require_unused(row)
        await execute(DISCARD, row.key)
    await _remove(row, storage)


async def discard_abandoned(key: str, *, idle_since: datetime, storage: Storage) -> bool:
    """Discard an upload that has been idle since then, and delete its row.

    Returns False when it has been active, or a video was made of it. One discarded before is
    removed again, and its row kept until no address signed for it can be valid.
    """
    async with transaction():
        row = await lock(upload_id(key))
        if row is None or row.has_video:
            return False
        if not row.is_discarded and not await fetch_rows(IS_IDLE, key, idle_since):
            return False
        await execute(DISCARD, key)
    await _remove(row, storage)
    await execute(DELETE_DISCARDED, key, idle_since)
    return True


async def _touched(upload_id: str) -> UploadRow:
    """The upload, which counts as active now; raises as `_issued`."""
    # Before the row is read: either the janitor sees this, or this sees the janitor's change.
    await execute(RECORD_ACTIVITY, _valid_id(upload_id))
    return _issued(await find(upload_id))


def _valid_id(upload_id: str) -> str:
    return upload_id if UPLOAD_ID.fullmatch(upload_id) else ""


def _issued(row: UploadRow | None) -> UploadRow:
    """The upload. Raises `UploadNotIssued` for an unknown or discarded one."""
    if row is None:
        raise errors.UploadNotIssued
    if row.is_discarded:
        raise errors.UploadNotIssued(
            "This upload was discarded. Get a key from POST /api/videos/presign."
        )
    return row


def _require_unused(row: UploadRow) -> None:
    if row.has_video:
        raise errors.KeyAlreadyUsed("This key belongs to a video. Ask for a new upload address.")


async def _remove(row: UploadRow, storage: Storage) -> None:
    # In this order: an aborted upload can no longer be completed into an object.
    if row.multipart_id is not None:
        await storage.multiparts.abort(row.key, row.multipart_id)
    await storage.delete(row.key)
    await _record_end(row)
    metrics.UPLOAD_DISCARDED.inc()
    logger.info("Upload discarded", extra={"action": "discard_upload", "key": row.key})


async def _record_end(row: UploadRow) -> None:
    """Record that the multipart upload has ended: it was completed or removed."""
    await execute(RECORD_END, row.key, row.multipart_id)


async def _view(row: UploadRow, storage: Storage) -> UploadView:
    if row.multipart_id is not None and row.size_bytes is not None:
        parts = await _parts(row.key, row.multipart_id, storage)
        if parts is not None:
            whole = tuple(whole_parts(parts, row.size_bytes))
            return UploadView(row.key, UploadState.UPLOADING, row.size_bytes, whole)
    stored = await _object(row.key, storage)
    if stored is None:
        return UploadView(row.key, UploadState.PENDING)
    return UploadView(row.key, UploadState.STORED, stored.size_bytes)


async def _create(
    row: UploadRow, size_bytes: int, storage: Storage, require: Callable[[], Awaitable[None]]
) -> bool:
    """Create a multipart upload in storage and record it, or abort it.

    It is recorded unless someone changed the row since it was read. `require` raises for what may
    not be recorded; it runs in the same transaction.
    """
    multipart_id = await storage.multiparts.create(row.key, content_type=row.content_type)
    is_recorded = False
    try:
        async with transaction():
            is_same = await lock(upload_id(row.key)) == row
            if is_same:
                await require()
                await execute(RECORD_START, multipart_id, size_bytes, row.key)
        is_recorded = is_same
    finally:
        if not is_recorded:
            await storage.multiparts.abort(row.key, multipart_id)
    return is_recorded


async def _assemble(row: UploadRow, multipart_id: str, storage: Storage) -> ObjectInfo | None:
    """The object made of the parts, by this call or another one; None when there is none."""
    parts = await _parts(row.key, multipart_id, storage)
    if parts is not None:
        whole = _all_parts(parts, row.size_bytes or 0)
        try:
            await storage.multiparts.complete(row.key, multipart_id, whole)
        except PartsRefused as exc:
            raise errors.PartsMissing from exc
        except (MultipartMissing, ObjectMissing):
            logger.info("Completed by another call", extra={"action": "complete_upload"})
    stored = await _object(row.key, storage)
    # From the first answer on: it may have taken longer than that.
    deadline = monotonic() + SETTLE_TIMEOUT_S
    while stored is None and monotonic() < deadline:
        await asyncio.sleep(SETTLE_INTERVAL_S)
        stored = await _object(row.key, storage)
    return stored


def _all_parts(parts: list[StoredPart], size_bytes: int) -> list[StoredPart]:
    missing = missing_parts(parts, size_bytes)
    if missing:
        named = ", ".join(map(str, missing[:MAX_NAMED]))
        more = " and more" if len(missing) > MAX_NAMED else ""
        raise errors.PartsMissing(
            missing,
            f"{len(missing):,} of {part_count(size_bytes):,} parts are not stored: {named}{more}. "
            "Send them, then complete the upload again.",
        )
    return whole_parts(parts, size_bytes)


async def _parts(key: str, multipart_id: str, storage: Storage) -> list[StoredPart] | None:
    try:
        return await storage.multiparts.list_parts(key, multipart_id)
    except (MultipartMissing, ObjectMissing):
        return None


async def _object(key: str, storage: Storage) -> ObjectInfo | None:
    try:
        return await storage.head(key)
    except ObjectMissing:
        return None
