"""Accounts: who has one, with which role. Changes are made one at a time, under a lock."""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from portal import errors
from portal.accounts.permissions import Principal
from portal.database.account_models import (
    MAX_EMAIL_LENGTH,
    MAX_NAME_LENGTH,
    Account,
    OneTimeLink,
    Role,
    Session,
)
from portal.database.connection import execute, fetch_rows, transaction
from portal.events.log import AuditAction, note
from portal.text import is_blank

EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+")
# Control characters, and lone surrogates, which the database can't store.
NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

# Two who change accounts do so one after the other: else each might remove the other last owner.
LOCK_ACCOUNTS = "LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE"
# What was there before there were accounts. Publishing locks the upload: the video that it makes is
# there once the first of these has waited for it.
ADOPT = (
    "UPDATE uploads SET owner_id = %s WHERE owner_id IS NULL",
    "UPDATE videos SET owner_id = %s WHERE owner_id IS NULL",
    "UPDATE webhooks SET account_id = %s WHERE account_id IS NULL",
)
# In the same order for the same reason.
BEQUEATH = (
    "UPDATE uploads SET owner_id = %s WHERE owner_id = %s",
    "UPDATE videos SET owner_id = %s WHERE owner_id = %s",
)


async def has_accounts() -> bool:
    """Whether there is any account, disabled ones included."""
    return bool(await fetch_rows("SELECT FROM accounts LIMIT 1"))


async def lock_accounts() -> None:
    """Let nobody else change accounts until the end of the transaction."""
    await execute(LOCK_ACCOUNTS)


async def fetch_account_id(email: str) -> UUID | None:
    """Whose email address this is."""
    account = await Account.get_or_none(email=plain_email(email))
    return account.id if account else None


def plain_email(email: str) -> str:
    """An email address as accounts are told apart by it."""
    return email.strip().lower().replace("\0", "")[:MAX_EMAIL_LENGTH]


def plain_name(name: str) -> str:
    """The name of a person as it is kept: a line of text, or nothing.

    Raises `InvalidRequest` for one that is too long.
    """
    line = " ".join(NOT_IN_NAMES.sub(" ", name).split())
    if len(line) > MAX_NAME_LENGTH:
        message = f"Give a name of at most {MAX_NAME_LENGTH} characters."
        raise errors.InvalidRequest([errors.FieldError("/name", message)])
    return "" if is_blank(line) else line


async def add(
    email: str, role: Role, *, password_hash: str | None = None, name: str = ""
) -> Account:
    """Make an account. The first has to be an owner's, who gets the videos that are there.

    Raises `InvalidRequest` for what is no address or no name, or `AccountExists`.
    """
    async with transaction():
        await lock_accounts()
        account = await add_locked(email, role, password_hash=password_hash, name=name)
        await _note(AuditAction.ACCOUNT_ADDED, account, role=role.value)
        return account


async def add_locked(
    email: str,
    role: Role,
    *,
    password_hash: str | None = None,
    email_unverified: bool = False,
    name: str = "",
) -> Account:
    """As `add`, where accounts are locked already; how it came to be is for who calls to note."""
    given, email = email, plain_email(email)
    if not EMAIL.fullmatch(email) or len(given.strip()) > MAX_EMAIL_LENGTH:
        raise errors.InvalidRequest(
            [errors.FieldError("/email", "Give an email address like ann@example.org.")]
        )
    if await Account.exists(email=email):
        raise errors.AccountExists
    is_first = not await has_accounts()
    if is_first and role is not Role.OWNER:
        raise errors.InvalidRequest(
            [errors.FieldError("/role", "The first account has to be an owner's.")]
        )
    account = await Account.create(
        id=uuid4(),
        email=email,
        role=role,
        name=plain_name(name),
        password_hash=password_hash,
        email_unverified=email_unverified,
    )
    if is_first:
        for statement in ADOPT:
            await execute(statement, account.id)
    return account


async def add_first(email: str, *, password_hash: str) -> Account:
    """Make the first account, an owner's. Raises `AccountExists` when there is one already."""
    async with transaction():
        await lock_accounts()
        if await has_accounts():
            raise errors.AccountExists("This portal has accounts already. Sign in.")
        account = await add_locked(email, Role.OWNER, password_hash=password_hash)
        await _note(AuditAction.ACCOUNT_ADDED, account, by=account, role=account.role.value)
        return account


async def list_accounts() -> list[Account]:
    """All accounts, by email address."""
    return await Account.all().order_by("email")


async def get(email: str) -> Account:
    """The account with this email address. Raises `AccountNotFound`."""
    account = await Account.get_or_none(email=plain_email(email))
    if account is None:
        raise errors.AccountNotFound
    return account


