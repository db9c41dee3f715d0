"""Sessions: browsers in which someone is signed in, until signed out or unused for 30 days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from portal.accounts import rows
from portal.accounts.audit import AuditAction, note
from portal.accounts.permissions import Principal
from portal.accounts.secrets import digest, new_secret
from portal.database.account_models import MAX_DEVICE_LENGTH, Session
from portal.database.connection import transaction
from portal.database.states import Role

IDLE_DAYS = 30


@dataclass(frozen=True, slots=True)
class SessionView:
    """One of the places where an account is signed in."""

    id: UUID
    device: str
    address: str
    seen_at: datetime
    is_this: bool


async def begin(account_id: UUID, *, device: str, address: str) -> str:
    """Begin a session; returns what its cookie holds. `device` is the browser's own name."""
    secret = new_secret()
    await Session.create(
        id=uuid4(),
        digest=digest(secret),
        account_id=account_id,
        device=device.replace("\0", "")[:MAX_DEVICE_LENGTH],
        address=address,
    )
    return secret


async def fetch_principals(digests: Sequence[str]) -> dict[str, Principal]:
    """Who sends cookies of these digests; those of ended sessions are nobody's."""
    return {
        row["digest"]: Principal(
            account_id=row["account_id"],
            role=Role(row["role"]),
            email=row["email"],
            session_id=row["id"],
        )
        for row in await rows.sessions_of(digests)
    }


async def list_sessions(principal: Principal) -> list[SessionView]:
    """Where this account is signed in, the last used first."""
    found = await Session.filter(account_id=principal.account_id).order_by("-seen_at")
    return [
        SessionView(it.id, it.device, it.address, it.seen_at, it.id == principal.session_id)
        for it in found
    ]


async def end(secret: str) -> None:
    """End the session of this cookie, if there is one: another takes its place."""
    await Session.filter(digest=digest(secret)).delete()


async def sign_out(secret: str) -> None:
    """End the session of this cookie, if there is one, for who signs out."""
    async with transaction():
        own = Session.filter(digest=digest(secret))
        found = await own.prefetch_related("account").first()
        if found is not None and await own.delete():
            account = found.account
            await note(AuditAction.SIGNED_OUT, account.id, name=account.email, by=account)


async def end_one(principal: Principal, session_id: UUID) -> None:
    """End one of the account's own sessions."""
    async with transaction():
        own = Session.filter(id=session_id, account_id=principal.account_id)
        if await own.delete():
            await note(AuditAction.SESSION_ENDED, session_id, name=principal.email)


async def end_others(principal: Principal) -> None:
    """End all of the account's sessions but the one that asks."""
    action = AuditAction.OTHER_SESSIONS_ENDED
    async with transaction():
        others = Session.filter(account_id=principal.account_id).exclude(id=principal.session_id)
        if count := await others.delete():
            detail = {"sessions": str(count)}
            await note(action, principal.account_id, name=principal.email, detail=detail)
