"""Uploads in parts: start, get, sign a part, complete, discard.

Storage has the parts that have arrived. The database records an upload's multipart upload in
storage, and its announced size. No transaction spans a call to storage: storage is changed first,
and then the row, provided that the row is as it was read; otherwise the change in storage is
undone. Every call may be repeated.
"""

import asyncio
import logging
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from time import monotonic
from uuid import UUID

from portal import errors
from portal.database.connection import execute, fetch_rows, transaction
from portal.storage.bucket import Storage
from portal.storage.calls import MultipartMissing, ObjectMissing, PartsRefused
from portal.storage.objects import (
    UPLOAD_KEY,
    ObjectInfo,
    StoredPart,
    missing_parts,
    part_count,
    size_of_part,
    whole_parts,
)
from portal.telemetry import metrics
from portal.uploads.quotas import NO_QUOTA, Quota, require_start

logger = logging.getLogger(__name__)

# Some servers forget a multipart upload a moment before they show its object.
SETTLE_TIMEOUT_S = 2
SETTLE_INTERVAL_S = 0.2
START_TRIES = 5
# Cap on the missing parts that an error message lists.
MAX_NAMED = 10
PART_NUMBER = re.compile(r"[1-9][0-9]{0,4}")
UPLOAD_ID = re.compile(r"[0-9a-f]{32}")

UPLOAD = """
SELECT id, key, owner_id, content_type, multipart_id, size_bytes, is_discarded,
       EXISTS (SELECT FROM videos WHERE storage_key = key) AS has_video
FROM uploads WHERE id = %s
"""
ID_OF_KEY = "SELECT id FROM uploads WHERE key = %s"
# Makes creations of a video and changes of its upload wait for each other.
LOCK = "SELECT 1 FROM uploads WHERE id = %s FOR NO KEY UPDATE"
RECORD_START = """
UPDATE uploads SET multipart_id = %s, size_bytes = %s, active_at = now() WHERE id = %s
"""
RECORD_SIZE = "UPDATE uploads SET size_bytes = %s WHERE id = %s"
# Clients have many parts signed at once. A time that is a minute old is exact enough: uploads are
# abandoned after a day.
RECORD_ACTIVITY = """
UPDATE uploads SET active_at = now()
WHERE id = %s AND NOT is_discarded
  AND greatest(created_at, active_at) < now() - interval '1 minute'
"""
RECORD_END = "UPDATE uploads SET multipart_id = NULL WHERE id = %s AND multipart_id = %s"
DISCARD = "UPDATE uploads SET is_discarded = true WHERE id = %s"
DISCARD_IDLE = """
UPDATE uploads SET is_discarded = true
WHERE id = %s AND (is_discarded OR greatest(created_at, active_at) < %s)
"""
DELETE_DISCARDED = """
DELETE FROM uploads WHERE id = %s AND is_discarded AND greatest(created_at, active_at) < %s
"""


@dataclass(frozen=True, slots=True)
class UploadRow:
    """Row of an upload; see `models.Upload`."""

    id: UUID
    key: str
    owner_id: UUID | None
    content_type: str
    multipart_id: str | None
    size_bytes: int | None
    is_discarded: bool
    has_video: bool


class UploadState(StrEnum):
    """State of an upload in storage: nothing, perhaps some parts, or the whole file."""

    PENDING = "pending"
    UPLOADING = "uploading"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class UploadView:
    """State of an upload. A pending one has no size; `parts` are those stored in full."""

    id: UUID
    key: str
    state: UploadState
    size_bytes: int | None = None
    parts: tuple[StoredPart, ...] = ()


def parse_id(text: str) -> UUID:
    """Return the id in an upload's address. Raise `UploadNotIssued` if the text is no id."""
    if not UPLOAD_ID.fullmatch(text):
        raise errors.UploadNotIssued
    return UUID(text)


async def find(upload_id: UUID) -> UploadRow | None:
    """Return an upload, discarded or not, by its id."""
    rows = await fetch_rows(UPLOAD, upload_id)
    return UploadRow(**rows[0]) if rows else None


async def find_id(key: str) -> UUID | None:
    """Return the id of the upload with this storage key."""
    # PostgreSQL raises errors for some texts: NUL, lone surrogates.
    if not UPLOAD_KEY.fullmatch(key):
        return None
    rows = await fetch_rows(ID_OF_KEY, key)
    return rows[0]["id"] if rows else None


