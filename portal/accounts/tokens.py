"""API tokens, which programs send instead of a password; and how all secrets are made and kept.

Session cookies, API tokens and one-time links are random; of each only the digest is stored.
"""

import hashlib
import secrets
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from portal.accounts.permissions import Principal, usable_scopes
from portal.database.account_models import MAX_NAME_LENGTH, Account, ApiToken, Role, Scope
from portal.database.connection import Row, execute, fetch_rows, transaction
from portal.errors import FieldError, InvalidRequest
from portal.events.log import AuditAction, note
from portal.text import is_blank

SECRET_BYTES = 32
TOKEN_PREFIX = "portal_"  # noqa: S105  # so that scanners find one that was published by mistake
# What a client may send that could be a secret; longer texts are none.
MAX_SECRET_LENGTH = 100
MAX_DAYS = 3650

TOKENS = """
SELECT token.digest, token.id AS token_id, account.id AS account_id, account.email, account.role,
       token.scopes, token.name AS token_name,
       coalesce(token.used_at < now() - interval '1 minute', true) AS is_stale
FROM api_tokens token JOIN accounts account ON account.id = token.account_id
WHERE token.digest = ANY(%s) AND NOT account.is_disabled
  AND (token.expires_at IS NULL OR token.expires_at > now())
"""
TOKENS_USED = "UPDATE api_tokens SET used_at = now() WHERE id = ANY(%s)"
ACCOUNTS_SEEN = "UPDATE accounts SET seen_at = now() WHERE id = ANY(%s)"


def new_secret(prefix: str = "") -> str:
    """A secret of 256 random bits, in letters that need no quoting anywhere."""
    return prefix + secrets.token_urlsafe(SECRET_BYTES)


def digest(secret: str) -> str:
    """What is stored of a secret. It is long and random: a plain hash can't be guessed back."""
    return hashlib.sha256(secret[:MAX_SECRET_LENGTH].encode("utf-8", "replace")).hexdigest()


def checked_label(label: str) -> str:
    """What someone calls a link, so that they know it again. Raises `InvalidRequest`."""
    if "\0" in label or len(label.strip()) > MAX_NAME_LENGTH:
        words = f"Give at most {MAX_NAME_LENGTH} characters."
        raise InvalidRequest([FieldError("/label", words)])
    return label.strip()


async def fetch_used(
    query: str, digests: Sequence[str], *, key: str, mark_used: str
) -> dict[str, Row]:
    """The members of the principals of credentials, by digest; `key` is the credential's id.

    Those with these digests count as used now, as do their accounts.
    """
    found = {row.pop("digest"): row for row in await fetch_rows(query, list(digests))}
    # At most one write a minute for each: how exact the time is does not matter.
    if stale := [row for row in found.values() if row.pop("is_stale")]:
        await execute(mark_used, [row[key] for row in stale])
        await execute(ACCOUNTS_SEEN, [row["account_id"] for row in stale])
    return {it: {**row, "role": Role(row["role"])} for it, row in found.items()}


async def create(
    account_id: UUID, *, name: str, scopes: Collection[str], days: int | None = None
) -> str:
    """Make a token; returns it, which nobody can do again. Without `days` it never runs out.

    Raises `InvalidRequest` for a name, scopes or days that can't be.
    """
    known = [scope for scope in Scope if scope in scopes]
    role = (await Account.get(id=account_id)).role
    faults = []
    if is_blank(name) or "\0" in name or len(name.strip()) > MAX_NAME_LENGTH:
        words = f"Give a name of 1 to {MAX_NAME_LENGTH} characters, such as what will use it."
        faults.append(FieldError("/name", words))
    if not known or len(known) != len(set(scopes)):
        words = f"Choose one or more of {', '.join(Scope)}."
        faults.append(FieldError("/scopes", words))
    elif useless := [scope for scope in known if scope not in usable_scopes(role)]:
        words = (
            f"This account's role is {role}, which can't use {', '.join(useless)}. "
            f"Choose from {', '.join(usable_scopes(role))}, or change the role first."
        )
        faults.append(FieldError("/scopes", words))
    if days is not None and not 1 <= days <= MAX_DAYS:
        faults.append(FieldError("/days", f"Give 1 to {MAX_DAYS} days, or none for ever."))
    if faults:
        raise InvalidRequest(faults)
    secret = new_secret(TOKEN_PREFIX)
    async with transaction():
        token = await ApiToken.create(
            id=uuid4(),
            digest=digest(secret),
            account_id=account_id,
            name=name.strip(),
            scopes=[scope.value for scope in known],
            expires_at=datetime.now(UTC) + timedelta(days=days) if days else None,
        )
        await _note(AuditAction.TOKEN_MADE, token, scopes=", ".join(token.scopes))
    return secret


async def fetch_principals(digests: Sequence[str]) -> dict[str, Principal]:
    """The principals of the valid ones among these tokens, by digest."""
    found = await fetch_used(TOKENS, digests, key="token_id", mark_used=TOKENS_USED)
    return {
        it: Principal(**{**row, "scopes": frozenset(map(Scope, row["scopes"]))})
        for it, row in found.items()
    }


async def list_tokens(account_id: UUID) -> list[ApiToken]:
    """An account's tokens, the newest first; expired ones included."""
    return await ApiToken.filter(account_id=account_id).order_by("-created_at")


async def expiry_of(token_id: UUID) -> datetime | None:
    """Return when a token expires; None if it never does."""
    token = await ApiToken.get_or_none(id=token_id)
    return token.expires_at if token else None


async def revoke(token_id: UUID, *, account_id: UUID) -> bool:
    """Revoke one of an account's tokens; False if there is none with this id."""
    async with transaction():
        token = await ApiToken.get_or_none(id=token_id, account_id=account_id)
        # Of two who revoke it at once the first one does.
        if token is None or not await ApiToken.filter(id=token_id).delete():
            return False
        await _note(AuditAction.TOKEN_REVOKED, token)
        return True


async def _note(action: AuditAction, token: ApiToken, **detail: str) -> None:
    account = await Account.get(id=token.account_id)
    await note(action, token.id, name=token.name, detail={"account": account.email, **detail})
