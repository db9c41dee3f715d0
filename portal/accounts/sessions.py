"""Sessions: signing in with email address and password, and the browsers that are signed in.

A session lasts until it is ended or unused for 30 days. Signing in gets slower for who fails: after
five failures of an account, or twenty from an address, within an hour the next try has to wait: one
second, then twice as long each time, at most a minute. A try that comes too early does not count,
so nobody is locked out for good. Where an account is signed in already its own failures don't slow
it down: guessing from elsewhere can't keep its person out.
"""

import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from uuid import UUID, uuid4

from portal.accounts.passwords import Passwords
from portal.accounts.people import plain_email
from portal.accounts.permissions import Principal
from portal.accounts.tokens import digest, fetch_used, new_secret
from portal.database.account_models import MAX_DEVICE_LENGTH, Account, Session
from portal.database.connection import NOW, execute, fetch_rows, transaction
from portal.database.event_models import Event
from portal.errors import SignInRefused, TooManyTries
from portal.events.log import AuditAction, note

logger = logging.getLogger(__name__)

IDLE_DAYS = 30
FREE_TRIES_OF_ACCOUNT = 5
FREE_TRIES_OF_ADDRESS = 20
MAX_WAIT_S = 60
# Failed tries that the audit log has in an hour; further ones are in the process's log alone.
REFUSALS_AN_HOUR = 200
INTERNET_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[\w-]+(\.[\w-]+)+")

SESSIONS = """
SELECT session.digest, session.id AS session_id, account.id AS account_id, account.email,
       account.role,
       account.seen_at IS NULL OR session.seen_at < now() - interval '1 minute' AS is_stale
FROM sessions session JOIN accounts account ON account.id = session.account_id
WHERE session.digest = ANY(%s) AND NOT account.is_disabled
  AND session.seen_at > now() - interval '30 days'
"""
SESSIONS_USED = "UPDATE sessions SET seen_at = now() WHERE id = ANY(%s)"
# Tries at the same time wait for one another: else none would count the others.
LOCK_TRIES = "LOCK TABLE sign_in_failures IN SHARE ROW EXCLUSIVE MODE"
# The clock's time, since the transaction may have waited for that.
RECORD_TRY = "INSERT INTO sign_in_failures (email, address, at) VALUES (%s, %s, clock_timestamp())"
# Failed tries of the account, unless its person is signed in from there, and of the address.
EARLIER_TRIES = """
WITH tried AS (SELECT %s AS email, %s AS address),
known AS (
  SELECT EXISTS (
    SELECT FROM tried JOIN accounts USING (email)
    JOIN sessions ON sessions.account_id = accounts.id AND sessions.address = tried.address
  ) AS is_known
)
SELECT count(*) FILTER (WHERE earlier.email = tried.email AND NOT is_known) AS of_account,
       count(*) FILTER (WHERE earlier.address = tried.address) AS of_address,
       extract(epoch FROM clock_timestamp() - max(at))::float8 AS last_s
FROM known, tried JOIN sign_in_failures earlier
  ON earlier.email = tried.email OR earlier.address = tried.address
WHERE at > now() - interval '1 hour'
"""
FORGET_TRIES = "DELETE FROM sign_in_failures WHERE email = %s AND address = %s"
EXPIRED = (
    "DELETE FROM sign_in_failures WHERE at < now() - interval '1 day'",
    "DELETE FROM sessions WHERE seen_at < now() - interval '30 days'",
    "DELETE FROM one_time_links WHERE expires_at < now()",
    "DELETE FROM sign_ons WHERE expires_at < now()",
)


async def sign_in(
    email: str, password: str, *, passwords: Passwords, device: str, address: str
) -> str:
    """Begin a session; returns what its cookie holds. Raises as `require_password`."""
    account = await require_password(email, password, passwords=passwords, address=address)
    # Comparing a password takes a while, and whoever changes one ends all sessions.
    is_same = {"id": account.id, "password_hash": account.password_hash, "is_disabled": False}
    async with transaction():
        # Written first, the table is locked before the row is, as for those who change accounts.
        if not await Account.filter(**is_same).update(seen_at=NOW):
            raise SignInRefused
        await note(AuditAction.SIGNED_IN, account.id, name=account.email, by=account)
        return await begin(account.id, device=device, address=address)


async def require_password(
    email: str, password: str, *, passwords: Passwords, address: str
) -> Account:
    """The account that these belong to.

    Raises `SignInRefused`, the same and after the same time whatever was wrong, or `TooManyTries`.
    """
    email = plain_email(email)
    await _slow_down(email, address)
    account = await Account.get_or_none(email=email, is_disabled=False)
    is_right = await passwords.is_right(password, account.password_hash if account else None)
    if account is None or not is_right:
        logger.warning("Sign-in refused", extra={"action": "sign_in_refused", "client": address})
        # Someone's password may have been typed in the place of the address.
        is_address = account is not None or INTERNET_EMAIL.fullmatch(email)
        await _note_refused(email if is_address else "")
        raise SignInRefused
    # What failed there before was mistyped.
    await execute(FORGET_TRIES, email, address)
    return account


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
    """The principals of the live ones among these sessions, by digest."""
    found = await fetch_used(SESSIONS, digests, key="session_id", mark_used=SESSIONS_USED)
    return {it: Principal(**row) for it, row in found.items()}


async def list_sessions(account_id: UUID) -> list[Session]:
    """Where an account is signed in, the last used first."""
    return await Session.filter(account_id=account_id).order_by("-seen_at")


async def end(secret: str) -> None:
    """End the session of this cookie, if there is one: another takes its place, with no audit."""
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


async def delete_expired() -> None:
    """Delete what has expired: tries, sessions, one-time links and sign-ins by a provider."""
    for statement in EXPIRED:
        await execute(statement)


async def _note_refused(email: str) -> None:
    """Write a line about a failed try to sign in, unless there are many of the last hour."""
    action = AuditAction.SIGN_IN_REFUSED
    lines = Event.filter(action=action).order_by("-id")
    limiting = await lines.offset(REFUSALS_AN_HOUR - 1).first()
    if limiting is None or limiting.at < datetime.now(UTC) - timedelta(hours=1):
        await note(action, name=email)


async def _slow_down(email: str, address: str) -> None:
    async with transaction():
        await execute(LOCK_TRIES)
        [earlier] = await fetch_rows(EARLIER_TRIES, email, address)
        surplus = max(
            earlier["of_account"] - FREE_TRIES_OF_ACCOUNT,
            earlier["of_address"] - FREE_TRIES_OF_ADDRESS,
        )
        if surplus >= 0:
            # The longest wait is reached before the tenth power.
            wait_s = min(MAX_WAIT_S, 2 ** min(surplus, 10)) - earlier["last_s"]
            if wait_s > 0:
                raise TooManyTries(ceil(wait_s))
        # Until it succeeds it counts as failed.
        await execute(RECORD_TRY, email, address)
