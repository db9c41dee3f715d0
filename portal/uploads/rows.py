"""SQL of uploads in parts: which multipart upload belongs to a key, and its announced size.

Updates are conditional on the row as it was read. Creating a video of an upload, and changing the
upload, lock its row first.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal.database.connection import execute, fetch_rows, transaction
from portal.errors import KeyAlreadyUsed, UploadNotFound, UploadNotIssued
from portal.storage.objects import UPLOAD_KEY, upload_id

UPLOAD_ID = re.compile(r"[0-9a-f]{32}")

UPLOAD = """
SELECT key, owner_id, content_type, multipart_id, size_bytes, is_discarded,
       EXISTS (SELECT FROM videos WHERE storage_key = key) AS has_video
FROM uploads WHERE
"""
UPLOAD_WITH_KEY = UPLOAD + "key = %s"
UPLOAD_WITH_ID = UPLOAD + "substr(key, 8, 32) = %s"
OWNER = "SELECT owner_id FROM uploads WHERE substr(key, 8, 32) = %s"
# Makes creations of a video and changes of its upload wait for each other.
LOCKED_UPLOAD = UPLOAD_WITH_KEY + " FOR NO KEY UPDATE OF uploads"
LOCK = "SELECT 1 FROM uploads WHERE key = %s FOR NO KEY UPDATE"
RECORD_START = """
UPDATE uploads SET multipart_id = %s, size_bytes = %s, active_at = now() WHERE key = %s
"""
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


async def row_with_key(key: str) -> UploadRow:
    """The upload with this storage key; `UploadNotIssued` for an unknown or discarded one."""
    # PostgreSQL raises errors for some texts: NUL, lone surrogates.
    return _not_discarded(await _row(UPLOAD_WITH_KEY, key if UPLOAD_KEY.fullmatch(key) else ""))


async def find_upload(key: str) -> UploadRow | None:
    """The upload with this storage key, discarded or not; None for an unknown one."""
    rows = await fetch_rows(UPLOAD_WITH_KEY, key)
    return UploadRow(**rows[0]) if rows else None


async def row_with_id(upload_id: str) -> UploadRow:
    """The upload whose key holds this unique id; `UploadNotIssued` for unknown or discarded."""
    return _not_discarded(await _row_with_id(upload_id))


async def owner_of(upload_id: str) -> UUID | None:
    """The account that began an upload; None for nobody, and for no such upload."""
    rows = await fetch_rows(OWNER, _valid_id(upload_id))
    return rows[0]["owner_id"] if rows else None


def require_unused(row: UploadRow) -> None:
    """Raise `KeyAlreadyUsed` for an upload that a video was made of."""
    if row.has_video:
        raise KeyAlreadyUsed("This key belongs to a video. Ask for a new upload address.")


async def record_activity(upload_id: str) -> None:
    """Record that an upload goes on, so that it is not abandoned.

    Called before the row is read: either the janitor sees this, or the reader sees the janitor's
    change.
    """
    await execute(RECORD_ACTIVITY, _valid_id(upload_id))


async def record_start(
    row: UploadRow, multipart_id: str, size_bytes: int, *, require: Callable[[], Awaitable[None]]
) -> bool:
    """Record the multipart upload, unless someone changed the row since it was read.

    `require` raises for what may not be recorded; it runs in the same transaction.
    """
    async with transaction():
        if await _locked_row(row.key) != row:
            return False
        await require()
        await execute(RECORD_START, multipart_id, size_bytes, row.key)
    return True


async def record_end(row: UploadRow) -> None:
    """Record that the multipart upload has ended: it was completed or removed."""
    await execute(RECORD_END, row.key, row.multipart_id)


async def mark_discarded(upload_id: str) -> UploadRow:
    """Discard an upload for good; `KeyAlreadyUsed` if a video was made of it."""
    key = (await _row_with_id(upload_id)).key
    async with transaction():
        row = await _locked_row(key)
        require_unused(row)
        await execute(DISCARD, key)
    return row


async def mark_abandoned(key: str, *, idle_since: datetime) -> UploadRow | None:
    """Discard an upload that has been idle since then, or was discarded before; None otherwise.

    None as well for one that a video was made of.
    """
    async with transaction():
        try:
            row = await _locked_row(key)
        except UploadNotIssued:
            return None
        is_due = row.is_discarded or await fetch_rows(IS_IDLE, key, idle_since)
        if row.has_video or not is_due:
            return None
        await execute(DISCARD, key)
    return row


async def delete_discarded(key: str, *, idle_since: datetime) -> None:
    """Delete the row of a discarded upload that has been idle since then."""
    await execute(DELETE_DISCARDED, key, idle_since)


async def locked_upload(key: str) -> UploadRow:
    """The upload, kept as it is until the end of the transaction. Raises `UploadNotIssued`.

    `has_video` may be older than that: a video that was recorded while this waited for the lock is
    found by its unique storage key.
    """
    return await _row(LOCKED_UPLOAD, key)


def require_finished(row: UploadRow, size_bytes: int) -> None:
    """Raise `UploadNotFound` unless a file of this size is the whole upload."""
    if row.is_discarded or row.multipart_id is not None:
        raise unfinished(row)
    if row.size_bytes not in (None, size_bytes):
        raise UploadNotFound(
            f"The uploaded file has {size_bytes:,} bytes where {row.size_bytes:,} were announced. "
            "Ask for a new upload address and upload the file again."
        )


def unfinished(row: UploadRow) -> UploadNotFound:
    """Why there is no file under the key of an upload, and what to do."""
    if row.is_discarded:
        return UploadNotFound("This upload was discarded. Ask for a new upload address.")
    if row.multipart_id is not None:
        return UploadNotFound(
            "The upload in parts is not complete. Send the parts that are missing, then "
            f"POST /api/uploads/{upload_id(row.key)}/complete, then try again."
        )
    return UploadNotFound()


def _not_discarded(row: UploadRow) -> UploadRow:
    if row.is_discarded:
        raise UploadNotIssued("This upload was discarded. Get a key from POST /api/videos/presign.")
    return row


async def _row_with_id(upload_id: str) -> UploadRow:
    return await _row(UPLOAD_WITH_ID, _valid_id(upload_id))


def _valid_id(upload_id: str) -> str:
    return upload_id if UPLOAD_ID.fullmatch(upload_id) else ""


async def _row(query: str, value: str) -> UploadRow:
    rows = await fetch_rows(query, value)
    if not rows:
        raise UploadNotIssued
    return UploadRow(**rows[0])


async def _locked_row(key: str) -> UploadRow:
    await execute(LOCK, key)
    # A statement of its own, so that it sees what was committed while waiting for the lock.
    return await _row(UPLOAD_WITH_KEY, key)
