"""Events of videos in their order, for one reader or for all.

Numbers ascend in the order of commits, so a reader who has all events up to one has missed none.

A reader receives an event if they could see the video when it happened, and can see it now. The
event that hid the video from the reader is `video.deleted` to them.
"""

from collections.abc import Callable, Collection

from psycopg import sql
from pydantic import Field

from portal.accounts.permissions import Audience, Principal, audience_in, listed_for
from portal.config import Config
from portal.database.connection import IS_PRESENT, Row, fetch_rows, run_query, sql_with
from portal.database.event_models import EVENT_ID_PREFIX
from portal.errors import EventsExpired
from portal.events.log import LISTED_DAYS, EventType
from portal.events.records import (
    AUDIENCE_COLUMNS,
    DETAILS,
    DeletedVideo,
    FailedImport,
    Shape,
    Time,
    VideoDetails,
    VideoWithPassthrough,
    audience_columns,
    details_of,
)

NEWEST = "SELECT coalesce(max(number), 0) AS number FROM events WHERE type IS NOT NULL"
# A reader that has the newest event has missed none, however old that event is.
IS_KEPT = """
SELECT FROM events WHERE number = %s AND (
  at > now() - make_interval(days => %s) OR number = (SELECT max(number) FROM events)
)
"""
# `present` has the columns of the video that readers receive beside its record; it is null once the
# video is deleted.
AFTER = f"""
SELECT number, type, at, sequence, events.video_id::text, data, was, to_jsonb(present) AS present
FROM events LEFT JOIN LATERAL (
  SELECT {", ".join((*AUDIENCE_COLUMNS, *DETAILS))} FROM videos
  WHERE id = events.video_id AND {IS_PRESENT}
) present ON true
WHERE number > {{after}} AND {{condition}}
ORDER BY number LIMIT {{limit}}
"""  # noqa: S608 - put together from constants
# Audience that is kept in JSON, as columns.
AUDIENCE_RECORD = ", ".join(f"{name} {kind}" for name, kind in AUDIENCE_COLUMNS.items())
# Condition that a reader could see the video, or the failed import, after the event.
COULD_SEE = f"""
EXISTS (SELECT FROM jsonb_to_record(data) AS audience ({AUDIENCE_RECORD}) WHERE {{listed}})
"""
# The rule of `as_seen_by` in SQL, so that pages of lists are full.
IS_READ = f"""
CASE
  WHEN type <> 'video.deleted' AND {{could_see}}
    THEN type = 'import.failed' OR present.visibility IS NOT NULL AND {{listed}}
  ELSE was IS NOT NULL AND EXISTS (
    SELECT FROM jsonb_to_record(was) AS audience ({AUDIENCE_RECORD}) WHERE {{listed}}
  )
END
"""
LISTED = (
    "number <= {newest} AND at > now() - make_interval(days => {days}) AND {read} AND {of_types}"
)
# The type with which `as_seen_by` returns an event.
IS_OF_TYPES = "CASE WHEN {could_see} THEN type ELSE 'video.deleted' END = ANY({types})"


class VideoEvent(Shape):
    """Something that happened to a video or to an import."""

    id: str = Field(description="Unique identifier, which `after` and Last-Event-ID take.")
    type: EventType = Field(description="What happened.")
    timestamp: Time = Field(description="Time of the event.")
    sequence: int = Field(description="Ascends among the events of a video.")
    data: VideoWithPassthrough | FailedImport | DeletedVideo = Field(
        description="The video's record after it, or why the import failed."
    )
    details: VideoDetails | None = Field(
        description="What the video is now, beside its record; null once it is gone."
    )