async def change_role(account_id: UUID, role: Role, *, by: Principal) -> None:
    """Give an account another role. It counts from the next request on. Raises as `changing`.

    Links to choose its password are void: who could make one may not manage the new role.
    """
    async with changing(account_id, by) as account:
        if not by.may_manage(role):
            raise errors.NotAllowed("Only an owner makes owners.")
        if role is not Role.OWNER:
            await _require_another_owner(account)
        await Account.filter(id=account_id).update(role=role)
        await OneTimeLink.filter(account_id=account_id).delete()
        if role is not account.role:
            await _note(AuditAction.ROLE_CHANGED, account, was=account.role.value, role=role.value)


async def disable(account_id: UUID, *, by: Principal) -> None:
    """Let an account do nothing any more: its sessions end, its tokens don't work."""
    async with changing(account_id, by) as account:
        await _require_another_owner(account)
        await Account.filter(id=account_id).update(is_disabled=True)
        await Session.filter(account_id=account_id).delete()
        if not account.is_disabled:
            await _note(AuditAction.ACCOUNT_DISABLED, account)


async def enable(account_id: UUID, *, by: Principal) -> None:
    """Let a disabled account work again; who it belongs to has to sign in."""
    async with changing(account_id, by) as account:
        await Account.filter(id=account_id).update(is_disabled=False)
        if account.is_disabled:
            await _note(AuditAction.ACCOUNT_ENABLED, account)


async def remove(account_id: UUID, *, by: Principal) -> Account:
    """Remove an account; returns the one that has its videos now, see `heir_of`."""
    async with changing(account_id, by) as account:
        heir = await heir_of(account, by=by)
        for statement in BEQUEATH:
            await execute(statement, heir.id, account_id)
        await account.delete()
        await _note(AuditAction.ACCOUNT_REMOVED, account, heir=heir.email)
    return heir


async def heir_of(account: Account, *, by: Principal) -> Account:
    """Who gets the videos when an account is removed: who removes it, or else the first owner.

    Raises `LastOwner` for an account that can't be removed.
    """
    await _require_another_owner(account)
    others = Account.exclude(id=account.id)
    first_owner = others.filter(role=Role.OWNER, is_disabled=False).order_by("created_at").first()
    heir = await others.get_or_none(id=by.account_id) or await first_owner
    if heir is None:
        raise errors.LastOwner
    return heir


async def rename(account_id: UUID, name: str) -> None:
    """Give an account another name, or none. Raises `InvalidRequest` for one that is too long."""
    name = plain_name(name)
    async with transaction():
        account = await Account.filter(id=account_id).select_for_update().get_or_none()
        if account is None:
            raise errors.AccountNotFound
        if account.name == name:
            return
        await Account.filter(id=account_id).update(name=name)
        await _note(AuditAction.NAME_CHANGED, account)


async def names_of(account_ids: Iterable[UUID | None]) -> dict[UUID | None, str]:
    """The names of those of these accounts that there are, in one query at most."""
    if not (ids := {it for it in account_ids if it}):
        return {}
    return dict(await Account.filter(id__in=ids).values_list("id", "name"))


async def fetch_principals(account_ids: Sequence[UUID]) -> dict[UUID, Principal]:
    """What these accounts may do at present, without those that are disabled or gone."""
    found = await Account.filter(id__in=account_ids, is_disabled=False)
    return {it.id: Principal(account_id=it.id, role=it.role, email=it.email) for it in found}


async def set_password(account: Account, password_hash: str, **detail: str) -> None:
    """Replace a password; whoever is signed in has to sign in again, and links are void.

    `detail` is for the audit log.
    """
    async with transaction():
        await Account.filter(id=account.id).update(password_hash=password_hash)
        await Session.filter(account_id=account.id).delete()
        await OneTimeLink.filter(account_id=account.id).delete()
        await _note(AuditAction.PASSWORD_CHANGED, account, by=account, **detail)


@asynccontextmanager
async def changing(account_id: UUID, by: Principal) -> AsyncIterator[Account]:
    """The account, while nobody else changes any. Raises `AccountNotFound` or `NotAllowed`."""
    async with transaction():
        await lock_accounts()
        account = await Account.get_or_none(id=account_id)
        if account is None:
            raise errors.AccountNotFound
        if not by.may_manage(account.role):
            raise errors.NotAllowed("Only an owner changes an owner's account.")
        yield account


async def _require_another_owner(account: Account) -> None:
    others = Account.filter(role=Role.OWNER, is_disabled=False).exclude(id=account.id)
    if account.role is Role.OWNER and not await others.exists():
        raise errors.LastOwner


async def _note(
    action: AuditAction, account: Account, *, by: Account | None = None, **detail: str
) -> None:
    await note(action, account.id, name=account.email, detail=detail, by=by)
