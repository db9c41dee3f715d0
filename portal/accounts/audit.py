"""The audit log: who did what to which object, from where.

A use case calls `note` inside the transaction that makes its change, so that a line is there
exactly if the change is. The web says who acts, by `act_as`; what is done without that is done by
a command. Lines are ordered by their numbers, so that a page is the same however many lines are
added meanwhile.
"""

import json
import logging
from collections.abc import AsyncIterator, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from tortoise.expressions import Q
from tortoise.queryset import QuerySet

from portal.accounts.permissions import ANYONE, Principal
from portal.database.account_models import Account, AuditEvent
from portal.database.connection import IS_PRESENT, execute, fetch_rows

logger = logging.getLogger(__name__)

# Lines of an export that are in memory at once.
BATCH = 500
PRUNE_BATCH = 10_000
PRUNE = """
DELETE FROM audit_events WHERE id IN (
  SELECT id FROM audit_events WHERE at < now() - make_interval(days => %s) ORDER BY at LIMIT %s
)
"""
TITLES = f"SELECT id::text, title FROM videos WHERE id = ANY(%s::uuid[]) AND {IS_PRESENT}"  # noqa: S608  # a constant


class AuditAction(StrEnum):
    """What was done: the kind of the object, and what happened to it. Values are stored."""

    SIGNED_IN = "account.signed_in"
    SIGN_IN_REFUSED = "account.sign_in_refused"
    SIGNED_OUT = "account.signed_out"
    PASSWORD_CHANGED = "account.password_changed"  # noqa: S105  # no password
    SESSION_ENDED = "session.ended"
    OTHER_SESSIONS_ENDED = "account.other_sessions_ended"
    LINK_MADE = "account.link_made"
    ACCOUNT_ADDED = "account.added"
    NAME_CHANGED = "account.name_changed"
    ROLE_CHANGED = "account.role_changed"
    ACCOUNT_DISABLED = "account.disabled"
    ACCOUNT_ENABLED = "account.enabled"
    ACCOUNT_REMOVED = "account.removed"
    ACCOUNT_BOUND = "account.bound"
    ACCOUNT_UNBOUND = "account.unbound"
    INVITATION_MADE = "invitation.made"
    INVITATION_ACCEPTED = "invitation.accepted"
    INVITATION_REVOKED = "invitation.revoked"
    TOKEN_MADE = "token.made"  # noqa: S105  # no token
    TOKEN_REVOKED = "token.revoked"  # noqa: S105
    VIDEO_PUBLISHED = "video.published"
    VIDEO_EDITED = "video.edited"
    POSTER_REPLACED = "video.poster_replaced"
    VIDEO_RETRIED = "video.retried"
    VIDEO_DELETED = "video.deleted"
    VIDEO_RESTORED = "video.restored"
    ACCESS_CHANGED = "video.access_changed"
    PLAYBACK_LINK_MADE = "video.link_made"
    PLAYBACK_LINK_REVOKED = "video.link_revoked"
    KEYS_ROTATED = "keys.rotated"


# Who acts, and the client's address: nobody, for commands.
_actor: ContextVar[tuple[Principal | None, str]] = ContextVar("audit_actor", default=(None, ""))


def act_as(principal: Principal, *, address: str) -> None:
    """Say who acts until the current task ends; for a request, which is a task."""
    _actor.set((principal, address))


async def note(
    action: AuditAction,
    object_id: UUID | str | None = None,
    *,
    name: str = "",
    detail: Mapping[str, str] | None = None,
    by: Account | None = None,
) -> None:
    """Write a line, in the transaction of the change that it tells of.

    `name` is what the object is called, such as an account's address. `by` is who has just proved
    to be someone, by a password or a link. Never give a secret, or the text of a video.
    """
    principal, address = _actor.get()
    if by is not None:
        principal = Principal(account_id=by.id, email=by.email)
    actor = principal or ANYONE
    await AuditEvent.create(
        action=action.value,
        actor_kind=_kind(principal),
        actor_id=actor.account_id,
        actor_email=actor.email,
        token_id=actor.token_id,
        token_name=actor.token_name,
        address=address,
        object_id=None if object_id is None else str(object_id),
        object_name=name,
        detail=dict(detail or {}),
    )
    logger.info("Audit: %s", action, extra={"action": action.value})


def _kind(principal: Principal | None) -> str:
    """Who acts: a stored word. Anyone has no account, on an open portal or before signing in."""
    if principal is None:
        return "command"
    if principal.account_id is None:
        return "anyone"
    return "person" if principal.scopes is None else "token"


def changed_fields(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """The names of the fields that differ, as `detail` has them; empty if none does."""
    names = [name for name in after if after[name] != before[name]]
    return {"fields": ", ".join(names)} if names else {}


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


async def read_page(
    query: AuditQuery, *, limit: int, before: int | None = None
) -> tuple[list[AuditEvent], int | None]:
    """The newest lines, of those with smaller numbers than `before` if it is given.

    And the number before which older ones go on, if there are any.
    """
    lines = query.lines if before is None else query.lines.filter(id__lt=before)
    found = await lines.order_by("-id").limit(limit + 1)
    events = found[:limit]
    return events, events[-1].id if len(found) > limit else None


async def read_all(query: AuditQuery) -> AsyncIterator[AuditEvent]:
    """All lines that are there now, the oldest first, some at a time."""
    newest = await AuditEvent.all().order_by("-id").first()
    last, end = 0, newest.id if newest else 0
    while events := await query.lines.filter(id__gt=last, id__lte=end).order_by("id").limit(BATCH):
        for event in events:
            yield event
        last = events[-1].id


async def titles_of(events: Collection[AuditEvent]) -> dict[str, str]:
    """The titles of the videos that these lines are about, by id; deleted ones have none."""
    ids = {it.object_id for it in events if it.action.startswith("video.") and it.object_id}
    return {row["id"]: row["title"] for row in await fetch_rows(TITLES, list(ids))}


def json_line(event: AuditEvent) -> str:
    """A line as JSON, in ASCII: some readers split lines at more than line feeds."""
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


async def prune(*, keep_days: int) -> int:
    """Delete lines that are older than this, in batches; returns how many."""
    pruned = 0
    while batch := await execute(PRUNE, keep_days, PRUNE_BATCH):
        pruned += batch
    return pruned