def as_seen_by(sees: Callable[[Audience], bool], event: Row) -> Row | None:
    """Return an event as it is sent to a reader; None if it isn't sent to them.

    `sees` tells whether the reader sees an audience. If they see the one after the event, they must
    also see the present one, which `data` gets; a failed import is returned unchanged. If they
    don't, but saw the one before the event (`was`), the returned type is `video.deleted`.
    """
    if event["type"] != EventType.DELETED and sees(audience_in(event["data"])):
        if event["type"] == EventType.IMPORT_FAILED:
            return event
        present = event["present"]
        if not present or not sees(audience_in(present)):
            return None
        return {**event, "data": event["data"] | audience_columns(present)}
    if event["was"] is None or not sees(audience_in(event["was"])):
        return None
    return {**event, "type": EventType.DELETED.value, "present": None}


def record_in(event: Row) -> Row | None:
    """Return the columns of the video in an event; None for a deletion and a failed import."""
    if event["type"] in (EventType.IMPORT_FAILED, EventType.DELETED):
        return None
    record: Row = event["data"]
    return record


def shown_event(event: Row, config: Config, *, playback_url: str) -> VideoEvent:
    """Return an event, after `as_seen_by`, as programs receive it.

    `playback_url` is the address to play its video from, as far as the reader receives one.
    """
    data: VideoWithPassthrough | FailedImport | DeletedVideo
    details = None
    if record := record_in(event):
        data = VideoWithPassthrough(**record, playback_url=playback_url)
        details = details_of(config, record["id"], event["present"])
    elif event["type"] == EventType.IMPORT_FAILED:
        data = FailedImport(**event["data"])
    else:
        data = DeletedVideo(id=event["video_id"])
    return VideoEvent(
        id=f"{EVENT_ID_PREFIX}{event['number']}",
        type=event["type"],
        timestamp=event["at"],
        sequence=event["sequence"],
        data=data,
        details=details,
    )


async def newest_number() -> int:
    """Return the number of the last event so far; 0 before the first."""
    [row] = await fetch_rows(NEWEST)
    number: int = row["number"]
    return number


async def list_events(
    seen_by: Principal, *, after: int | None, limit: int, types: Collection[EventType] = ()
) -> tuple[list[Row], int]:
    """Return the events after a number, or from the oldest that is kept, as `seen_by` reads them.

    And the number after which to go on. Without `types` events of all types are returned. Raises
    `EventsExpired`.
    """
    if after is not None:
        await require_kept(after)
    # Read before the events: an event that arrives meanwhile belongs to the next page.
    newest = await newest_number()
    listed = listed_for(seen_by)
    could_see = sql_with(COULD_SEE, listed=listed)
    of_types: sql.Composable = sql.SQL("true")
    if types:
        of_types = sql_with(IS_OF_TYPES, could_see=could_see, types=[kind.value for kind in types])
    read = sql_with(IS_READ, listed=listed, could_see=could_see)
    condition = sql_with(LISTED, newest=newest, days=LISTED_DAYS, read=read, of_types=of_types)
    rows = await _fetch_events(after or 0, condition, limit)
    is_full = len(rows) == limit
    next_after: int = rows[-1]["number"] if is_full else max(newest, after or 0)
    return [event for row in rows if (event := as_seen_by(seen_by.may_list, row))], next_after


async def require_kept(number: int) -> None:
    """Raise `EventsExpired` when some of the events after this number may be gone."""
    if number and not await fetch_rows(IS_KEPT, number, LISTED_DAYS):
        raise EventsExpired


async def fetch_after(number: int, *, video_id: str = "", limit: int) -> list[Row]:
    """Return the events after a number, of one video or of all, for `as_seen_by`."""
    of_video = sql_with("events.video_id = {id}" if video_id else "true", id=video_id)
    return await _fetch_events(number, of_video, limit)


async def read_event(number: int, *, seen_by: Principal) -> Row | None:
    """Return one event as `seen_by` reads it; None if it is hidden from them, or deleted."""
    rows = await _fetch_events(number - 1, sql_with("number = {number}", number=number), 1)
    return as_seen_by(seen_by.may_list, rows[0]) if rows else None


async def _fetch_events(after: int, condition: sql.Composable, limit: int) -> list[Row]:
    return await run_query(sql_with(AFTER, after=after, limit=limit, condition=condition))
