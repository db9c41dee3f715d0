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
from portal.database.connection import NOW, execute, transaction
from portal.database.models import Upload, Version
from portal.locale.messages import Message, numeral
from portal.storage.bucket import Storage
from portal.storage.calls import MultipartMissing, ObjectMissing, PartsRefused
from portal.storage.objects import (
    MAX_PARTS,
    SMALLEST_PART_BYTES,
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

# Clients have many parts signed at once. A time that is a minute old is exact enough: uploads are
# abandoned after a day.
RECORD_ACTIVITY = """
UPDATE uploads SET active_at = now()
WHERE id = %s AND NOT is_discarded
  AND greatest(created_at, active_at) < now() - interval '1 minute'
"""
# A part that is signed while the upload is completed doesn't change its final size.
GROW = """
UPDATE uploads SET size_bytes = greatest(size_bytes, %s) WHERE id = %s AND is_growing
"""
DISCARD_IDLE = """
UPDATE uploads SET is_discarded = true
WHERE id = %s AND (is_discarded OR greatest(created_at, active_at) < %s)
"""
DELETE_DISCARDED = """
DELETE FROM uploads WHERE id = %s AND is_discarded AND greatest(created_at, active_at) < %s
"""


class UploadState(StrEnum):
    """State of an upload in storage: nothing, perhaps some parts, or the whole file."""

    PENDING = "pending"
    UPLOADING = "uploading"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class UploadView:
    """State of an upload. `parts` are those stored in full.

    A pending upload has no size, and a growing one has none before its end.
    """

    upload: Upload
    state: UploadState
    size_bytes: int | None = None
    parts: tuple[StoredPart, ...] = ()

    @property
    def is_growing(self) -> bool:
        """Return whether parts may be added until the upload is completed with its size."""
        return self.state is UploadState.UPLOADING and self.size_bytes is None


def parse_id(text: str) -> UUID:
    """Return the id in an upload's address. Raise `UploadNotIssued` if the text is no id."""
    if not UPLOAD_ID.fullmatch(text):
        raise errors.UploadNotIssued
    return UUID(text)


async def find(key: str) -> Upload | None:
    """Return the upload with this storage key, which a client may have sent."""
    # A query for a text that is too long for the column would raise an error.
    return await Upload.get_or_none(key=key) if UPLOAD_KEY.fullmatch(key) else None


async def lock(upload_id: UUID) -> Upload | None:
    """Lock an upload until the transaction ends, and return it.

    The lock makes creations of a video and changes of its upload wait for each other.
    """
    return await Upload.filter(id=upload_id).select_for_update(no_key=True).get_or_none()


async def lock_key(key: str) -> Upload | None:
    """Lock the upload with this storage key as `lock` does, and return it."""
    if not UPLOAD_KEY.fullmatch(key):
        return None
    return await Upload.filter(key=key).select_for_update(no_key=True).get_or_none()


async def start(
    upload_id: UUID, size_bytes: int | None, *, storage: Storage, quota: Quota = NO_QUOTA
) -> tuple[UploadView, bool]:
    """Start an upload in parts, or find the one that was started with the same size.

    Without a size, the upload grows part by part, and `complete` gets its size. Return the upload,
    and whether this call started it.

    Raises:
        UploadNotIssued: the id is unknown, or the upload was discarded.
        KeyAlreadyUsed: the key belongs to a video.
        UploadAlreadyStarted: the upload was started with another size.
        StorageQuotaExceeded: the account has no room for the upload.
    """
    for _ in range(START_TRIES):
        upload = await _read_active(upload_id)
        await _require_unused(upload)
        view = await _view(upload, storage)
        if view.state is not UploadState.PENDING:
            if view.size_bytes != size_bytes:
                raise errors.UploadAlreadyStarted
            return view, False
        if await _create_multipart(upload, size_bytes, storage, quota):
            metrics.UPLOAD_STARTED.inc()
            logger.info("Upload started", extra={"action": "start_upload", "key": upload.key})
            return UploadView(upload, UploadState.UPLOADING, size_bytes), True
    raise errors.UploadAlreadyStarted(
        Message("Others keep starting and ending this upload. Ask for a new key.")
    )


async def grow(
    upload_id: UUID, size_bytes: int, *, owner_id: UUID | None, quota: Quota = NO_QUOTA
) -> None:
    """Raise the size of a growing upload to this total; a smaller one changes nothing.

    Raises `StorageQuotaExceeded` if its owner has no room for it.
    """
    async with transaction():
        await require_start(owner_id, quota, upload_id=upload_id, size_bytes=size_bytes)
        await execute(GROW, size_bytes, upload_id)


async def get(upload_id: UUID, *, storage: Storage) -> UploadView:
    """Return the upload as storage has it. It is pending if storage has neither parts nor a file.

    Raises `UploadNotIssued` if the id is unknown or the upload was discarded.
    """
    return await _view(await _read(upload_id), storage)


async def sign_part(
    upload_id: UUID,
    number: str,
    *,
    storage: Storage,
    url_ttl_s: int,
    size_bytes: int | None = None,
    max_bytes: int = 0,
    quota: Quota = NO_QUOTA,
) -> str:
    """Return the address to PUT a part to.

    `size_bytes` is the size of the part, which only a growing upload needs. With it, the upload may
    have `max_bytes` in all; 0 is no limit.

    Raises:
        UploadNotStarted: no upload in parts is in progress.
        PartNotFound: the number is not one from 1 to the number of parts.
        UploadSizeNeeded: the upload grows, and the size is missing or not that of a part.
        InvalidRequest: the upload would grow beyond `max_bytes`.
        StorageQuotaExceeded: the account has no room for the part.
    """
    upload = await _read_active(upload_id)
    if upload.multipart_id is None or upload.size_bytes is None:
        raise errors.UploadNotStarted
    last = MAX_PARTS if upload.is_growing else part_count(upload.size_bytes)
    if not PART_NUMBER.fullmatch(number) or int(number) > last:
        raise errors.PartNotFound
    if not upload.is_growing:
        size_bytes = size_of_part(int(number), upload.size_bytes)
    elif size_bytes is None or not 1 <= size_bytes <= SMALLEST_PART_BYTES:
        raise errors.UploadSizeNeeded
    else:
        reached_bytes = (int(number) - 1) * SMALLEST_PART_BYTES + size_bytes
        if max_bytes and reached_bytes > max_bytes:
            fault = Message(
                "The file is too large. The limit is %(limit)s bytes.", limit=numeral(max_bytes)
            )
            raise errors.InvalidRequest([errors.FieldError("/sizeBytes", fault)])
        if reached_bytes > upload.size_bytes:
            await grow(upload.id, reached_bytes, owner_id=upload.owner_id, quota=quota)
    return await storage.public.presign_part(
        upload.key, upload.multipart_id, int(number), size_bytes=size_bytes, ttl_s=url_ttl_s
    )


async def complete(
    upload_id: UUID, *, storage: Storage, size_bytes: int | None = None
) -> UploadView:
    """Assemble the file from its parts. Repeated and concurrent calls return the same.

    A growing upload needs `size_bytes`, its size, and no longer grows.

    Raises:
        UploadNotStarted: nothing was ever uploaded.
        UploadSizeNeeded: the upload grows, and the size is missing.
        PartsMissing: parts are missing, or have a wrong size.
        UploadGone: storage has neither the parts nor the file any more.
        UploadSizeDiffers: the file has another size than the announced one.
    """
    upload = await _read_active(upload_id)
    if upload.is_growing:
        if size_bytes is None:
            raise errors.UploadSizeNeeded
        await Upload.filter(id=upload_id, is_growing=True).update(
            size_bytes=size_bytes, is_growing=False
        )
        upload = await _read(upload_id)
    if upload.size_bytes is not None and size_bytes not in (None, upload.size_bytes):
        raise errors.UploadSizeDiffers
    if upload.multipart_id is None:
        stored = await _head(upload.key, storage)
    else:
        stored = await _assemble(upload, upload.multipart_id, storage)
        if stored is not None:
            await _record_end(upload)
            metrics.UPLOAD_COMPLETED.inc()
    if stored is None:
        raise errors.UploadNotStarted if upload.size_bytes is None else errors.UploadGone
    if upload.size_bytes not in (None, stored.size_bytes):
        raise errors.UploadSizeDiffers
    logger.info("Upload completed", extra={"action": "complete_upload", "key": upload.key})
    return UploadView(upload, UploadState.STORED, stored.size_bytes)


async def remove_parts(upload_id: UUID, *, storage: Storage) -> None:
    """Remove the parts that have arrived. The upload can be started again, with any size."""
    upload = await _read(upload_id)
    if upload.multipart_id is not None:
        await storage.multiparts.abort(upload.key, upload.multipart_id)
        await _record_end(upload)


async def discard(upload_id: UUID, *, storage: Storage) -> None:
    """Discard an upload and remove its file or parts. Raise `KeyAlreadyUsed` if it has a video.

    Nothing uses the key again, so a removal that an outage interrupted can be repeated, and a late
    removal can't hit anything else.
    """
    async with transaction():
        upload = await lock(upload_id)
        if upload is None:
            raise errors.UploadNotIssued
        await _require_unused(upload)
        await Upload.filter(id=upload_id).update(is_discarded=True)
    await _remove(upload, storage)


async def discard_abandoned(upload_id: UUID, *, idle_since: datetime, storage: Storage) -> bool:
    """Discard an upload that has been idle since then, and delete its row.

    Return whether the upload was discarded: not if it has been active, or has a video. An upload
    that was discarded before is removed from storage again, and its row is kept until all of its
    signed addresses have expired.
    """
    async with transaction():
        upload = await lock(upload_id)
        if upload is None or await _has_video(upload):
            return False
        if not await execute(DISCARD_IDLE, upload_id, idle_since):
            return False
    await _remove(upload, storage)
    await execute(DELETE_DISCARDED, upload_id, idle_since)
    return True


async def _read(upload_id: UUID) -> Upload:
    """Return an upload. Raise `UploadNotIssued` if it is unknown or discarded."""
    upload = await Upload.get_or_none(id=upload_id)
    if upload is None:
        raise errors.UploadNotIssued
    if upload.is_discarded:
        raise errors.UploadNotIssued(
            Message("This upload was discarded. Get a key from POST /api/videos/presign.")
        )
    return upload


async def _read_active(upload_id: UUID) -> Upload:
    """Record activity of an upload, and return it as `_read` does."""
    # The order matters: either the janitor sees the activity, or this reads the janitor's change.
    await execute(RECORD_ACTIVITY, upload_id)
    return await _read(upload_id)


async def _has_video(upload: Upload) -> bool:
    return await Version.exists(storage_key=upload.key)


async def _require_unused(upload: Upload) -> None:
    if await _has_video(upload):
        raise errors.KeyAlreadyUsed(
            Message("This key belongs to a video. Ask for a new upload address.")
        )


async def _remove(upload: Upload, storage: Storage) -> None:
    """Remove an upload's parts and its object from storage."""
    # The parts go first: after that, no call can complete them into an object. They are recorded
    # until the object is gone, so that the janitor repeats an interrupted removal soon.
    if upload.multipart_id is not None:
        await storage.multiparts.abort(upload.key, upload.multipart_id)
    await storage.delete(upload.key)
    await _record_end(upload)
    metrics.UPLOAD_DISCARDED.inc()
    logger.info("Upload discarded", extra={"action": "discard_upload", "key": upload.key})


async def _record_end(upload: Upload) -> None:
    """Record that the multipart upload was completed or aborted."""
    row = Upload.filter(id=upload.id, multipart_id=upload.multipart_id)
    await row.update(multipart_id=None)


async def _view(upload: Upload, storage: Storage) -> UploadView:
    if upload.multipart_id is not None and upload.size_bytes is not None:
        parts = await _list_parts(upload.key, upload.multipart_id, storage)
        if parts is not None and upload.is_growing:
            return UploadView(upload, UploadState.UPLOADING, parts=tuple(parts))
        if parts is not None:
            whole = tuple(whole_parts(parts, upload.size_bytes))
            return UploadView(upload, UploadState.UPLOADING, upload.size_bytes, whole)
    stored = await _head(upload.key, storage)
    if stored is None:
        return UploadView(upload, UploadState.PENDING)
    return UploadView(upload, UploadState.STORED, stored.size_bytes)


async def _create_multipart(
    upload: Upload, size_bytes: int | None, storage: Storage, quota: Quota
) -> bool:
    """Create a multipart upload in storage and record it.

    Return whether it is recorded. It is aborted if the upload has changed since it was read, or if
    the account has no room for it (`StorageQuotaExceeded`).
    """
    multipart_id = await storage.multiparts.create(upload.key, content_type=upload.content_type)
    is_recorded = False
    try:
        async with transaction():
            is_unchanged = await _lock_unchanged(upload)
            if is_unchanged:
                await require_start(
                    upload.owner_id, quota, upload_id=upload.id, size_bytes=size_bytes or 0
                )
                await Upload.filter(id=upload.id).update(
                    multipart_id=multipart_id,
                    size_bytes=size_bytes or 0,
                    is_growing=size_bytes is None,
                    active_at=NOW,
                )
        is_recorded = is_unchanged
    finally:
        if not is_recorded:
            await storage.multiparts.abort(upload.key, multipart_id)
    return is_recorded


async def _lock_unchanged(upload: Upload) -> bool:
    """Lock an upload, and return whether it can be started, as when it was read."""
    present = await lock(upload.id)
    if present is None or present.is_discarded or present.multipart_id != upload.multipart_id:
        return False
    return not await _has_video(upload)


async def _assemble(upload: Upload, multipart_id: str, storage: Storage) -> ObjectInfo | None:
    """Return the object that this call or another one assembled, or None if there is none."""
    parts = await _list_parts(upload.key, multipart_id, storage)
    if parts is not None:
        whole = _require_all(parts, upload.size_bytes or 0)
        try:
            await storage.multiparts.complete(upload.key, multipart_id, whole)
        except PartsRefused as exc:
            raise errors.PartsMissing from exc
        except (MultipartMissing, ObjectMissing):
            logger.info("Completed by another call", extra={"action": "complete_upload"})
    stored = await _head(upload.key, storage)
    # The time limit begins with the first response, which may have taken longer than that.
    deadline = monotonic() + SETTLE_TIMEOUT_S
    while stored is None and monotonic() < deadline:
        await asyncio.sleep(SETTLE_INTERVAL_S)
        stored = await _head(upload.key, storage)
    return stored


def _require_all(parts: list[StoredPart], size_bytes: int) -> list[StoredPart]:
    """Return the parts of a file in order. Raise `PartsMissing` unless all are stored in full."""
    missing = missing_parts(parts, size_bytes)
    if missing:
        raise errors.PartsMissing(missing, _missing_words(missing, size_bytes))
    return whole_parts(parts, size_bytes)


def _missing_words(missing: list[int], size_bytes: int) -> Message:
    facts = {
        "missing": numeral(len(missing)),
        "all": numeral(part_count(size_bytes)),
        "numbers": ", ".join(map(str, missing[:MAX_NAMED])),
    }
    if len(missing) > MAX_NAMED:
        return Message(
            "%(missing)s of %(all)s parts are not stored: %(numbers)s and more. "
            "Send them, then complete the upload again.",
            **facts,
        )
    return Message(
        "%(missing)s of %(all)s parts are not stored: %(numbers)s. "
        "Send them, then complete the upload again.",
        **facts,
    )


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
