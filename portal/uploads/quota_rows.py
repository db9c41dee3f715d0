"""The SQL of quotas: what accounts have published in the last 24 hours, and what they keep."""

from collections.abc import Sequence
from uuid import UUID

from portal.database.connection import Row, execute, fetch_rows

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
    SELECT size_bytes, NULL FROM uploads
    WHERE owner_id = account.id AND size_bytes IS NOT NULL AND NOT is_discarded AND key <> %s
      AND NOT EXISTS (SELECT FROM videos WHERE storage_key = key)
  ) file
  WHERE quota.stored_bytes > 0
) kept
WHERE account.id = ANY(%s)
"""
# Its size counts from now on, and the janitor leaves it for another day.
KEEP = "UPDATE uploads SET size_bytes = %s, active_at = now() WHERE key = %s"
# By more than the time there is to undo it.
END_UNDO = """
UPDATE videos SET deleted_at = deleted_at - interval '1 hour'
WHERE owner_id = %s AND deleted_at IS NOT NULL
"""


async def lock(account_id: UUID) -> None:
    """Let nobody else use more of an account's quotas until the end of the transaction."""
    await execute(LOCK, LOCK_CLASS, str(account_id))


async def usage(
    account_ids: Sequence[UUID], max_videos: int, max_bytes: int, *, without_key: str = ""
) -> list[Row]:
    """What these accounts have used of these limits, without the upload with this key."""
    return await fetch_rows(USAGE, max_videos, max_bytes, without_key, list(account_ids))


async def keep(key: str, size_bytes: int) -> None:
    """Keep the file of an upload until a video may be made of it."""
    await execute(KEEP, size_bytes, key)


async def end_undo(account_id: UUID) -> None:
    """Make an account's deletions final: none can be undone from now on."""
    await execute(END_UNDO, account_id)
