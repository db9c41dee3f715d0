"""The log of events: who did what to which object, and what became of videos.

A use case calls `note` inside the transaction that makes its change, so that a row is there exactly
if the change is. The web says who acts, by `act_as`; what is done without that is done by a
command. What processing makes of a video is told by `note_outcome`. Each event of a video after its
creation moves the video's `updated_at`. Rows that others may read have a type and are numbered as
they are committed (`database/functions/events.sql`).
"""

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from enum import StrEnum
from uuid import UUID

from portal.database.account_models import Account
from portal.database.connection import NOW
from portal.database.event_models import Event
from portal.database.models import Video

logger = logging.getLogger(__name__)


class EventType(StrEnum):
    """Types of the events that integrators receive. Values are stored and documented.

    The values begin with the kind of the object, by which the database completes the rows.
    """

    CREATED = "video.created"
    UPDATED = "video.updated"
    READY = "video.ready"
    RENDITION_ADDED = "video.rendition_added"
    CAPTIONS_CHANGED = "video.captions_changed"
    CHAPTERS_CHANGED = "video.chapters_changed"
    COMPLETED = "video.completed"
    FAILED = "video.failed"
    DELETED = "video.deleted"
    IMPORT_FAILED = "import.failed"


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
    CAPTIONS_CHANGED = "video.captions_changed"
    CHAPTERS_CHANGED = "video.chapters_changed"
    VIDEO_RETRIED = "video.retried"
    VIDEO_DELETED = "video.deleted"
    VIDEO_RESTORED = "video.restored"
    ACCESS_CHANGED = "video.access_changed"
    PLAYBACK_LINK_MADE = "video.link_made"
    PLAYBACK_LINK_REVOKED = "video.link_revoked"
    KEYS_ROTATED = "keys.rotated"
    WEBHOOK_MADE = "webhook.made"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_REMOVED = "webhook.removed"


TYPES = {
    AuditAction.VIDEO_PUBLISHED: EventType.CREATED,
    AuditAction.VIDEO_EDITED: EventType.UPDATED,
    AuditAction.ACCESS_CHANGED: EventType.UPDATED,
    AuditAction.VIDEO_RESTORED: EventType.UPDATED,
    AuditAction.CAPTIONS_CHANGED: EventType.CAPTIONS_CHANGED,
    AuditAction.CHAPTERS_CHANGED: EventType.CHAPTERS_CHANGED,
    AuditAction.VIDEO_DELETED: EventType.DELETED,
}


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, and from where, by the columns of `Event`.

    Of the kind command, anyone, person, token or portal.
    """

    actor_kind: str
    actor_id: UUID | None = None
    actor_email: str = ""
    token_id: UUID | None = None
    token_name: str = ""
    address: str = ""


COMMAND, PORTAL = Actor("command"), Actor("portal")
_actor: ContextVar[Actor] = ContextVar("actor", default=COMMAND)


def act_as(actor: Actor) -> None:
    """Say who acts until the current task ends; for a request, which is a task."""
    _actor.set(actor)


async def note(
    action: AuditAction,
    object_id: UUID | str | None = None,
    *,
    name: str = "",
    detail: Mapping[str, str] | None = None,
    by: Account | None = None,
) -> None:
    """Write what someone did, in the transaction of the change.

    `name` is what the object is called, such as an account's address. `by` is who has just proved
    to be someone, by a password or a link. Never give a secret, or the text of a video.
    """
    actor = _actor.get()
    if by is not None:
        actor = Actor("person", by.id, by.email, address=actor.address)
    await _write(action, actor, object_id, name=name, detail=detail, type=TYPES.get(action))
    told = {"action": action.value, "object_id": str(object_id or "")}
    logger.info("Audit: %s", action, extra=told)


async def note_outcome(
    type: EventType, video_id: UUID, *, data: Mapping[str, object] | None = None
) -> None:
    """Write what became of a video, in the transaction of the change, which has locked it.

    `data` is for an import, which has no video whose record the database could add.
    """
    await _write(type, PORTAL, video_id, type=type, data=data)


async def _write(
    action: str,
    actor: Actor,
    object_id: UUID | str | None,
    *,
    name: str = "",
    detail: Mapping[str, str] | None = None,
    type: EventType | None,
    data: Mapping[str, object] | None = None,
) -> None:
    await Event.create(
        **asdict(actor),
        action=action,
        object_id=None if object_id is None else str(object_id),
        object_name=name,
        detail=dict(detail or {}),
        type=type,
        video_id=object_id if type else None,
        data=data and dict(data),
    )
    if type not in (None, EventType.CREATED, EventType.DELETED):
        await Video.filter(id=object_id).update(updated_at=NOW)


def changed_fields(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """The names of the fields that differ, as `detail` has them; empty if none does."""
    names = [name for name in after if after[name] != before[name]]
    return {"fields": ", ".join(names)} if names else {}
