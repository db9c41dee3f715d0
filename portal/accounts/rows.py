"""The SQL of accounts: who sent a request, tries to sign in, and what is decided under a lock."""

from collections.abc import Sequence
from uuid import UUID

from portal.database.connection import Row, execute, fetch_rows

# Asked for with every request until it is so, and never afterwards.
HAS_ACCOUNTS = "SELECT EXISTS (SELECT FROM accounts) AS has_accounts"
# Two who change accounts do so one after the other: else each might remove the other last owner.
LOCK_ACCOUNTS = "LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE"
# What was there before there were accounts. Publishing locks the upload: the video that it makes is
# there once the first of these has waited for it.
ADOPT = (
    "UPDATE uploads SET owner_id = %s WHERE owner_id IS NULL",
    "UPDATE videos SET owner_id = %s WHERE owner_id IS NULL",
)
# In the same order for the same reason.
BEQUEATH = (
    "UPDATE uploads SET owner_id = %s WHERE owner_id = %s",
    "UPDATE videos SET owner_id = %s WHERE owner_id = %s",
)
SESSIONS = """
SELECT session.digest, session.id, account.id AS account_id, account.email, account.role,
       account.seen_at IS NULL OR session.seen_at < now() - interval '1 minute' AS is_stale
FROM sessions session JOIN accounts account ON account.id = session.account_id
WHERE session.digest = ANY(%s) AND NOT account.is_disabled
  AND session.seen_at > now() - interval '30 days'
"""
PROGRAMS = """
SELECT token.digest, token.id, account.id AS account_id, account.email, account.role, token.scopes,
       token.name,
       coalesce(token.used_at < now() - interval '1 minute', true) AS is_stale
FROM api_tokens token JOIN accounts account ON account.id = token.account_id
WHERE token.digest = ANY(%s) AND NOT account.is_disabled
  AND (token.expires_at IS NULL OR token.expires_at > now())
"""
MEMBERS = "SELECT id, email, role FROM accounts WHERE id = ANY(%s) AND NOT is_disabled"
SEEN_SESSIONS = "UPDATE sessions SET seen_at = now() WHERE id = ANY(%s)"
SEEN_PROGRAMS = "UPDATE api_tokens SET used_at = now() WHERE id = ANY(%s)"
SEEN_ACCOUNTS = "UPDATE accounts SET seen_at = now() WHERE id = ANY(%s)"
# Those who try at once do so one after the other: else none would see the others.
LOCK_TRIES = "LOCK TABLE sign_in_failures IN SHARE ROW EXCLUSIVE MODE"
# The clock's time, since the transaction may have waited for that.
NOTE_TRY = "INSERT INTO sign_in_failures (email, address, at) VALUES (%s, %s, clock_timestamp())"
# Tries of the account, unless its person uses it from there, and of the address.
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
# Of two who come back with the same the first one has it.
TAKE_SIGN_ON = """
DELETE FROM sign_ons WHERE digest = %s RETURNING next_path, expires_at > now() AS is_live
"""


async def fetch_members(account_ids: Sequence[UUID]) -> list[Row]:
    """Those of these accounts that may be used."""
    return await fetch_rows(MEMBERS, list(account_ids))


async def has_accounts() -> bool:
    """Whether there is any account, disabled ones included."""
    [row] = await fetch_rows(HAS_ACCOUNTS)
    return bool(row["has_accounts"])


async def lock_accounts() -> None:
    """Let nobody else change accounts until the end of the transaction."""
    await execute(LOCK_ACCOUNTS)


async def adopt(owner_id: UUID) -> None:
    """Give what nobody owns to an account."""
    for statement in ADOPT:
        await execute(statement, owner_id)


async def bequeath(from_id: UUID, *, to_id: UUID) -> None:
    """Give what an account owns to another one."""
    for statement in BEQUEATH:
        await execute(statement, to_id, from_id)


async def sessions_of(digests: Sequence[str]) -> list[Row]:
    """Who is signed in by these sessions, which count as used now."""
    return await _seen(SESSIONS, digests, SEEN_SESSIONS)


async def programs_of(digests: Sequence[str]) -> list[Row]:
    """Whose API tokens these are, which count as used now."""
    return await _seen(PROGRAMS, digests, SEEN_PROGRAMS)


async def _seen(query: str, digests: Sequence[str], statement: str) -> list[Row]:
    rows = await fetch_rows(query, list(digests))
    # A minute more or less is nothing to thirty days; a write with each request would be.
    if stale := [row for row in rows if row["is_stale"]]:
        await execute(statement, [row["id"] for row in stale])
        await execute(SEEN_ACCOUNTS, [row["account_id"] for row in stale])
    return rows


async def lock_tries() -> None:
    """Let nobody else try to sign in until the end of the transaction."""
    await execute(LOCK_TRIES)


async def earlier_tries(email: str, address: str) -> Row:
    """How many tries failed in the last hour, or are under way, and seconds since the last."""
    [row] = await fetch_rows(EARLIER_TRIES, email, address)
    return row


async def note_try(email: str, address: str) -> None:
    """Record a try to sign in before it is looked at: until it succeeds it counts as failed."""
    await execute(NOTE_TRY, email, address)


async def forget_tries(email: str, address: str) -> None:
    """Signing in has worked: what failed there before was mistyped."""
    await execute(FORGET_TRIES, email, address)


async def take_sign_on(digest: str) -> str | None:
    """Use up a sign-in that is under way at a provider: where it goes on, unless it is too old."""
    taken = await fetch_rows(TAKE_SIGN_ON, digest)
    return taken[0]["next_path"] if taken and taken[0]["is_live"] else None


async def forget_expired() -> None:
    """Delete what has run out: tries, sessions, one-time links and sign-ins under way."""
    for statement in EXPIRED:
        await execute(statement)
