"""The audit log, as it is read: a page at a time, the newest line first, or all of it.

Lines are told apart and ordered by their numbers, so that a page is the same however many lines are
added meanwhile.
"""

import json
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tortoise.expressions import Q
from tortoise.queryset import QuerySet

from portal.accounts import audit_rows
from portal.database.account_models import AuditEvent

# Of an export: what is in memory at once.
BATCH = 500


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which lines are asked for; what is empty is any.

    `person` is the e-mail address of who acted. `thing` is an object's id or name, such as an
    account's e-mail address.
    """

    action: str = ""
    person: str = ""
    thing: str = ""
    since: datetime | None = None

    @property
    def lines(self) -> QuerySet[AuditEvent]:
        """Those lines, in no order."""
        found = AuditEvent.all()
        if self.action:
            found = found.filter(action=self.action)
        if self.person:
            found = found.filter(actor_email=self.person.lower())
        if self.thing:
            spellings = (self.thing, self.thing.lower())
            found = found.filter(Q(object_id__in=spellings) | Q(object_name__in=spellings))
        return found.filter(at__gte=self.since) if self.since else found


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some lines, the newest first, and the number before which older ones go on, if there are."""

    events: Sequence[AuditEvent]
    older: int | None


async def read_page(query: AuditQuery, *, limit: int, before: int | None = None) -> AuditPage:
    """The newest lines, of those with smaller numbers than `before` if it is given."""
    lines = query.lines if before is None else query.lines.filter(id__lt=before)
    found = await lines.order_by("-id").limit(limit + 1)
    events = found[:limit]
    return AuditPage(events, events[-1].id if len(found) > limit else None)


async def read_all(query: AuditQuery) -> AsyncIterator[AuditEvent]:
    """All lines that are there now, the oldest first, some at a time."""
    newest = await AuditEvent.all().order_by("-id").first()
    last, end = 0, newest.id if newest else 0
    while events := await _after(query, last, end):
        for event in events:
            yield event
        last = events[-1].id


async def titles_of(events: Collection[AuditEvent]) -> dict[str, tuple[str, bool]]:
    """What the videos of these lines are called, and whether they are there, by id."""
    ids = {it.object_id for it in events if it.action.startswith("video.") and it.object_id}
    gone = {row["id"]: (row["title"], False) for row in await audit_rows.last_titles(ids)}
    there = {row["id"]: (row["title"], True) for row in await audit_rows.titles(ids)}
    return gone | there


def json_line(event: AuditEvent) -> str:
    """A line as JSON, in ASCII: some tell lines apart by more than their ends."""
    return json.dumps(document(event))


def document(event: AuditEvent) -> dict[str, Any]:
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


async def _after(query: AuditQuery, last: int, end: int) -> list[AuditEvent]:
    lines = query.lines.filter(id__gt=last, id__lte=end)
    return await lines.order_by("id").limit(BATCH)
