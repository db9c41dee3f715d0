"""The log of events: actions of people and programs, and outcomes of processing.

A use case calls `record_action` or `record_outcome` in the transaction of its change, so that each
change has its event and each event its change. Public events have a type. They are completed and
numbered as the last statements of the transaction, with the record of the video as it is then. Each
event of a video after its creation moves the video's `updated_at`. The web names the actor by
`act_as`; the default is a command.
"""

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from uuid import UUID

from psycopg.types.json import Jsonb

from portal.database.account_models import Account
from portal.database.connection import Row, fetch_rows
from portal.database.event_models import Event
from portal.database.pool import before_commit
from portal.events.records import VideoColumns, audience_columns
from portal.queue.deliveries import enqueue_delivery
from portal.queue.jobs import REQUESTER

logger = logging.getLogger(__name__)

# Days for which readers can list the events of a video.
LISTED_DAYS = 30
COLUMNS = ", ".join(VideoColumns.model_fields)
READ = f"SELECT {COLUMNS} FROM videos WHERE id = %s"  # noqa: S608 - put together from constants
# Both tables have the columns `id` and `created_at`; events keep those of the publication.
PUBLISHED = ", ".join(
    f"publications.{name}" if name in ("id", "created_at") else name
    for name in VideoColumns.model_fields
)
TOUCH = f"""
UPDATE publications SET updated_at = now() FROM versions
WHERE publications.id = %s AND deleted_at IS NULL AND versions.id = version_id
RETURNING {PUBLISHED}
"""  # noqa: S608
# Record of a video, by `READ` or `TOUCH`, and the video's last event. The transaction has locked
# the video, so no other one can add an event to it meanwhile.
RECORD_AND_LAST = """
WITH video AS ({video})
SELECT video.*, last.sequence AS last_sequence, last.data AS last_data
FROM (SELECT %s::uuid AS video_id) AS event
LEFT JOIN video ON id = video_id
LEFT JOIN LATERAL (
  SELECT sequence, data FROM events
  WHERE video_id = event.video_id AND type IS NOT NULL AND number IS NOT NULL
  ORDER BY sequence DESC LIMIT 1
) AS last ON true
"""
# Any number that no other user of the database picks.
NUMBER_LOCK_ID = 7_102_025_113
# Numbers become visible in ascending order, because their lock is held until the commit. The
# notification is sent at the commit. `FOR SHARE` waits for a transaction that deletes or disables a
# webhook.
WRITE = """
WITH event AS (
  INSERT INTO events (number, {columns})
  VALUES ((SELECT nextval('event_numbers') FROM pg_advisory_xact_lock(%s)), {values})
  RETURNING number, type, pg_notify('portal_events', '')
)
INSERT INTO webhook_deliveries (webhook_id, event_number, type)
SELECT id, number, type FROM event, webhooks
WHERE disabled_reason IS NULL AND type = ANY (events) FOR SHARE OF webhooks
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
    REPLACED = "video.replaced"
    REPLACEMENT_FAILED = "video.replacement_failed"
    CUTS_CHANGED = "video.cuts_changed"
    CUTS_FAILED = "video.cuts_failed"
    FAILED = "video.failed"
    SUBMITTED = "video.submitted"
    APPROVED = "video.approved"
    REFUSED = "video.refused"
    DELETION_DUE = "video.deletion_due"
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
    GROUP_MADE = "group.made"
    GROUP_CHANGED = "group.changed"
    GROUP_MEMBERS_CHANGED = "group.members_changed"
    GROUP_REMOVED = "group.removed"
    GUEST_INVITED = "guest.invited"
    GUEST_CONFIRMED = "guest.confirmed"
    HAND_IN_MADE = "hand_in.made"
    HAND_IN_REVOKED = "hand_in.revoked"
    INVITATION_MADE = "invitation.made"
    INVITATION_ACCEPTED = "invitation.accepted"
    INVITATION_REVOKED = "invitation.revoked"
    TOKEN_MADE = "token.made"  # noqa: S105  # no token
    TOKEN_REVOKED = "token.revoked"  # noqa: S105
    FEED_KEY_MADE = "feed_key.made"
    FEED_KEY_REVOKED = "feed_key.revoked"
    VIDEO_PUBLISHED = "video.published"
    VIDEO_EDITED = "video.edited"
    POSTER_REPLACED = "video.poster_replaced"
    CAPTIONS_CHANGED = "video.captions_changed"
    CHAPTERS_CHANGED = "video.chapters_changed"
    VIDEO_RETRIED = "video.retried"
    REPLACEMENT_BEGUN = "video.replacement_begun"
    REPLACEMENT_WITHDRAWN = "video.replacement_withdrawn"
    VIDEO_CUT = "video.cut"
    VIDEO_DELETED = "video.deleted"
    VIDEO_RESTORED = "video.restored"
    ACCESS_CHANGED = "video.access_changed"
    SCHEDULE_CHANGED = "video.schedule_changed"
    LOUDNESS_CHANGED = "video.loudness_changed"
    VIDEO_SUBMITTED = "video.submitted"
    VIDEO_APPROVED = "video.approved"
    VIDEO_REFUSED = "video.refused"
    PLAYBACK_LINK_MADE = "video.link_made"
    PLAYBACK_LINK_REVOKED = "video.link_revoked"
    SERIES_MADE = "series.made"
    SERIES_CHANGED = "series.changed"
    SERIES_REMOVED = "series.removed"
    SERIES_VIDEOS_CHANGED = "series.videos_changed"
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
    AuditAction.VIDEO_SUBMITTED: EventType.SUBMITTED,
    AuditAction.VIDEO_APPROVED: EventType.APPROVED,
    AuditAction.VIDEO_REFUSED: EventType.REFUSED,
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
    """Set the actor until the end of the current task, such as a request.

    Jobs that the task queues count for the actor as their requester.
    """
    _actor.set(actor)
    REQUESTER.set(str(actor.actor_id or actor.address))


async def record_action(
    action: AuditAction,
    object_id: UUID | str | None = None,
    *,
    name: str = "",
    detail: Mapping[str, str] | None = None,
    by: Account | None = None,
) -> None:
    """Record an action of the current actor, in the transaction of the change.

    If the event is public, the transaction has locked the video. `name` is the object's name, such
    as an account's address. `by` is a person who has just proved their identity by a password or a
    link. Never pass a secret, or the text of a video.
    """
    actor = _actor.get()
    if by is not None:
        actor = Actor("person", by.id, by.email, address=actor.address)
    line = {
        **asdict(actor),
        "action": action.value,
        "object_id": None if object_id is None else str(object_id),
        "object_name": name,
        "detail": dict(detail or {}),
    }
    fields = {"action": action.value, "object_id": line["object_id"] or ""}
    logger.info("Audit: %s", action, extra=fields)
    if action in TYPES:
        before_commit(partial(_write_public, line, TYPES[action]))
    else:
        await Event.create(**line)


async def record_outcome(
    type: EventType, video_id: UUID, *, data: Mapping[str, object] | None = None
) -> None:
    """Record an outcome of processing, in the transaction of the change.

    The transaction has locked the video. `data` is for an import, which has no video with a record.
    """
    line = {
        **asdict(PORTAL),
        "action": type.value,
        "object_id": str(video_id),
        "object_name": "",
        "detail": {},
    }
    before_commit(partial(_write_public, line, type, data))


async def _write_public(
    line: Row, type: EventType, data: Mapping[str, object] | None = None
) -> None:
    """Write a public event, its deliveries and their jobs, with the last statements.

    `line` has the columns of any event. What happens to a video while it is deleted stays private.
    """
    video_id = UUID(line["object_id"])
    if type is EventType.IMPORT_FAILED:
        facts: Row | None = {"sequence": 1, "data": data, "was": None}
    else:
        facts = await _read_facts(type, video_id, line["detail"])
    if facts is None:
        await Event.create(**line, video_id=video_id)
        return
    columns = {**line, "type": type.value, "video_id": video_id, **facts}
    statement = WRITE.format(columns=", ".join(columns), values=", ".join(["%s"] * len(columns)))
    values = [Jsonb(value) if isinstance(value, Mapping) else value for value in columns.values()]
    for row in await fetch_rows(statement, NUMBER_LOCK_ID, *values):
        await enqueue_delivery(row["webhook_id"], row["lane"])


async def _read_facts(type: EventType, video_id: UUID, detail: Mapping[str, str]) -> Row | None:
    """Return what an event says of its video, as columns; None if there is no video to report on.

    They are the video's present record, and its previous audience if the event changed that. The
    event of a deletion keeps only the audience.
    """
    is_deletion = type is EventType.DELETED
    video = READ if is_deletion or type is EventType.CREATED else TOUCH
    [row] = await fetch_rows(RECORD_AND_LAST.format(video=video), video_id, video_id)
    last_sequence = row.pop("last_sequence")
    previous = row.pop("last_data")
    if row["id"] is not None:
        record = VideoColumns(**row).model_dump(mode="json", by_alias=False)
    elif is_deletion:
        record = previous or {}
    else:
        return None
    audience = audience_columns(record)
    former = None
    if is_deletion:
        former = audience
    elif previous is not None:
        former = audience_columns(previous)
    elif "was" in detail:
        # Videos that are older than the first events have no event to compare with.
        former = {**audience, "visibility": detail["was"], "signed_in_only": False}
    is_changed = is_deletion or former != audience
    return {
        "sequence": (last_sequence or 0) + 1,
        "data": audience if is_deletion else record,
        "was": former if is_changed else None,
    }


def changed_fields(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """Return the detail of an event: `fields` with the names that differ, joined by commas.

    It is empty if no fields of `after` differ.
    """
    names = [name for name in after if after[name] != before[name]]
    return {"fields": ", ".join(names)} if names else {}
