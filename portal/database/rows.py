"""What the transactions and queries of several features share."""

from collections.abc import AsyncIterator
from uuid import UUID

from tortoise.expressions import RawSQL

from portal.database.connection import Row, fetch_rows
from portal.database.models import Video

# The database's clock: the one that all machines of a portal share.
NOW = RawSQL("now()")
# Of videos, for what people and programs see: see `Video.present`.
IS_PRESENT = "deleted_at IS NULL"
# Of attempts: whether the worker that made one still renews its lease. Times are the database's.
IS_LIVE = "lease_expires_at > now()"
# One that a worker makes at this moment; one whose lease ran out is not under way.
IS_UNDER_WAY = f"outcome IS NULL AND {IS_LIVE}"
# Joins `video` with the columns of that attempt.
JOIN_ATTEMPT = f"""
LEFT JOIN LATERAL (
  SELECT * FROM attempts WHERE video_id = video.id AND {IS_UNDER_WAY} ORDER BY number DESC LIMIT 1
) attempt ON true
"""  # noqa: S608 - put together from constants
# What ids in order are read from.
FIRST_ID = str(UUID(int=0))


async def lock_video(video_id: UUID) -> Video | None:
    """The video, deleted or not, locked until the end of the current transaction."""
    return await Video.filter(id=video_id).select_for_update().get_or_none()


async def lock_present(video_id: UUID) -> Video | None:
    """As `lock_video`; None for a deleted one."""
    return await Video.present().filter(id=video_id).select_for_update().get_or_none()


async def rows_by_key(
    query: str, *values: object, first: str = FIRST_ID, page: int
) -> AsyncIterator[Row]:
    """The rows of a query, a page at a time, by their ascending column `key`.

    It takes the values, the key after which to go on, and a limit.
    """
    last, is_more = first, True
    while is_more:
        rows = await fetch_rows(query, *values, last, page)
        for row in rows:
            yield row
        is_more = len(rows) == page
        last = rows[-1]["key"] if rows else last
