"""The log of events: actions of people and programs, and outcomes of processing.

A use case calls `note` or `note_outcome` in the transaction of its change, so that each change has
its event and each event its change. Public events have a type. They are completed and numbered as
the last statements of the transaction, with the record of the video as it is then. Each event of a
video after its creation moves the video's `updated_at`. The web names the actor by `act_as`; the
default is a command.
"""

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from uuid import UUID

from portal.database.account_models import Account
from portal.database.connection import NOW, fetch_rows
from portal.database.event_models import Event
from portal.database.models import Video
from portal.database.pool import before_commit
from portal.events.records import VideoColumns, audience_columns
from portal.queue.enqueue import defer_delivery

logger = logging.getLogger(__name__)

RECORD = f"""
SELECT {", ".join(VideoColumns.model_fields)} FROM videos
WHERE id = %s AND (deleted_at IS NULL OR %s)
"""  # noqa: S608 - put together from constants
# Any number that no other user of the database picks.
NUMBER_LOCK_ID = 7_102_025_113
# The notification is sent at the commit.
NEXT_NUMBER = """
SELECT nextval('event_numbers') AS number, pg_notify('portal_events', '')
FROM pg_advisory_xact_lock(%s)
"""
# A transaction that deletes or disables a webhook is waited for, by `FOR SHARE`.
DELIVER = """
INSERT INTO webhook_deliveries (webhook_id, event_number, type)
SELECT id, %s, %s FROM webhooks WHERE disabled_reason IS NULL AND %s = ANY (events) FOR SHARE
RETURNING webhook_id, lane
"""


# The API documents the values of this enum, and the database stores them.
class EventType(StrEnum):
    """Type of an event."""

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
    """Actions in the audit log, as kind of object and verb. Values are stored."""

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
    """The person or program that acts, and their address, as columns of `Event`.

    The kind is command, anyone, person, token or portal.
    """

    actor_kind: str
    actor_id: UUID | None = None
    actor_email: str = ""
    token_id: UUID | None = None
    token_name: str = ""
    address: str = ""


COMMAND = Actor("command")
PORTAL = Actor("portal")
_actor: ContextVar[Actor] = ContextVar("actor", default=COMMAND)


def act_as(actor: Actor) -> None:
    """Set the actor until the end of the current task, such as a request."""
    _actor.set(actor)


async def note(
    action: AuditAction,
    object_id: UUID | str | None = None,
    *,
    name: str = "",
    detail: Mapping[str, str] | None = None,
    by: Account | None = None,
) -> None:
    """Record an action of the current actor, in the transaction of the change.

    `name` is the object's name, such as an account's address. `by` is a person who has just proved
    their identity by a password or a link. Never pass a secret, or the text of a video.
    """
    actor = _actor.get()
    if by is not None:
        actor = Actor("person", by.id, by.email, address=actor.address)
    event = Event(
        **asdict(actor),
        action=action,
        object_id=None if object_id is None else str(object_id),
        object_name=name,
        detail=dict(detail or {}),
    )
    fields = {"action": action.value, "object_id": event.object_id or ""}
    logger.info("Audit: %s", action, extra=fields)
    if action in TYPES:
        _publish(event, TYPES[action])
    else:
        await event.save(force_create=True)


async def note_outcome(
    type: EventType, video_id: UUID, *, data: Mapping[str, object] | None = None
) -> None:
    """Record an outcome of processing, in the transaction of the change, which locks the video.

    `data` is for an import, which has no video with a record.
    """
    event = Event(
        **asdict(PORTAL),
        action=type.value,
        object_id=str(video_id),
        object_name="",
        detail={},
        data=data and dict(data),
    )
    _publish(event, type)


def _publish(event: Event, type: EventType) -> None:
    """Have an event completed and written as the last statement of its transaction."""
    event.type = type.value
    event.video_id = UUID(str(event.object_id))
    before_commit(partial(_write_public, event))


async def _write_public(event: Event) -> None:
    """Write a public event, its deliveries and their jobs.

    What happens to a video while it is deleted stays private. Numbers become visible in ascending
    order, because their lock is held until the commit.
    """
    if event.type == EventType.IMPORT_FAILED:
        event.sequence = 1
    elif not await _complete(event):
        event.type = None
        await event.save(force_create=True)
        return
    [row] = await fetch_rows(NEXT_NUMBER, NUMBER_LOCK_ID)
    number: int = row["number"]
    event.number = number
    await event.save(force_create=True)
    for row in await fetch_rows(DELIVER, number, event.type, event.type):
        await defer_delivery(row["webhook_id"], row["lane"])


async def _complete(event: Event) -> bool:
    """Add the video's present record, and its previous audience if the event changed that.

    Return whether there is a video to report on. The event of a deletion keeps only the audience.
    """
    is_deletion = event.type == EventType.DELETED
    if event.type not in (EventType.CREATED, EventType.DELETED):
        # This also locks the video, so that its events have one order.
        await Video.filter(id=event.video_id).update(updated_at=NOW)
    rows = await fetch_rows(RECORD, event.video_id, is_deletion)
    if not rows and not is_deletion:
        return False
    numbered = Event.filter(video_id=event.video_id, type__isnull=False, number__isnull=False)
    last = await numbered.order_by("-sequence").first()
    previous = last.data if last else None
    record = previous or {}
    if rows:
        record = VideoColumns(**rows[0]).model_dump(mode="json", by_alias=False)
    audience = audience_columns(record)
    event.sequence = (last.sequence or 0) + 1 if last else 1
    event.data = audience if is_deletion else record
    if is_deletion:
        event.was = audience
    elif previous is not None:
        former = audience_columns(previous)
        event.was = former if former != audience else None
    elif "was" in event.detail:
        # Videos that are older than the first events have no event to compare with.
        event.was = {**audience, "visibility": event.detail["was"], "signed_in_only": False}
    return True


def changed_fields(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """Return the names of the fields that differ, as a `detail`; empty if none differ."""
    names = [name for name in after if after[name] != before[name]]
    return {"fields": ", ".join(names)} if names else {}
