"""Quotas: how many videos an account may publish in 24 hours, and how much it may keep in storage.

They are checked when an upload begins and when it ends. What is recorded under a quota is decided
in the transaction that records it, for an account one after the other: of many at once exactly as
many get through as fit. A portal without accounts has no quotas. Sizes are in bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from portal.config import Config
from portal.database.connection import execute, fetch_rows
from portal.errors import StorageQuotaExceeded, VideoQuotaExceeded
from portal.text import size_in_words

# The first of two keys of an advisory lock: any number that no other one has. It is no lock of the
# account's row, which every request that notes its use would wait for.
LOCK_CLASS = 730_681
LOCK = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"
# Deleted videos count until their day is over: their tombstones are kept for longer. An upload in
# parts counts as announced until it is a video. What has no limit is not looked at.
USAGE = """
SELECT account.id, published.videos, kept.stored_bytes, kept.undoable_bytes,
       published.latest[quota.videos] + interval '24 hours' AS free_at
FROM accounts account
CROSS JOIN (SELECT %s::int AS videos, %s::bigint AS stored_bytes) quota
CROSS JOIN LATERAL (
  SELECT count(*) AS videos, array_agg(at ORDER BY at DESC) AS latest
  FROM (
    SELECT created_at AS at FROM videos
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
    SELECT size_bytes, deleted_at FROM videos WHERE owner_id = account.id
    UNION ALL
    SELECT rendition.size_bytes, video.deleted_at FROM videos video
    JOIN renditions rendition ON rendition.video_id = video.id
    WHERE video.owner_id = account.id
    UNION ALL
    SELECT track.size_bytes, video.deleted_at FROM videos video
    JOIN captions track ON track.video_id = video.id
    WHERE video.owner_id = account.id
    UNION ALL
    SELECT size_bytes, NULL FROM uploads
    WHERE owner_id = account.id AND size_bytes IS NOT NULL AND NOT is_discarded AND key <> %s
      AND NOT EXISTS (SELECT FROM videos WHERE storage_key = key)
  ) file
  WHERE quota.stored_bytes > 0
) kept
WHERE account.id = ANY(%s)
"""
# By more than the time there is to undo it.
END_UNDO = """
UPDATE videos SET deleted_at = deleted_at - interval '1 hour'
WHERE owner_id = %s AND deleted_at IS NOT NULL
"""
REMOVED = "The uploaded file was removed; upload it again once there is room. "


@dataclass(frozen=True, slots=True)
class Quota:
    """What each account may have; 0 is any number."""

    videos_per_day: int = 0
    stored_bytes: int = 0

    @classmethod
    def of(cls, config: Config) -> "Quota":
        """The configured one."""
        return cls(config.max_videos_per_day, config.max_stored_bytes)

    def __bool__(self) -> bool:
        return self.videos_per_day > 0 or self.stored_bytes > 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What an account has published in the last 24 hours and keeps, as far as that is limited.

    `free_at` is when it may publish again; None if that is now. `undoable_bytes` are of deleted
    videos that can be brought back: their room is free for something new.
    """

    quota: Quota
    videos: int = 0
    stored_bytes: int = 0
    undoable_bytes: int = 0
    free_at: datetime | None = None

    @property
    def left_videos(self) -> int | None:
        """How many more may be published now; None for any number."""
        limit = self.quota.videos_per_day
        return max(0, limit - self.videos) if limit else None

    @property
    def left_bytes(self) -> int | None:
        """How much more may be stored; None for any size."""
        limit = self.quota.stored_bytes
        return max(0, limit - self.stored_bytes) if limit else None

    def refusal(self) -> VideoQuotaExceeded | None:
        """Why no video may be published now, if that is so."""
        if self.left_videos != 0 or self.free_at is None:
            return None
        limit, at = self.quota.videos_per_day, self.free_at.astimezone(UTC)
        words = (
            f"This account has published {counted(self.videos)} in the last 24 hours, and may "
            f"publish {limit:,}. The next has room after {at.day} {at:%b, %H:%M} UTC; or ask an "
            "owner of this portal for more. A file that is uploaded already stays until then."
        )
        free_at = f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"
        return VideoQuotaExceeded(words, limit=limit, used=self.videos, freeAt=free_at)

    def require_room(self, size_bytes: int, *, is_removed: bool = False) -> None:
        """Raise `StorageQuotaExceeded` unless so much more may be stored."""
        if self.left_bytes is None or size_bytes <= self.left_bytes:
            return
        limit, used = self.quota.stored_bytes, self.stored_bytes
        what = f"this file of {size_in_words(size_bytes)}" if size_bytes > 1 else "a file"
        words = (
            f"This account uses {size_in_words(used)} of {size_in_words(limit)} of storage: there "
            f"is no room for {what}. {REMOVED if is_removed else ''}Delete videos, or ask an owner "
            "of this portal for more."
        )
        raise StorageQuotaExceeded(words, limit=limit, used=used)


