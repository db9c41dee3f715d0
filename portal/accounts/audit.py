"""Queries of the audit log, which consists of the events that people and programs caused.

Entries are ordered by id, so that later entries don't move a page's contents.
"""

import json
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tortoise.expressions import Q
from tortoise.queryset import QuerySet

from portal.accounts.permissions import Principal
from portal.database.connection import IS_PRESENT, execute, fetch_rows
from portal.database.event_models import Event
from portal.events import log

# Actions of the portal itself, at the times of schedules. Its other events are outcomes of
# processing, which the log doesn't list.
OF_SCHEDULES = (log.AuditAction.ACCESS_CHANGED, log.AuditAction.VIDEO_DELETED)
# Entries of an export that are in memory at once.
BATCH = 500
PRUNE_BATCH = 10_000
# The last event of a video is kept, because the sequence number of the next one follows it.
PRUNE = """
DELETE FROM events WHERE id IN (
  SELECT id FROM events AS old WHERE at < now() - make_interval(days => %s)
    AND (type IS NULL OR at < now() - make_interval(days => %s))
    AND NOT EXISTS (SELECT FROM videos WHERE id = old.video_id AND NOT EXISTS (
      SELECT FROM events WHERE video_id = old.video_id AND sequence > old.sequence
    ))
  ORDER BY at LIMIT %s
)
"""
TITLES = f"SELECT id::text, title FROM videos WHERE id = ANY(%s::uuid[]) AND {IS_PRESENT}"  # noqa: S608  # a constant


def act_as(principal: Principal, *, address: str) -> None:
    """Set the actor of all events until the end of the current task."""
    if principal.account_id is None:
        kind = "anyone"
    else:
        kind = "person" if principal.scopes is None else "token"
    log.act_as(
        log.Actor(
            kind,
            principal.account_id,
            principal.email,
            principal.token_id,
            principal.token_name,
            address,
        )
    )


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Filter for entries; empty fields match every entry.

    `person` is the actor's email address. `thing` is an object's id or name, such as an account's
    email address.
    """

    action: str = ""
    person: str = ""
    thing: str = ""
    since: datetime | None = None

    @property
    def lines(self) -> QuerySet[Event]:
        """Return the matching entries, unordered."""
        is_of_others = Q(type__isnull=True) | ~Q(actor_kind=log.PORTAL.actor_kind)
        events = Event.filter(is_of_others | Q(action__in=OF_SCHEDULES))
        if self.action:
            events = events.filter(action=self.action)
        if self.person:
            events = events.filter(actor_email=self.person.lower())
        if self.thing:
            spellings = (self.thing, self.thing.lower())
            events = events.filter(Q(object_id__in=spellings) | Q(object_name__in=spellings))
        return events.filter(at__gte=self.since) if self.since else events


async def read_page(
    query: AuditQuery, *, limit: int, before: int | None = None
) -> tuple[list[Event], int | None]:
    """Return the newest entries with ids below `before`, newest first.

    The second value is the `before` of the next page; None on the last page.
    """
    lines = query.lines if before is None else query.lines.filter(id__lt=before)
    events = await lines.order_by("-id").limit(limit + 1)
    has_more = len(events) > limit
    return events[:limit], events[limit - 1].id if has_more else None


async def read_all(query: AuditQuery) -> AsyncIterator[Event]:
    """Yield all present entries, oldest first, in batches."""
    newest = await Event.all().order_by("-id").first()
    end = newest.id if newest else 0
    last = 0
    while events := await query.lines.filter(id__gt=last, id__lte=end).order_by("id").limit(BATCH):
        for event in events:
            yield event
        last = events[-1].id


async def titles_of(events: Collection[Event]) -> dict[str, str]:
    """Return the titles of the events' videos by id, without deleted videos."""
    ids = [
        event.object_id for event in events if event.action.startswith("video.") and event.object_id
    ]
    return {row["id"]: row["title"] for row in await fetch_rows(TITLES, ids)}


def json_line(event: Event) -> str:
    """Return an entry as JSON, in ASCII because some programs split lines at other characters."""
    return json.dumps(document(event))


def document(event: Event) -> dict[str, Any]:
    """Return an entry as JSON values."""
    return {
        "id": event.id,
        "at": event.at.isoformat(),
        "action": event.action,
        "actorKind": event.actor_kind,
        "actorId": event.actor_id and str(event.actor_id),
        "actorEmail": event.actor_email or None,
        "tokenId": event.token_id and str(event.token_id),
        "tokenName": event.token_name or None,
        "address": event.address or None,
        "objectId": event.object_id,
        "objectName": event.object_name or None,
        "detail": event.detail,
    }


async def prune(*, keep_days: int) -> int:
    """Delete entries older than `keep_days`, in batches; return how many.

    Events of videos are kept for `LISTED_DAYS` at least, for their readers.
    """
    pruned = 0
    while batch := await execute(PRUNE, keep_days, log.LISTED_DAYS, PRUNE_BATCH):
        pruned += batch
    return pruned