async def lock(upload_id: UUID) -> UploadRow | None:
    """Return an upload, locked until the end of the transaction."""
    await execute(LOCK, upload_id)
    # A second statement sees changes that were committed during the wait for the lock.
    return await find(upload_id)


async def start(
    upload_id: UUID, size_bytes: int, *, storage: Storage, quota: Quota = NO_QUOTA
) -> tuple[UploadView, bool]:
    """Start an upload in parts, or find the one that was started with the same size.

    Return the upload, and whether this call started it.

    Raises:
        UploadNotIssued: the id is unknown, or the upload was discarded.
        KeyAlreadyUsed: the key belongs to a video.
        UploadAlreadyStarted: the upload was started with another size.
        StorageQuotaExceeded: the account has no room for the upload.
    """
    for _ in range(START_TRIES):
        row = await _read_active(upload_id)
        _require_unused(row)
        view = await _view(row, storage)
        if view.state is not UploadState.PENDING:
            if view.size_bytes != size_bytes:
                raise errors.UploadAlreadyStarted
            return view, False
        if await _create_multipart(row, size_bytes, storage, quota):
            metrics.UPLOAD_STARTED.inc()
            logger.info("Upload started", extra={"action": "start_upload", "key": row.key})
            return UploadView(row.id, row.key, UploadState.UPLOADING, size_bytes), True
    raise errors.UploadAlreadyStarted(
        "Others keep starting and ending this upload. Ask for a new key."
    )


async def grow(
    upload_id: UUID, size_bytes: int, *, owner_id: UUID | None, quota: Quota = NO_QUOTA
) -> None:
    """Raise the announced size of an upload. Raise `StorageQuotaExceeded` if there is no room."""
    async with transaction():
        await require_start(owner_id, quota, upload_id=upload_id, size_bytes=size_bytes)
        await execute(RECORD_SIZE, size_bytes, upload_id)


async def get(upload_id: UUID, *, storage: Storage) -> UploadView:
    """Return the upload as storage has it. Raise `UploadNotIssued` for an unknown id."""
    return await _view(_require_issued(await find(upload_id)), storage)


async def sign_part(upload_id: UUID, number: str, *, storage: Storage, url_ttl_s: int) -> str:
    """Return the address to PUT a part to.

    Raises:
        UploadNotStarted: no upload in parts is in progress.
        PartNotFound: the number is not one from 1 to the number of parts.
    """
    row = await _read_active(upload_id)
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


async def complete(upload_id: UUID, *, storage: Storage) -> UploadView:
    """Assemble the file from its parts. Repeated and concurrent calls return the same.

    Raises:
        UploadNotStarted: nothing was ever uploaded.
        PartsMissing: parts are missing, or have a wrong size.
        UploadGone: storage has neither the parts nor the file any more.
        UploadSizeDiffers: the file in storage has another size than the announced one.
    """
    row = await _read_active(upload_id)
    if row.multipart_id is None:
        stored = await _head(row.key, storage)
    else:
        stored = await _assemble(row, row.multipart_id, storage)
        if stored is not None:
            await execute(RECORD_END, row.id, row.multipart_id)
            metrics.UPLOAD_COMPLETED.inc()
    if stored is None:
        raise errors.UploadNotStarted if row.size_bytes is None else errors.UploadGone
    if row.size_bytes not in (None, stored.size_bytes):
        raise errors.UploadSizeDiffers
    logger.info("Upload completed", extra={"action": "complete_upload", "key": row.key})
    return UploadView(row.id, row.key, UploadState.STORED, stored.size_bytes)


async def remove_parts(upload_id: UUID, *, storage: Storage) -> None:
    """Remove the parts that have arrived. The upload can be started again, with any size."""
    row = _require_issued(await find(upload_id))
    if row.multipart_id is not None:
        await storage.multiparts.abort(row.key, row.multipart_id)
        await execute(RECORD_END, row.id, row.multipart_id)


async def discard(upload_id: UUID, *, storage: Storage) -> None:
    """Discard an upload and remove its file or parts. Raise `KeyAlreadyUsed` if it has a video.

    Nothing uses the key again, so a removal that an outage interrupted can be repeated, and a late
    removal can't hit anything else.
    """
    async with transaction():
        row = await lock(upload_id)
        if row is None:
            raise errors.UploadNotIssued
        _require_unused(row)
        await execute(DISCARD, row.id)
    await _remove(row, storage)