NO_QUOTA = Quota()


def counted(videos: int) -> str:
    """So many videos in words."""
    return "1 video" if videos == 1 else f"{videos:,} videos"


async def usage_of(
    account_ids: Sequence[UUID], quota: Quota, *, without_key: str = ""
) -> dict[UUID, Usage]:
    """What each of these accounts has used, without the upload with this key.

    Nothing is read without a quota.
    """
    if not quota:
        return dict.fromkeys(account_ids, Usage(quota))
    limits = (quota.videos_per_day, quota.stored_bytes)
    rows = await fetch_rows(USAGE, *limits, without_key, list(account_ids))
    return {row.pop("id"): Usage(quota, **row) for row in rows}


async def require_beginning(account_id: UUID | None, quota: Quota) -> None:
    """Raise unless an upload of some size may begin now.

    Raises `VideoQuotaExceeded` or `StorageQuotaExceeded`.
    """
    usage = await _usage(account_id, quota)
    if refusal := usage.refusal():
        raise refusal
    usage.require_room(1)


async def require_start(
    account_id: UUID | None, quota: Quota, *, key: str, size_bytes: int
) -> None:
    """Raise `StorageQuotaExceeded` unless an upload in parts of this size fits.

    Runs in the transaction that records the size, from when on it counts as stored.
    """
    usage = await _locked_usage(account_id, quota, key=key)
    await _take_room(account_id, usage, size_bytes)


async def video_refusal(
    account_id: UUID | None, quota: Quota, *, key: str, size_bytes: int, is_announced: bool
) -> VideoQuotaExceeded | None:
    """Why no video may be made of an upload now, which is then kept until it may; None if it may.

    Runs in the transaction that records the video. What was announced has had its room since then.
    Raises `StorageQuotaExceeded` for a file without, which is to be removed.
    """
    usage = await _locked_usage(account_id, quota, key=key)
    if not is_announced:
        await _take_room(account_id, usage, size_bytes, is_removed=True)
    refusal = usage.refusal()
    if refusal:
        # Its size counts from now on, and the janitor leaves it for another day.
        keep = "UPDATE uploads SET size_bytes = %s, active_at = now() WHERE key = %s"
        await execute(keep, size_bytes, key)
    return refusal


async def _locked_usage(account_id: UUID | None, quota: Quota, *, key: str) -> Usage:
    """The usage of an account without this upload, while nobody else adds to it."""
    if account_id and quota:
        await execute(LOCK, LOCK_CLASS, str(account_id))
    return await _usage(account_id, quota, key=key)


async def _take_room(
    account_id: UUID | None, usage: Usage, size_bytes: int, *, is_removed: bool = False
) -> None:
    """Require room, and end what can be undone where this takes its: undoing would exceed it."""
    usage.require_room(size_bytes, is_removed=is_removed)
    left_bytes = usage.left_bytes
    if account_id and left_bytes is not None and size_bytes + usage.undoable_bytes > left_bytes:
        await execute(END_UNDO, account_id)


async def _usage(account_id: UUID | None, quota: Quota, *, key: str = "") -> Usage:
    if not (account_id and quota):
        return Usage(NO_QUOTA)
    # An account that was removed this moment has nothing, and will record nothing.
    return (await usage_of([account_id], quota, without_key=key)).get(account_id, Usage(quota))
