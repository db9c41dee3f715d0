"""The audit log, as it is written: who did what to which object, from where.

A use case calls `note` inside the transaction that makes its change, so that a line is there
exactly if the change is. The web says who acts, by `act_as`; what is done without that is done by
a command, by whoever may run it. `audit_log` reads.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from portal.accounts import audit_rows, rows
from portal.accounts.permissions import Principal
from portal.database.account_models import Account
from portal.database.connection import transaction

# Of failed tries to sign in that the whole portal has a line each for in an hour; further ones are
# counted. One address or account alone is slowed down before that.
REFUSALS_AN_HOUR = 200


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


class ActorKind(StrEnum):
    """Who acts. ANYONE has no account: on an open portal, or before signing in."""

    PERSON = "person"
    TOKEN = "token"  # noqa: S105
    ANYONE = "anyone"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, as the log keeps it; `address` is the client's, empty for commands."""

    kind: ActorKind
    account_id: UUID | None = None
    email: str = ""
    token_id: UUID | None = None
    token_name: str = ""
    address: str = ""


_actor: ContextVar[Actor] = ContextVar("audit_actor", default=Actor(ActorKind.COMMAND))  # noqa: B039  # frozen


def act_as(principal: Principal, *, address: str) -> None:
    """Say who acts until the current task ends; for a request, which is a task."""
    is_someone = principal.account_id is not None
    kind = ActorKind.TOKEN if principal.scopes is not None else ActorKind.PERSON
    _actor.set(
        Actor(
            kind=kind if is_someone else ActorKind.ANYONE,
            account_id=principal.account_id,
            email=principal.email,
            token_id=principal.token_id,
            token_name=principal.token_name,
            address=address,
        )
    )


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
    actor = _acting(by)
    await audit_rows.insert(
        action=action.value,
        actor_kind=actor.kind.value,
        actor_id=actor.account_id,
        actor_email=actor.email,
        token_id=actor.token_id,
        token_name=actor.token_name,
        address=actor.address,
        object_id=None if object_id is None else str(object_id),
        object_name=name,
        detail=dict(detail or {}),
    )


def changed_fields(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """The names of the fields that differ, as `detail` has them; empty if none does."""
    names = [name for name in after if after[name] != before[name]]
    return {"fields": ", ".join(names)} if names else {}


async def note_refused(email: str) -> None:
    """Write a line about a failed try to sign in with this address, or count it on the last one.

    However many fail from however many addresses, an hour leaves so many lines and no more.
    """
    action = AuditAction.SIGN_IN_REFUSED
    async with transaction():
        await rows.lock_tries()
        if await audit_rows.is_crowded(action.value, limit=REFUSALS_AN_HOUR):
            await audit_rows.count_unlisted(action.value)
        else:
            await note(action, name=email)


def _acting(by: Account | None) -> Actor:
    actor = _actor.get()
    if by is None:
        return actor
    return replace(actor, kind=ActorKind.PERSON, account_id=by.id, email=by.email)
