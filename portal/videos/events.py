"""The events of videos, in their order, from a place on: as somebody may see them, or all.

Numbers are given as transactions commit, so whoever knows all up to one has missed none.
"""

from psycopg import sql

from portal.accounts.permissions import Principal
from portal.database.connection import Row, fetch_rows, run_query, sql_with
from portal.errors import EventsExpired
from portal.videos.library import listed_for

# Older ones are not told any more.
KEEP_DAYS = 30
NEWEST = "SELECT coalesce(max(number), 0) AS number FROM events WHERE type IS NOT NULL"
# After the newest nothing can be missed, however old it is.
IS_KEPT = """
SELECT FROM events WHERE number = %s AND (
  at > now() - make_interval(days => %s) OR number = (SELECT max(number) FROM events)
)
"""
# Of what was deleted before it had an event there is no record: that is for who sees all.
AFTER = """
SELECT number, type, at, sequence, video_id::text, data,
       coalesce(visibility, 'private') AS visibility,
       coalesce(signed_in_only, false) AS signed_in_only, owner_id
FROM events, jsonb_to_record(data)
  AS record (visibility text, signed_in_only boolean, owner_id uuid)
WHERE number > {after} AND {wanted}
ORDER BY number LIMIT {limit}
"""
LISTED = "number <= {newest} AND at > now() - make_interval(days => {days}) AND {listed}"


async def newest_number() -> int:
    """Of the last event so far; 0 before the first."""
    [row] = await fetch_rows(NEWEST)
    number: int = row["number"]
    return number


async def list_events(
    seen_by: Principal, *, after: int | None, limit: int
) -> tuple[list[Row], int]:
    """The events after this number, or from the oldest that is kept, that who asks may see.

    And the number after which to go on. `data` has the columns of `reading.RECORDS`. Raises
    `EventsExpired`.
    """
    if after is not None:
        await require_kept(after)
    # Read first: what comes later is on the next page.
    newest = await newest_number()
    listed = sql_with(LISTED, newest=newest, days=KEEP_DAYS, listed=listed_for(seen_by))
    events = await _fetch(after or 0, listed, limit)
    is_full = len(events) == limit
    return events, events[-1]["number"] if is_full else max(newest, after or 0)


async def require_kept(number: int) -> None:
    """Raise `EventsExpired` when some of the events after this number may be gone."""
    if number and not await fetch_rows(IS_KEPT, number, KEEP_DAYS):
        raise EventsExpired


async def fetch_after(number: int, *, video_id: str = "", limit: int) -> list[Row]:
    """The events after this number, of one video or of all, whoever may see them.

    Each has the columns of `reading.audience_of` beside those of `list_events`.
    """
    of_video = sql_with("video_id = {id}" if video_id else "true", id=video_id)
    return await _fetch(number, of_video, limit)


async def read_event(number: int, *, seen_by: Principal) -> Row | None:
    """One event, as `list_events` has them; None if it is not for who asks, or kept no more."""
    wanted = sql_with("number = {it} AND {listed}", it=number, listed=listed_for(seen_by))
    found = await _fetch(number - 1, wanted, 1)
    return found[0] if found else None


async def _fetch(after: int, wanted: sql.Composable, limit: int) -> list[Row]:
    return await run_query(sql_with(AFTER, after=after, limit=limit, wanted=wanted))
