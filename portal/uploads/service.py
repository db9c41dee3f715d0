"""The use cases of uploads in parts: start, look, sign a part, complete, discard.

What has arrived is storage's to say; the database only remembers which multipart upload belongs
to a key and what size was announced. No transaction spans a call to storage: storage is changed
first and the row after it, on the condition that it is still as it was read; whoever is too late
undoes its own doing in storage. Every call may be repeated.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from portal.errors import (
    MultipartMissing,
    ObjectMissing,
    PartNotFound,
    PartsMissing,
    PartsRefused,
    StorageUnavailable,
    UploadAlreadyStarted,
    UploadGone,
    UploadNotStarted,
    UploadSizeDiffers,
)
from portal.storage.keys import upload_id
from portal.telemetry import metrics
from portal.uploads.parts import (
    missing_parts,
    numbers_in_words,
    part_count,
    size_of_part,
    whole_parts,
)
from portal.uploads.rows import (
    UploadRow,
    forget,
    mark_abandoned,
    mark_discarded,
    record_activity,
    record_end,
    record_start,
    refuse_used,
    row_with_id,
    row_with_key,
)

if TYPE_CHECKING:
    from datetime import datetime

    from portal.storage.bucket import Storage
    from portal.storage.objects import ObjectInfo, StoredPart

logger = logging.getLogger(__name__)

# Storage's own time limits, with its retries, are longer than someone waits for an answer.
ANSWER_TIMEOUT_S = 8
# Putting thousands of parts together may take storage a while.
COMPLETE_TIMEOUT_S = 55
# Some servers forget a multipart upload a moment before its object shows.
SETTLE_TIMEOUT_S = 2
SETTLE_INTERVAL_S = 0.2
START_TRIES = 5
PART_NUMBER = re.compile(r"[1-9][0-9]{0,4}")

Answer = TypeVar("Answer")


class UploadState(StrEnum):
    """What has become of an upload: nothing is there, parts may be, or the whole file is."""

    PENDING = "pending"
    UPLOADING = "uploading"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class UploadView:
    """How an upload stands. A pending one has no size; `parts` are those that are stored whole."""

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


async def start(key: str, size_bytes: int, *, storage: Storage) -> Started:
    """Start an upload in parts, or find the one that was started with the same size.

    Raises:
        UploadNotIssued: the portal did not issue this key.
        KeyAlreadyUsed: the key belongs to a video.
        UploadAlreadyStarted: with another size.
    """
    await record_activity(upload_id(key))
    for _ in range(START_TRIES):
        row = await row_with_key(key)
        refuse_used(row)
        found = await _look(row, storage)
        if found.state is not UploadState.PENDING:
            if found.size_bytes != size_bytes:
                raise UploadAlreadyStarted
            return Started(found, created=False)
        if await _begin(row, size_bytes, storage):
            metrics.UPLOAD_STARTED.inc()
            logger.info("Upload started", extra={"action": "start_upload", "key": key})
            view = UploadView(key, UploadState.UPLOADING, size_bytes)
            return Started(view, created=True)
    raise UploadAlreadyStarted("Others keep starting and ending this upload. Ask for a new key.")


async def look(upload_id: str, *, storage: Storage) -> UploadView:
    """How an upload stands, by what storage has; `UploadNotIssued` for an unknown id."""
    return await _look(await row_with_id(upload_id), storage)


async def sign_part(upload_id: str, number: str, *, storage: Storage, url_ttl_s: int) -> str:
    """Address to PUT a part to.

    Raises:
        UploadNotStarted: no upload in parts is under way.
        PartNotFound: the number is none of 1 to the number of parts.
    """
    await record_activity(upload_id)
    row = await row_with_id(upload_id)
    if row.multipart_id is None or row.size_bytes is None:
        raise UploadNotStarted
    if not PART_NUMBER.fullmatch(number) or int(number) > part_count(row.size_bytes):
        raise PartNotFound
    return await storage.multiparts.presign_part(
        row.key,
        row.multipart_id,
        int(number),
        size_bytes=size_of_part(int(number), row.size_bytes),
        ttl_s=url_ttl_s,
    )


async def complete(upload_id: str, *, storage: Storage) -> UploadView:
    """Make the file of its parts. Calling again, or twice at once, gives the same answer.

    Raises:
        UploadNotStarted: nothing was ever uploaded.
        PartsMissing: parts are not there, or not with their right size.
        UploadGone: storage knows neither the parts nor the file any more.
        UploadSizeDiffers: the file in storage is not as large as announced.
    """
    await record_activity(upload_id)
    row = await row_with_id(upload_id)
    if row.multipart_id is None:
        stored = await _object(row.key, storage)
    else:
        stored = await _put_together(row, row.multipart_id, storage)
        if stored is not None:
            await record_end(row)
            metrics.UPLOAD_COMPLETED.inc()
    if stored is None:
        raise UploadNotStarted if row.size_bytes is None else UploadGone
    if row.size_bytes not in (None, stored.size_bytes):
        raise UploadSizeDiffers
    logger.info("Upload completed", extra={"action": "complete_upload", "key": row.key})
    return UploadView(row.key, UploadState.STORED, stored.size_bytes)


async def discard(upload_id: str, *, storage: Storage) -> None:
    """Give an upload up and remove what has arrived of it; `KeyAlreadyUsed` if a video has it.

    Its key is dead from then on. So a removal that arrives late in storage cannot hit anything
    else, and one that an outage broke off may be repeated.
    """
    await _remove(await mark_discarded(upload_id), storage)


async def discard_abandoned(key: str, *, idle_since: datetime, storage: Storage) -> bool:
    """As `discard`, of an upload that nobody has touched since then, and of its row with it.

    Answers False when somebody has, or a video was made of it. One that was discarded before is
    removed once more, but remembered until no address that was signed for it can be valid.
    """
    row = await mark_abandoned(key, idle_since=idle_since)
    if row is None:
        return False
    await _remove(row, storage)
    await forget(key, idle_since=idle_since)
    return True


async def _remove(row: UploadRow, storage: Storage) -> None:
    # In this order: an aborted upload can no longer be completed into an object.
    if row.multipart_id is not None:
        await _answered(storage.multiparts.abort(row.key, row.multipart_id))
    await _answered(storage.delete(row.key))
    await record_end(row)
    metrics.UPLOAD_DISCARDED.inc()
    logger.info("Upload discarded", extra={"action": "discard_upload", "key": row.key})


async def _look(row: UploadRow, storage: Storage) -> UploadView:
    if row.multipart_id is not None and row.size_bytes is not None:
        parts = await _parts(row.key, row.multipart_id, storage)
        if parts is not None:
            whole = tuple(whole_parts(parts, row.size_bytes))
            return UploadView(row.key, UploadState.UPLOADING, row.size_bytes, whole)
    stored = await _object(row.key, storage)
    if stored is None:
        return UploadView(row.key, UploadState.PENDING)
    return UploadView(row.key, UploadState.STORED, stored.size_bytes)


async def _begin(row: UploadRow, size_bytes: int, storage: Storage) -> bool:
    """Start a multipart upload in storage and record it; it is aborted if that fails."""
    multipart_id = await _answered(
        storage.multiparts.create(row.key, content_type=row.content_type)
    )
    is_recorded = False
    try:
        is_recorded = await record_start(row, multipart_id, size_bytes)
    finally:
        if not is_recorded:
            await _answered(storage.multiparts.abort(row.key, multipart_id))
    return is_recorded


async def _put_together(row: UploadRow, multipart_id: str, storage: Storage) -> ObjectInfo | None:
    """The object made of the parts, by this call or another one; None when there is none."""
    parts = await _parts(row.key, multipart_id, storage)
    if parts is not None:
        whole = _all_parts(parts, row.size_bytes or 0)
        try:
            await _answered(
                storage.multiparts.complete(row.key, multipart_id, whole),
                timeout_s=COMPLETE_TIMEOUT_S,
            )
        except PartsRefused as exc:
            raise PartsMissing from exc
        except (MultipartMissing, ObjectMissing):
            logger.info("Completed by another call", extra={"action": "complete_upload"})
    return await _settled_object(row.key, storage)


def _all_parts(parts: list[StoredPart], size_bytes: int) -> list[StoredPart]:
    missing = missing_parts(parts, size_bytes)
    if missing:
        raise PartsMissing(
            missing,
            f"{len(missing):,} of {part_count(size_bytes):,} parts are not stored: "
            f"{numbers_in_words(missing)}. Send them, then complete the upload again.",
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
        return await _answered(storage.multiparts.list_parts(key, multipart_id))
    except (MultipartMissing, ObjectMissing):
        return None


async def _object(key: str, storage: Storage) -> ObjectInfo | None:
    try:
        return await _answered(storage.head(key))
    except ObjectMissing:
        return None


async def _answered(call: Awaitable[Answer], *, timeout_s: float | None = None) -> Answer:
    try:
        async with asyncio.timeout(timeout_s or ANSWER_TIMEOUT_S):
            return await call
    except TimeoutError as exc:
        raise StorageUnavailable from exc
