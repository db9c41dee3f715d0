"""The audit log: who did what to which object, from where; read from the events that people made.

Lines are ordered by their numbers, so that a page is the same however many lines are added
meanwhile.
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

# Lines of an export that are in memory at once.
BATCH = 500
PRUNE_BATCH = 10_000
# The last event of a video stays: the next one counts on from it.
PRUNE = """
DELETE FROM events WHERE id IN (
  SELECT id FROM events AS old WHERE at < now() - make_interval(days => %s)
    AND NOT EXISTS (SELECT FROM videos WHERE id = old.video_id AND NOT EXISTS (
      SELECT FROM events WHERE video_id = old.video_id AND sequence > old.sequence
    ))
  ORDER BY at LIMIT %s
)
"""
TITLES = f"SELECT id::text, title FROM videos WHERE id = ANY(%s::uuid[]) AND {IS_PRESENT}"  # noqa: S608  # a constant


def act_as(principal: Principal, *, address: str) -> None:
    """Say who acts until the current task ends. Anyone has no account: before signing in, say."""
    if principal.account_id is None:
        kind = "anyone"
    else:
        kind = "person" if principal.scopes is None else "token"
    who = (principal.account_id, principal.email, principal.token_id, principal.token_name)
    log.act_as(log.Actor(kind, *who, address))


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which lines are asked for; what is empty is any.

    `person` is the email address of who acted. `thing` is an object's id or name, such as an
    account's email address.
    """

    action: str = ""
    person: str = ""
    thing: str = ""
    since: datetime | None = None

    @property
    def lines(self) -> QuerySet[Event]:
        """Those lines, in no order."""
        found = Event.filter(Q(type__isnull=True) | ~Q(actor_kind=log.PORTAL.actor_kind))
        if self.action:
            found = found.filter(action=self.action)
        if self.person:
            found = found.filter(actor_email=self.person.lower())
        if self.thing:
            spellings = (self.thing, self.thing.lower())
            found = found.filter(Q(object_id__in=spellings) | Q(object_name__in=spellings))
        return found.filter(at__gte=self.since) if self.since else found


async def read_page(
    query: AuditQuery, *, limit: int, before: int | None = None
) -> tuple[list[Event], int | None]:
    """The newest lines, of those with smaller numbers than `before` if it is given.

    And the number before which older ones go on, if there are any.
    """
    lines = query.lines if before is None else query.lines.filter(id__lt=before)
    found = await lines.order_by("-id").limit(limit + 1)
    events = found[:limit]
    return events, events[-1].id if len(found) > limit else None


async def read_all(query: AuditQuery) -> AsyncIterator[Event]:
    """All lines that are there now, the oldest first, some at a time."""
    newest = await Event.all().order_by("-id").first()
    last, end = 0, newest.id if newest else 0
    while events := await query.lines.filter(id__gt=last, id__lte=end).order_by("id").limit(BATCH):
        for event in events:
            yield event
        last = events[-1].id


async def titles_of(events: Collection[Event]) -> dict[str, str]:
    """The titles of the videos that these lines are about, by id; deleted ones have none."""
    ids = {it.object_id for it in events if it.action.startswith("video.") and it.object_id}
    return {row["id"]: row["title"] for row in await fetch_rows(TITLES, list(ids))}


def json_line(event: Event) -> str:
    """A line as JSON, in ASCII: some readers split lines at more than line feeds."""
    return json.dumps(document(event))


def document(event: Event) -> dict[str, Any]:
    """A line for programs; values are of JSON."""
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
    """Delete lines that are older than this, in batches; returns how many."""
    pruned = 0
    while batch := await execute(PRUNE, keep_days, PRUNE_BATCH):
        pruned += batch
    return pruned
