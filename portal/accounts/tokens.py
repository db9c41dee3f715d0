"""API tokens of programs, and the secrets of all credentials.

Session cookies, API tokens and one-time links are random secrets; only their digests are stored.
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
from portal.events.log import AuditAction, record_action
from portal.locale.messages import Message
from portal.text import is_blank

SECRET_BYTES = 32
TOKEN_PREFIX = "portal_"  # noqa: S105  # lets scanners find tokens that were published by mistake
# Longer texts are not hashed in full; no secret is as long.
MAX_SECRET_LENGTH = 100
MAX_DAYS = 3650

# Groups of the account of a row, and guests with its address, as a column.
GROUP_IDS = """
ARRAY(
  SELECT group_id FROM group_members member WHERE member.account_id = account.id
  UNION ALL
  SELECT guests.id FROM guests WHERE guests.email = account.email AND NOT account.email_unverified
) AS group_ids
"""
TOKENS = f"""
SELECT token.digest, token.id AS token_id, account.id AS account_id, account.email, account.role,
       token.scopes, token.name AS token_name, {GROUP_IDS},
       coalesce(token.used_at < now() - interval '1 minute', true) AS is_stale
FROM api_tokens token JOIN accounts account ON account.id = token.account_id
WHERE token.digest = ANY(%s) AND NOT account.is_disabled
  AND (token.expires_at IS NULL OR token.expires_at > now())
"""  # noqa: S608 - put together from constants
TOKENS_USED = "UPDATE api_tokens SET used_at = now() WHERE id = ANY(%s)"
ACCOUNTS_SEEN = "UPDATE accounts SET seen_at = now() WHERE id = ANY(%s)"


def new_secret(prefix: str = "") -> str:
    """Return a secret of 256 random bits, in URL-safe characters."""
    return prefix + secrets.token_urlsafe(SECRET_BYTES)


def digest(secret: str) -> str:
    """Return the digest to store; no salt is needed, because secrets are long and random."""
    return hashlib.sha256(secret[:MAX_SECRET_LENGTH].encode("utf-8", "replace")).hexdigest()


def checked_label(label: str) -> str:
    """Return the label of a link without spaces around it.

    Raises `InvalidRequest` with the pointer `/label` for more than `MAX_NAME_LENGTH` characters,
    and for one with a NUL.
    """
    if "\0" in label or len(label.strip()) > MAX_NAME_LENGTH:
        message = Message("Shorten this to at most %(limit)s characters.", limit=MAX_NAME_LENGTH)
        raise InvalidRequest([FieldError("/label", message)])
    return label.strip()


async def fetch_used(
    query: str, digests: Sequence[str], *, key: str, mark_used: str
) -> dict[str, Row]:
    """Fetch the fields of the principals of valid credentials, by digest.

    Also records the use of the credentials and their accounts; `key` is the credential's id column.
    """
    rows = {row.pop("digest"): row for row in await fetch_rows(query, list(digests))}
    # At most one write per minute and credential.
    if stale := [row for row in rows.values() if row.pop("is_stale")]:
        await execute(mark_used, [row[key] for row in stale])
        await execute(ACCOUNTS_SEEN, [row["account_id"] for row in stale])
    return {name: principal_fields(row) for name, row in rows.items()}


def principal_fields(row: Row) -> Row:
    """Return columns of a row, among them `role` and `GROUP_IDS`, as fields of a `Principal`."""
    return {**row, "role": Role(row["role"]), "group_ids": frozenset(row["group_ids"])}


async def create(
    account_id: UUID, *, name: str, scopes: Collection[str], days: int | None = None
) -> str:
    """Create a token and return it; only its digest is stored. Without `days` it never expires.

    Raises `InvalidRequest` for an invalid name, scopes or days.
    """
    chosen = [scope for scope in Scope if scope in scopes]
    role = (await Account.get(id=account_id)).role
    faults = []
    if is_blank(name) or "\0" in name or len(name.strip()) > MAX_NAME_LENGTH:
        message = Message(
            "Enter a name of 1 to %(limit)s characters, such as the program's.",
            limit=MAX_NAME_LENGTH,
        )
        faults.append(FieldError("/name", message))
    if not chosen or len(chosen) != len(set(scopes)):
        message = Message("Choose one or more of %(scopes)s.", scopes=", ".join(Scope))
        faults.append(FieldError("/scopes", message))
    elif useless := [scope for scope in chosen if scope not in usable_scopes(role)]:
        # Translators: the role and the scopes are names of the API, such as viewer and write.
        message = Message(
            "This account's role is %(role)s, which can't use %(useless)s. "
            "Choose from %(usable)s, or change the role first.",
            role=role,
            useless=", ".join(useless),
            usable=", ".join(usable_scopes(role)),
        )
        faults.append(FieldError("/scopes", message))
    if days is not None and not 1 <= days <= MAX_DAYS:
        message = Message(
            "Enter 1 to %(limit)s days, or leave it empty for a token that never expires.",
            limit=MAX_DAYS,
        )
        faults.append(FieldError("/days", message))
    if faults:
        raise InvalidRequest(faults)
    secret = new_secret(TOKEN_PREFIX)
    async with transaction():
        token = await ApiToken.create(
            id=uuid4(),
            digest=digest(secret),
            account_id=account_id,
            name=name.strip(),
            scopes=[scope.value for scope in chosen],
            expires_at=datetime.now(UTC) + timedelta(days=days) if days else None,
        )
        await _note_on_token(AuditAction.TOKEN_MADE, token, scopes=", ".join(token.scopes))
    return secret


async def fetch_principals(digests: Sequence[str]) -> dict[str, Principal]:
    """Return the principals of valid tokens, by digest."""
    rows = await fetch_used(TOKENS, digests, key="token_id", mark_used=TOKENS_USED)
    return {
        token_digest: Principal(**{**row, "scopes": frozenset(map(Scope, row["scopes"]))})
        for token_digest, row in rows.items()
    }


async def list_tokens(account_id: UUID) -> list[ApiToken]:
    """Return an account's tokens, including expired ones, newest first."""
    return await ApiToken.filter(account_id=account_id).order_by("-created_at")


async def expiry_of(token_id: UUID) -> datetime | None:
    """Return the time at which a token expires; None if it never does, or doesn't exist."""
    token = await ApiToken.get_or_none(id=token_id)
    return token.expires_at if token else None


async def revoke(token_id: UUID, *, account_id: UUID) -> bool:
    """Revoke a token of an account; return False if the account has none with this id."""
    async with transaction():
        token = await ApiToken.get_or_none(id=token_id, account_id=account_id)
        # The first of two concurrent requests deletes the row and writes the audit log.
        if token is None or not await ApiToken.filter(id=token_id).delete():
            return False
        await _note_on_token(AuditAction.TOKEN_REVOKED, token)
        return True


async def _note_on_token(action: AuditAction, token: ApiToken, **detail: str) -> None:
    account = await Account.get(id=token.account_id)
    await record_action(
        action, token.id, name=token.name, detail={"account": account.email, **detail}
    )
