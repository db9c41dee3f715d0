"""The events of videos, as far as somebody may see the video: in their order, from a place on.

Numbers are given as transactions commit, so whoever knows all up to one has missed none.
"""

from dataclasses import dataclass

from psycopg import sql

from portal.accounts.permissions import Principal
from portal.database.connection import Row, fetch_rows
from portal.errors import EventsExpired
from portal.videos.library import listed_for, run_query

# Older ones are not told any more.
KEEP_DAYS = 30
NEWEST = "SELECT coalesce(max(number), 0) AS number FROM events WHERE type IS NOT NULL"
IS_KEPT = """
SELECT FROM events WHERE number = %s AND at > now() - make_interval(days => %s)
"""
AFTER = """
SELECT number, type, at, sequence, video_id::text, data
FROM events, jsonb_to_record(data)
  AS record (visibility text, signed_in_only boolean, owner_id uuid)
WHERE number > {after} AND number <= {newest} AND at > now() - make_interval(days => {days})
  AND {listed}
ORDER BY number LIMIT {limit}
"""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, the oldest first, and the number after which to go on."""

    events: list[Row]
    next_after: int


async def newest_number() -> int:
    """Of the last event so far; 0 before the first."""
    [row] = await fetch_rows(NEWEST)
    number: int = row["number"]
    return number


async def list_events(seen_by: Principal, *, after: int | None, limit: int) -> EventPage:
    """The events after this number, or from the oldest that is kept.

    `data` has the columns of `reading.RECORDS`. Raises `EventsExpired` when some of those after the
    number may be gone.
    """
    if after and not await fetch_rows(IS_KEPT, after, KEEP_DAYS):
        raise EventsExpired
    # Read first: what comes later is on the next page.
    newest = await newest_number()
    values = {"after": after or 0, "newest": newest, "days": KEEP_DAYS, "limit": limit}
    query = sql.SQL(AFTER).format(
        **{name: sql.Literal(it) for name, it in values.items()}, listed=listed_for(seen_by)
    )
    events = await run_query(query)
    is_full = len(events) == limit
    return EventPage(events, events[-1]["number"] if is_full else max(newest, after or 0))
