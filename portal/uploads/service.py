"""The use cases of uploads in parts: start, get, sign a part, complete, discard.

Storage knows what has arrived; the database records which multipart upload belongs to a key, and
the size announced for it. No transaction spans a call to storage: storage is changed first, then
the row, on condition that it is as it was read; otherwise the change in storage is undone. Every
call may be repeated.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from time import monotonic
from uuid import UUID

from portal.errors import (
    PartNotFound,
    PartsMissing,
    UploadAlreadyStarted,
    UploadGone,
    UploadNotStarted,
    UploadSizeDiffers,
)
from portal.storage.bucket import Storage
from portal.storage.calls import MultipartMissing, ObjectMissing, PartsRefused
from portal.storage.objects import ObjectInfo, StoredPart, upload_id
from portal.telemetry import metrics
from portal.uploads import rows
from portal.uploads.quotas import NO_QUOTA, Quota, require_start
from portal.uploads.rows import UploadRow

logger = logging.getLogger(__name__)

# Some servers forget a multipart upload a moment before its object shows.
SETTLE_TIMEOUT_S = 2
SETTLE_INTERVAL_S = 0.2
START_TRIES = 5
# Limits of S3: 10,000 parts, each but the last of at least 5 MiB, 5 TiB in all.
MIB = 1024**2
MAX_FILE_BYTES = 5 * 1024**4
MAX_PARTS = 10_000
SMALLEST_PART_BYTES = 16 * MIB
MAX_NAMED = 10
PART_NUMBER = re.compile(r"[1-9][0-9]{0,4}")


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


@dataclass(frozen=True, slots=True)
class Started:
    """An upload, and whether this call started it or an earlier one with the same size did."""

    upload: UploadView
    created: bool


def part_size_bytes(file_bytes: int) -> int:
    """Size of every part but the last: a whole number of MiB, as small as the limits allow."""
    return max(SMALLEST_PART_BYTES, -(-file_bytes // (MAX_PARTS * MIB)) * MIB)


def part_count(file_bytes: int) -> int:
    """How many parts a file has; they are numbered from 1."""
    return -(-file_bytes // part_size_bytes(file_bytes))


def size_of_part(number: int, file_bytes: int) -> int:
    """Size of the part with this number."""
    each = part_size_bytes(file_bytes)
    return min(each, file_bytes - (number - 1) * each)


def whole_parts(stored: Iterable[StoredPart], file_bytes: int) -> list[StoredPart]:
    """The stored parts that the file has and that have their right size."""
    count = part_count(file_bytes)
    return [
        part
        for part in stored
        if 1 <= part.number <= count and part.size_bytes == size_of_part(part.number, file_bytes)
    ]


def missing_parts(stored: Iterable[StoredPart], file_bytes: int) -> list[int]:
    """The numbers of parts that are not stored, or not with their right size."""
    there = {part.number for part in whole_parts(stored, file_bytes)}
    return [number for number in range(1, part_count(file_bytes) + 1) if number not in there]


async def start(
    key: str,
    size_bytes: int,
    *,
    storage: Storage,
    owner_id: UUID | None = None,
    quota: Quota = NO_QUOTA,
) -> Started:
    """Start an upload in parts, or find the one that was started with the same size.

    Raises:
        UploadNotIssued: the portal did not issue this key.
        KeyAlreadyUsed: the key belongs to a video.
        UploadAlreadyStarted: with another size.
        StorageQuotaExceeded: the account has no room for it.
    """
    require = partial(require_start, owner_id, quota, key=key, size_bytes=size_bytes)
    await rows.record_activity(upload_id(key))
    for _ in range(START_TRIES):
        row = await rows.row_with_key(key)
        rows.require_unused(row)
        found = await _view(row, storage)
        if found.state is not UploadState.PENDING:
            if found.size_bytes != size_bytes:
                raise UploadAlreadyStarted
            return Started(found, created=False)
        if await _create(row, size_bytes, storage, require):
            metrics.UPLOAD_STARTED.inc()
            logger.info("Upload started", extra={"action": "start_upload", "key": key})
            view = UploadView(key, UploadState.UPLOADING, size_bytes)
            return Started(view, created=True)
    raise UploadAlreadyStarted("Others keep starting and ending this upload. Ask for a new key.")


async def get(upload_id: str, *, storage: Storage) -> UploadView:
    """The upload as storage has it; `UploadNotIssued` for an unknown id."""
    return await _view(await rows.row_with_id(upload_id), storage)


async def sign_part(upload_id: str, number: str, *, storage: Storage, url_ttl_s: int) -> str:
    """Address to PUT a part to.

    Raises:
        UploadNotStarted: no upload in parts is under way.
        PartNotFound: the number is none of 1 to the number of parts.
    """
    await rows.record_activity(upload_id)
    row = await rows.row_with_id(upload_id)
    if row.multipart_id is None or row.size_bytes is None:
        raise UploadNotStarted
    if not PART_NUMBER.fullmatch(number) or int(number) > part_count(row.size_bytes):
        raise PartNotFound
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
    await rows.record_activity(upload_id)
    row = await rows.row_with_id(upload_id)
    if row.multipart_id is None:
        stored = await _object(row.key, storage)
    else:
        stored = await _assemble(row, row.multipart_id, storage)
        if stored is not None:
            await rows.record_end(row)
            metrics.UPLOAD_COMPLETED.inc()
    if stored is None:
        raise UploadNotStarted if row.size_bytes is None else UploadGone
    if row.size_bytes not in (None, stored.size_bytes):
        raise UploadSizeDiffers
    logger.info("Upload completed", extra={"action": "complete_upload", "key": row.key})
    return UploadView(row.key, UploadState.STORED, stored.size_bytes)


async def discard(upload_id: str, *, storage: Storage) -> None:
    """Discard an upload and remove what has arrived of it; `KeyAlreadyUsed` if a video has it.

    Its key is never used again, so that a late removal hits nothing else, and a removal that an
    outage broke off may be repeated.
    """
    await _remove(await rows.mark_discarded(upload_id), storage)


async def discard_abandoned(key: str, *, idle_since: datetime, storage: Storage) -> bool:
    """Discard an upload that has been idle since then, and delete its row.

    Returns False when it has been active, or a video was made of it. One discarded before is
    removed again, and its row kept until no address signed for it can be valid.
    """
    row = await rows.mark_abandoned(key, idle_since=idle_since)
    if row is None:
        return False
    await _remove(row, storage)
    await rows.delete_discarded(key, idle_since=idle_since)
    return True


async def _remove(row: UploadRow, storage: Storage) -> None:
    # In this order: an aborted upload can no longer be completed into an object.
    if row.multipart_id is not None:
        await storage.multiparts.abort(row.key, row.multipart_id)
    await storage.delete(row.key)
    await rows.record_end(row)
    metrics.UPLOAD_DISCARDED.inc()
    logger.info("Upload discarded", extra={"action": "discard_upload", "key": row.key})


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
    """Create a multipart upload in storage and record it, or abort it."""
    multipart_id = await storage.multiparts.create(row.key, content_type=row.content_type)
    is_recorded = False
    try:
        is_recorded = await rows.record_start(row, multipart_id, size_bytes, require=require)
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
            raise PartsMissing from exc
        except (MultipartMissing, ObjectMissing):
            logger.info("Completed by another call", extra={"action": "complete_upload"})
    return await _settled_object(row.key, storage)


def _all_parts(parts: list[StoredPart], size_bytes: int) -> list[StoredPart]:
    missing = missing_parts(parts, size_bytes)
    if missing:
        named = ", ".join(map(str, missing[:MAX_NAMED]))
        more = " and more" if len(missing) > MAX_NAMED else ""
        raise PartsMissing(
            missing,
            f"{len(missing):,} of {part_count(size_bytes):,} parts are not stored: {named}{more}. "
            "Send them, then complete the upload again.",
        )
    return whole_parts(parts, size_bytes)


async def _settled_object(key: str, storage: Storage) -> ObjectInfo | None:
    stored = await _object(key, storage)
    # From the first answer on: it may have taken longer than that.
    deadline = monotonic() + SETTLE_TIMEOUT_S
    while stored is None and monotonic() < deadline:
        await asyncio.sleep(SETTLE_INTERVAL_S)
        stored = await _object(key, storage)
    return stored


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
