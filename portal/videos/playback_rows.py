"""The SQL of playback links and of the keys that sign their addresses."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from portal.database.connection import Row, execute, fetch_rows

# Two who make keys do so one after the other: else both might make the first one.
LOCK_KEYS = "LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE"
# The clock's time, since a transaction may have waited for that lock.
KEYS = """
SELECT kid, secret, extract(epoch FROM clock_timestamp() - created_at)::float8 AS age_s
FROM signing_keys
"""
# Nobody removes a key while a link is made with it.
KEPT_KEYS = f"{KEYS} FOR KEY SHARE"
LISTED_KEYS = """
SELECT kid, created_at, retired_at,
       extract(epoch FROM clock_timestamp() - created_at)::float8 AS age_s,
       (SELECT count(*) FROM playback_links link
        WHERE link.kid = signing_keys.kid AND link.expires_at > now()) AS links
FROM signing_keys ORDER BY created_at DESC, kid
"""
RETIRE_KEYS = "UPDATE signing_keys SET retired_at = clock_timestamp() WHERE retired_at IS NULL"
# With all links that they signed.
REMOVE_KEYS = "DELETE FROM signing_keys"
ADD_KEY = "INSERT INTO signing_keys (kid, secret, created_at) VALUES (%s, %s, clock_timestamp())"
ADD_LINK = """
INSERT INTO playback_links (id, video_id, kid, made_by_id, created_at, expires_at)
VALUES (%s, %s, %s, %s, %s, %s)
"""
COUNT_LINKS = "SELECT count(*) AS links FROM playback_links WHERE video_id = %s AND expires_at > %s"
LINKS = """
SELECT link.id, link.video_id, video.published_attempt, link.kid, link.created_at, link.expires_at,
       account.email AS made_by
FROM playback_links link JOIN videos video ON video.id = link.video_id
LEFT JOIN accounts account ON account.id = link.made_by_id
WHERE link.video_id = %s AND link.expires_at > %s
ORDER BY link.created_at DESC, link.id
"""
REMOVE_LINK = "DELETE FROM playback_links WHERE id = %s AND video_id = %s AND expires_at > %s"
LIVE_LINKS = "SELECT id, video_id FROM playback_links WHERE id = ANY(%s) AND expires_at > now()"
EXPIRED_LINKS = "DELETE FROM playback_links WHERE expires_at < now()"
UNUSED_KEYS = """
DELETE FROM signing_keys
WHERE retired_at < now() - %s * interval '1 second'
  AND NOT EXISTS (SELECT FROM playback_links link WHERE link.kid = signing_keys.kid)
"""


async def lock_keys() -> None:
    """Let nobody else make or retire keys until the end of the transaction."""
    await execute(LOCK_KEYS)


async def fetch_keys() -> list[Row]:
    """All keys: `kid`, `secret` and `age_s`."""
    return await fetch_rows(KEYS)


async def keep_keys() -> list[Row]:
    """As `fetch_keys`; none of them is removed before the end of the transaction."""
    return await fetch_rows(KEPT_KEYS)


async def list_keys() -> list[Row]:
    """All keys without their secrets, the newest first, each with the number of its live links."""
    return await fetch_rows(LISTED_KEYS)


async def retire_keys() -> None:
    """Mark all keys as replaced."""
    await execute(RETIRE_KEYS)


async def remove_keys() -> None:
    """Delete all keys, and every link."""
    await execute(REMOVE_KEYS)


async def add_key(kid: str, secret: bytes) -> None:
    """Record a new key."""
    await execute(ADD_KEY, kid, secret)


async def add_link(
    link_id: UUID,
    *,
    video_id: UUID,
    kid: str,
    made_by_id: UUID | None,
    created_at: datetime,
    expires_at: datetime,
) -> None:
    """Record a new link, whose address the key with this id signs."""
    await execute(ADD_LINK, link_id, video_id, kid, made_by_id, created_at, expires_at)


async def count_links(video_id: UUID, *, now: datetime) -> int:
    """How many links of a video work."""
    [row] = await fetch_rows(COUNT_LINKS, video_id, now)
    return int(row["links"])


async def list_links(video_id: UUID, *, now: datetime) -> list[Row]:
    """The links of a video that work, the newest first."""
    return await fetch_rows(LINKS, video_id, now)


async def remove_link(link_id: UUID, *, video_id: UUID, now: datetime) -> bool:
    """Delete a link of this video; False if there is none that works."""
    return bool(await execute(REMOVE_LINK, link_id, video_id, now))


async def fetch_live_links(link_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The videos of those of these links that work: neither run out nor revoked."""
    rows = await fetch_rows(LIVE_LINKS, list(link_ids))
    return {row["id"]: row["video_id"] for row in rows}


async def forget_unused(*, keep_keys_s: int) -> None:
    """Delete links that have run out, and keys that were retired this long ago and have none."""
    await execute(EXPIRED_LINKS)
    await execute(UNUSED_KEYS, keep_keys_s)
