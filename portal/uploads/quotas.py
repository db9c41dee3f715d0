"""Quotas: how many videos an account may publish in 24 hours, and how much it may keep in storage.

Quotas are checked when an upload begins, when a video is published, and when anything else is
recorded that will be stored: a cut, a copy, or a file for download. It counts from then on, with
its expected size. The transaction that records it holds a lock of its account, so concurrent
requests can't exceed a quota together. A portal without accounts has no quotas. Sizes are in bytes.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from portal.config import Config
from portal.database.connection import NOW, execute, fetch_rows
from portal.database.models import Upload
from portal.errors import StorageQuotaExceeded, VideoQuotaExceeded
from portal.locale.messages import Message, PluralMessage, numeral
from portal.text import day_in_words, size_in_words

# First of two keys of an advisory lock: any number that no other lock has. A lock of the account's
# row would hold up all of the account's requests, because each one records that it was seen.
LOCK_CLASS = 730_681
LOCK = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"
# Deleted videos count until their 24 hours are over; their tombstones are kept for longer. An
# upload in parts counts with its announced size until it has a video. A file that several videos or
# versions of the account share counts once; that of a failed or withdrawn replacement is removed at
# once. A cut counts with two segments of the whole film for each kept interval and rendition, the
# most that it has of its own, and with that film until a new video has copied it. Files for
# download count for the account that requested them. Usage without a limit is not read.
USAGE = """
SELECT account.id, published.videos, kept.stored_bytes, kept.undoable_bytes,
       published.latest[quota.videos] + interval '24 hours' AS free_at