async def discard_abandoned(upload_id: UUID, *, idle_since: datetime, storage: Storage) -> bool:
    """Discard an upload that has been idle since then, and delete its row.

    Return whether the upload was discarded: not if it has been active, or has a video. An upload
    that was discarded before is removed from storage again, and its row is kept until all of its
    signed addresses have expired.
    """
    async with transaction():
        row = await lock(upload_id)
        if row is None or row.has_video:
            return False
        if not await execute(DISCARD_IDLE, row.id, idle_since):
            return False
    await _remove(row, storage)
    await execute(DELETE_DISCARDED, row.id, idle_since)
    return True


async def _read_active(upload_id: UUID) -> UploadRow:
    """Record activity of an issued upload, and return its row. Raise `UploadNotIssued`."""
    # The order matters: either the janitor sees the activity, or this reads the janitor's change.
    await execute(RECORD_ACTIVITY, upload_id)
    return _require_issued(await find(upload_id))


def _require_issued(row: UploadRow | None) -> UploadRow:
    """Return the upload. Raise `UploadNotIssued` if it is unknown or discarded."""
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
    """Remove an upload's parts and its object from storage."""
    # The parts go first: after that, no call can complete them into an object. They are recorded
    # until the object is gone, so that the janitor repeats an interrupted removal soon.
    if row.multipart_id is not None:
        await storage.multiparts.abort(row.key, row.multipart_id)
    await storage.delete(row.key)
    await execute(RECORD_END, row.id, row.multipart_id)
    metrics.UPLOAD_DISCARDED.inc()
    logger.info("Upload discarded", extra={"action": "discard_upload", "key": row.key})


async def _view(row: UploadRow, storage: Storage) -> UploadView:
    if row.multipart_id is not None and row.size_bytes is not None:
        parts = await _list_parts(row.key, row.multipart_id, storage)
        if parts is not None:
            whole = tuple(whole_parts(parts, row.size_bytes))
            return UploadView(row.id, row.key, UploadState.UPLOADING, row.size_bytes, whole)
    stored = await _head(row.key, storage)
    if stored is None:
        return UploadView(row.id, row.key, UploadState.PENDING)
    return UploadView(row.id, row.key, UploadState.STORED, stored.size_bytes)


async def _create_multipart(
    row: UploadRow, size_bytes: int, storage: Storage, quota: Quota
) -> bool:
    """Create a multipart upload in storage and record it.

    Return whether it is recorded. It is aborted if the row has changed since it was read, or if
    the account has no room for the upload (`StorageQuotaExceeded`).
    """
    multipart_id = await storage.multiparts.create(row.key, content_type=row.content_type)
    is_recorded = False
    try:
        async with transaction():
            is_unchanged = await lock(row.id) == row
            if is_unchanged:
                await require_start(row.owner_id, quota, upload_id=row.id, size_bytes=size_bytes)
                await execute(RECORD_START, multipart_id, size_bytes, row.id)
        is_recorded = is_unchanged
    finally:
        if not is_recorded:
            await storage.multiparts.abort(row.key, multipart_id)
    return is_recorded


async def _assemble(row: UploadRow, multipart_id: str, storage: Storage) -> ObjectInfo | None:
    """Return the object that this call or another one assembled, or None if there is none."""
    parts = await _list_parts(row.key, multipart_id, storage)
    if parts is not None:
        whole = _require_all(parts, row.size_bytes or 0)
        try:
            await storage.multiparts.complete(row.key, multipart_id, whole)
        except PartsRefused as exc:
            raise errors.PartsMissing from exc
        except (MultipartMissing, ObjectMissing):
            logger.info("Completed by another call", extra={"action": "complete_upload"})
    stored = await _head(row.key, storage)
    # The time limit begins with the first response, which may have taken longer than that.
    deadline = monotonic() + SETTLE_TIMEOUT_S
    while stored is None and monotonic() < deadline:
        await asyncio.sleep(SETTLE_INTERVAL_S)
        stored = await _head(row.key, storage)
    return stored


def _require_all(parts: list[StoredPart], size_bytes: int) -> list[StoredPart]:
    """Return the parts of a file in order. Raise `PartsMissing` unless all are stored in full."""
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


async def _list_parts(key: str, multipart_id: str, storage: Storage) -> list[StoredPart] | None:
    try:
        return await storage.multiparts.list_parts(key, multipart_id)
    except (MultipartMissing, ObjectMissing):
        return None


async def _head(key: str, storage: Storage) -> ObjectInfo | None:
    try:
        return await storage.head(key)
    except ObjectMissing:
        return None
