"""Browser sessions, and signing in with email address and password.

A session lasts until it is ended or unused for 30 days. Failed attempts slow down further ones:
after five failures of an account, or twenty from an IP address (`accounts.tries`).
"""

import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from portal.accounts import tries
from portal.accounts.passwords import Passwords
from portal.accounts.people import plain_email
from portal.accounts.permissions import Principal
from portal.accounts.tokens import GROUP_IDS, digest, fetch_used, new_secret
from portal.database.account_models import MAX_DEVICE_LENGTH, Account, Session
from portal.database.connection import NOW, execute, transaction
from portal.database.event_models import Event
from portal.errors import SignInRefused
from portal.events.log import AuditAction, record_action

logger = logging.getLogger(__name__)

IDLE_DAYS = 30
FREE_TRIES_OF_ACCOUNT = 5
# Failed attempts per hour that the audit log records; the process's log has all of them.
REFUSALS_AN_HOUR = 200
INTERNET_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[\w-]+(\.[\w-]+)+")

SESSIONS = f"""
SELECT session.digest, session.id AS session_id, account.id AS account_id, account.email,
       account.role, account.language, {GROUP_IDS},
       account.seen_at IS NULL OR session.seen_at < now() - interval '1 minute' AS is_stale
FROM sessions session JOIN accounts account ON account.id = session.account_id
WHERE session.digest = ANY(%s) AND NOT account.is_disabled
  AND session.seen_at > now() - interval '30 days'
"""  # noqa: S608 - put together from constants
SESSIONS_USED = "UPDATE sessions SET seen_at = now() WHERE id = ANY(%s)"
EXPIRED = (
    "DELETE FROM sign_in_failures WHERE at < now() - interval '1 day'",
    "DELETE FROM sessions WHERE seen_at < now() - interval '30 days'",
    "DELETE FROM one_time_links WHERE expires_at < now()",
    "DELETE FROM sign_ons WHERE expires_at < now()",
)


async def sign_in(
    email: str, password: str, *, passwords: Passwords, device: str, address: str
) -> str:
    """Begin a session; return the secret for its cookie. Raises as `require_password`."""
    account = await require_password(email, password, passwords=passwords, address=address)
    # The password may have been changed, which ends all sessions, while it was compared.
    unchanged = Account.filter(
        id=account.id, password_hash=account.password_hash, is_disabled=False
    )
    async with transaction():
        # The update comes first, to lock table and row in the order of changes of accounts.
        if not await unchanged.update(seen_at=NOW):
            raise SignInRefused
        await record_action(AuditAction.SIGNED_IN, account.id, name=account.email, by=account)
        return await create(account.id, device=device, address=address)


async def require_password(
    email: str, password: str, *, passwords: Passwords, address: str
) -> Account:
    """Return the account with this email address and password.

    Raises `TooManyTries`, or `SignInRefused`: its text and timing don't show which part was wrong.
    """
    email = plain_email(email)
    await tries.begin(email, address, free=FREE_TRIES_OF_ACCOUNT)
    account = await Account.get_or_none(email=email, is_disabled=False)
    is_right = await passwords.is_right(password, account.password_hash if account else None)
    if account is None or not is_right:
        logger.warning("Sign-in refused", extra={"action": "sign_in_refused", "client": address})
        # The audit log must not contain a password that was typed into the email field.
        is_email = account is not None or INTERNET_EMAIL.fullmatch(email)
        await _note_refused(email if is_email else "")
        raise SignInRefused
    await tries.forget(email, address)
    return account


async def create(account_id: UUID, *, device: str, address: str) -> str:
    """Begin a session; return the secret for its cookie. `device` is the browser's user agent."""
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
    """Return the principals of live sessions, by digest."""
    rows = await fetch_used(SESSIONS, digests, key="session_id", mark_used=SESSIONS_USED)
    return {session_digest: Principal(**row) for session_digest, row in rows.items()}


async def list_sessions(account_id: UUID) -> list[Session]:
    """Return the sessions of an account, most recently used first."""
    return await Session.filter(account_id=account_id).order_by("-seen_at")


async def end(secret: str) -> None:
    """End the session of a cookie that a new session replaces; not written to the audit log."""
    await Session.filter(digest=digest(secret)).delete()


async def sign_out(secret: str) -> None:
    """End the session of a cookie, and write that to the audit log."""
    async with transaction():
        sessions = Session.filter(digest=digest(secret))
        session = await sessions.prefetch_related("account").first()
        if session is not None and await sessions.delete():
            account = session.account
            await record_action(AuditAction.SIGNED_OUT, account.id, name=account.email, by=account)


async def end_one(principal: Principal, session_id: UUID) -> None:
    """End one of the account's own sessions."""
    async with transaction():
        if await Session.filter(id=session_id, account_id=principal.account_id).delete():
            await record_action(AuditAction.SESSION_ENDED, session_id, name=principal.email)


async def end_others(principal: Principal) -> None:
    """End all of the account's sessions except the principal's."""
    sessions = Session.filter(account_id=principal.account_id).exclude(id=principal.session_id)
    async with transaction():
        if count := await sessions.delete():
            await record_action(
                AuditAction.OTHER_SESSIONS_ENDED,
                principal.account_id,
                name=principal.email,
                detail={"sessions": str(count)},
            )


async def delete_expired() -> None:
    """Delete expired attempts, sessions, one-time links and single sign-ons."""
    for statement in EXPIRED:
        await execute(statement)


async def _note_refused(email: str) -> None:
    """Write a failed attempt to the audit log, unless the last hour has too many of them."""
    action = AuditAction.SIGN_IN_REFUSED
    refusals = Event.filter(action=action).order_by("-id")
    oldest_allowed = await refusals.offset(REFUSALS_AN_HOUR - 1).first()
    if oldest_allowed is None or oldest_allowed.at < datetime.now(UTC) - timedelta(hours=1):
        await record_action(action, name=email)