FROM accounts account
CROSS JOIN (SELECT %s::int AS videos, %s::bigint AS stored_bytes) quota
CROSS JOIN LATERAL (
  SELECT count(*) AS videos, array_agg(at ORDER BY at DESC) AS latest
  FROM (
    SELECT created_at AS at FROM publications
    WHERE owner_id = account.id AND created_at > now() - interval '24 hours'
    UNION ALL
    SELECT published_at FROM tombstones
    WHERE owner_id = account.id AND published_at > now() - interval '24 hours'
  ) video
  WHERE quota.videos > 0
) published
CROSS JOIN LATERAL (
  SELECT coalesce(sum(size_bytes) FILTER (WHERE deleted_at IS NULL), 0)::bigint AS stored_bytes,
         coalesce(sum(size_bytes) FILTER (WHERE deleted_at IS NOT NULL), 0)::bigint
           AS undoable_bytes
  FROM (
    SELECT max(version.size_bytes) AS size_bytes,
           CASE WHEN bool_and(deleted_at IS NOT NULL) THEN max(deleted_at) END AS deleted_at
    FROM publications JOIN versions version ON version.video_id = publications.id
    WHERE owner_id = account.id AND NOT (
      version.id <> version_id AND status = 'failed'
      AND coalesce(retired_at = to_timestamp(0), true)
    )
    GROUP BY storage_key
    UNION ALL
    SELECT rendition.size_bytes, deleted_at FROM publications
    JOIN versions version ON version.video_id = publications.id
    JOIN renditions rendition ON rendition.version_id = version.id
    WHERE owner_id = account.id AND version.base_id IS NULL
    UNION ALL
    SELECT coalesce(2 * jsonb_array_length(version.keep) * rendition.size_bytes
                    / nullif(segment_count, 0), 0)
             + CASE WHEN film.video_id = publications.id OR EXISTS (
                 SELECT FROM versions WHERE video_id = publications.id AND base_id IS NULL
               ) THEN 0 ELSE rendition.size_bytes END, deleted_at
    FROM publications
    JOIN versions version ON version.video_id = publications.id
    JOIN versions film ON film.id = version.base_id
    JOIN renditions rendition ON rendition.version_id = film.id
    WHERE owner_id = account.id AND rendition.state = 'complete' AND kind <> 'subtitles'
    UNION ALL
    SELECT size_bytes, NULL FROM downloads
    WHERE requester = account.id::text AND video_id IS NOT NULL AND state <> 'failed'
    UNION ALL
    SELECT track.size_bytes, deleted_at FROM publications
    JOIN captions track ON track.video_id = publications.id
    WHERE owner_id = account.id
    UNION ALL
    SELECT size_bytes, NULL FROM uploads
    WHERE owner_id = account.id AND size_bytes IS NOT NULL AND NOT is_discarded
      AND uploads.id IS DISTINCT FROM %s
      AND NOT EXISTS (SELECT FROM versions WHERE storage_key = key)
  ) file
  WHERE quota.stored_bytes > 0
) kept
WHERE account.id = ANY(%s)
"""
# An hour is longer than the time in which a deletion can be undone. A video that is locked is being
# removed or restored; to wait for it here could end in a deadlock.
END_UNDO = """
UPDATE publications SET deleted_at = deleted_at - interval '1 hour'
WHERE id IN (
  SELECT id FROM publications WHERE owner_id = %s AND deleted_at IS NOT NULL
  FOR UPDATE SKIP LOCKED
)
"""


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of each account; 0 is no limit."""

    videos_per_day: int = 0
    stored_bytes: int = 0

    @classmethod
    def of(cls, config: Config) -> "Quota":
        """Return the configured quota."""
        return cls(config.max_videos_per_day, config.max_stored_bytes)

    def __bool__(self) -> bool:
        return self.videos_per_day > 0 or self.stored_bytes > 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Videos an account has published in the last 24 hours, and its storage, if they are limited.

    `free_at` is when it may publish again; None if that is now. `undoable_bytes` is the size of
    deleted videos that can be restored: a new upload may take their room.
    """

    quota: Quota
    videos: int = 0
    stored_bytes: int = 0
    undoable_bytes: int = 0
    free_at: datetime | None = None

    @property
    def left_videos(self) -> int | None:
        """Return how many more videos may be published now; None for any number."""
        limit = self.quota.videos_per_day
        return max(0, limit - self.videos) if limit else None

    @property
    def left_bytes(self) -> int | None:
        """Return how much more may be stored; None for any size."""
        limit = self.quota.stored_bytes
        return max(0, limit - self.stored_bytes) if limit else None

    def refusal(self) -> VideoQuotaExceeded | None:
        """Return the error that refuses another video now, if the quota is used up."""
        if self.left_videos != 0 or self.free_at is None:
            return None
        limit = self.quota.videos_per_day
        free_at = self.free_at.astimezone(UTC)
        words = PluralMessage(
            "This account has published %(videos)s video in the last 24 hours, and may "
            "publish %(limit)s. Publish the next one after %(day)s, %(time)s UTC, "
            "or ask an owner of this portal for more. A file that is uploaded already stays until "
            "then.",
            "This account has published %(videos)s videos in the last 24 hours, and may "
            "publish %(limit)s. Publish the next one after %(day)s, %(time)s UTC, "
            "or ask an owner of this portal for more. A file that is uploaded already stays until "
            "then.",
            count=self.videos,
            videos=numeral(self.videos),
            limit=numeral(limit),
            day=day_in_words(free_at),
            time=free_at.strftime("%H:%M"),
        )
        return VideoQuotaExceeded(
            words, limit=limit, used=self.videos, freeAt=f"{free_at:%Y-%m-%dT%H:%M:%S.%fZ}"
        )

    def require_room(self, size_bytes: int, *, is_removed: bool = False) -> None:
        """Raise `StorageQuotaExceeded` unless this size may be stored in addition.

        `is_removed` says that the file is uploaded already, and will be removed.
        """
        if self.left_bytes is None or size_bytes <= self.left_bytes:
            return
        limit = self.quota.stored_bytes
        words = self._no_room_words(size_bytes, is_removed=is_removed)
        raise StorageQuotaExceeded(words, limit=limit, used=self.stored_bytes)

    def _no_room_words(self, size_bytes: int, *, is_removed: bool) -> Message:
        facts = {
            "used": size_in_words(self.stored_bytes),
            "limit": size_in_words(self.quota.stored_bytes),
            "size": size_in_words(size_bytes),
        }
        if size_bytes <= 1:
            if is_removed:
                return Message(
                    "This account uses %(used)s of %(limit)s of storage: there is no room for a "
                    "file. The uploaded file was removed; upload it again once there is room. "
                    "Delete videos, or ask an owner of this portal for more.",
                    **facts,
                )
            return Message(
                "This account uses %(used)s of %(limit)s of storage: there is no room for a file. "
                "Delete videos, or ask an owner of this portal for more.",
                **facts,
            )
        if is_removed:
            return Message(
                "This account uses %(used)s of %(limit)s of storage: there is no room for this "
                "file of %(size)s. The uploaded file was removed; upload it again once there is "
                "room. Delete videos, or ask an owner of this portal for more.",
                **facts,
            )
        return Message(
            "This account uses %(used)s of %(limit)s of storage: there is no room for this file "
            "of %(size)s. Delete videos, or ask an owner of this portal for more.",
            **facts,
        )


NO_QUOTA = Quota()


async def usage_of(
    account_ids: Sequence[UUID], quota: Quota, *, without_upload: UUID | None = None
) -> dict[UUID, Usage]:
    """Return the usage by account, without that of the upload `without_upload`.

    An account that doesn't exist has none. A figure that `quota` doesn't limit is 0. Without any
    limit, the database is not asked, and each id has a usage of 0.
    """
    if not quota:
        return dict.fromkeys(account_ids, Usage(quota))
    limits = (quota.videos_per_day, quota.stored_bytes)
    rows = await fetch_rows(USAGE, *limits, without_upload, list(account_ids))
    return {row.pop("id"): Usage(quota, **row) for row in rows}


async def require_beginning(account_id: UUID | None, quota: Quota) -> None:
    """Check that an account may begin an upload of any size.

    Raise `VideoQuotaExceeded` or `StorageQuotaExceeded`.
    """
    usage = await _read_usage(account_id, quota)
    if refusal := usage.refusal():
        raise refusal
    usage.require_room(1)


async def require_start(
    account_id: UUID | None, quota: Quota, *, upload_id: UUID, size_bytes: int
) -> None:
    """Take room for an upload in parts of this size. Raises `StorageQuotaExceeded` without room.

    Call this in the transaction that records the announced size. Deleted videos can no longer be
    restored if they would then exceed the quota.
    """
    usage = await _lock_usage(account_id, quota, upload_id)
    await _take_room(account_id, usage, size_bytes)


async def video_refusal(
    account_id: UUID | None,
    quota: Quota,
    *,
    upload_id: UUID,
    size_bytes: int,
    is_announced: bool,
) -> VideoQuotaExceeded | None:
    """Return the error that refuses the video of an upload now; None if it may be published.

    Call this in the transaction that records the video. Commit before you raise the error, so that
    the file is kept for a day. Raises `StorageQuotaExceeded` if a file of unannounced size has no
    room; the caller then removes it. Taking the room may end the undo of deleted videos.
    """
    usage = await _lock_usage(account_id, quota, upload_id)
    if not is_announced:
        await _take_room(account_id, usage, size_bytes, is_removed=True)
    refusal = usage.refusal()
    if refusal:
        # From now on the size counts, and the janitor keeps the file for another day.
        await Upload.filter(id=upload_id).update(size_bytes=size_bytes, active_at=NOW)
    return refusal


async def require_video(account_id: UUID | None, quota: Quota) -> None:
    """Raise `VideoQuotaExceeded` unless an account may publish another video now.

    To be called in the transaction that records the video.
    """
    if refusal := (await _lock_usage(account_id, quota)).refusal():
        raise refusal


@asynccontextmanager
async def taking_room(account_id: UUID | None, quota: Quota) -> AsyncIterator[None]:
    """Check after the block that an account has storage for the rows which the block has written.

    Locks the account's usage before the block, so that concurrent transactions wait. A block that
    doesn't increase the usage always passes. Raises `StorageQuotaExceeded` if the rows exceed the
    quota; the caller's transaction then has to be rolled back.
    """
    before = await _lock_usage(account_id, quota)
    yield
    after = await _read_usage(account_id, quota)
    added_bytes = after.stored_bytes - before.stored_bytes
    if added_bytes > 0:
        await _take_room(account_id, before, added_bytes)


async def _lock_usage(
    account_id: UUID | None, quota: Quota, upload_id: UUID | None = None
) -> Usage:
    """Return an account's usage without this upload, locked until the end of the transaction."""
    if account_id and quota:
        await execute(LOCK, LOCK_CLASS, str(account_id))
    return await _read_usage(account_id, quota, without_upload=upload_id)


async def _take_room(
    account_id: UUID | None, usage: Usage, size_bytes: int, *, is_removed: bool = False
) -> None:
    """Require room. End the undo of deleted videos if restoring them would exceed the quota."""
    usage.require_room(size_bytes, is_removed=is_removed)
    left_bytes = usage.left_bytes
    if account_id and left_bytes is not None and size_bytes + usage.undoable_bytes > left_bytes:
        await execute(END_UNDO, account_id)


async def _read_usage(
    account_id: UUID | None, quota: Quota, *, without_upload: UUID | None = None
) -> Usage:
    if not (account_id and quota):
        return Usage(NO_QUOTA)
    usages = await usage_of([account_id], quota, without_upload=without_upload)
    # An account that has just been removed has no usage, and will record nothing.
    return usages.get(account_id, Usage(quota))
