"""API tokens: what programs send instead of a password."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from portal.accounts import rows
from portal.accounts.audit import AuditAction, note
from portal.accounts.permissions import Action, Principal
from portal.accounts.secrets import TOKEN_PREFIX, digest, new_secret
from portal.database.account_models import MAX_NAME_LENGTH, Account, ApiToken
from portal.database.connection import transaction
from portal.database.states import Role, Scope
from portal.errors import FieldError, InvalidRequest
from portal.text import is_blank

MAX_DAYS = 3650


async def create(
    account_id: UUID, *, name: str, scopes: Collection[str], days: int | None = None
) -> str:
    """Make a token; returns it, which nobody can do again. Without `days` it never runs out.

    Raises `InvalidRequest` for a name, scopes or days that can't be.
    """
    known = [scope for scope in Scope if scope in scopes]
    role = (await Account.get(id=account_id)).role
    if faults := _faults(name, scopes, known, days, role):
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
    """Whose programs send tokens of these digests; one that is not valid is nobody's."""
    return {
        row["digest"]: Principal(
            account_id=row["account_id"],
            role=Role(row["role"]),
            email=row["email"],
            scopes=frozenset(map(Scope, row["scopes"])),
            token_id=row["id"],
            token_name=row["name"],
        )
        for row in await rows.programs_of(digests)
    }


async def list_tokens(account_id: UUID) -> list[ApiToken]:
    """An account's tokens, the newest first; expired ones included."""
    return await ApiToken.filter(account_id=account_id).order_by("-created_at")


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


def _faults(
    name: str, scopes: Collection[str], known: Collection[Scope], days: int | None, role: Role
) -> list[FieldError]:
    faults = []
    if is_blank(name) or "\0" in name or len(name.strip()) > MAX_NAME_LENGTH:
        words = f"Give a name of 1 to {MAX_NAME_LENGTH} characters, such as what will use it."
        faults.append(FieldError("/name", words))
    if not known or len(known) != len(set(scopes)):
        words = f"Choose one or more of {', '.join(Scope)}."
        faults.append(FieldError("/scopes", words))
    elif Scope.ADMIN in known and not Principal(role=role).may(Action.ADMINISTER):
        words = f"The scope {Scope.ADMIN} is for admins and owners; this account's role is {role}."
        faults.append(FieldError("/scopes", words))
    if days is not None and not 1 <= days <= MAX_DAYS:
        faults.append(FieldError("/days", f"Give 1 to {MAX_DAYS} days, or none for ever."))
    return faults
