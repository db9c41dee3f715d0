"""Accounts and their roles. A lock makes all changes one after another."""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from tortoise.expressions import Q

from portal import errors
from portal.accounts.permissions import Principal
from portal.accounts.tokens import GROUP_IDS, principal_fields
from portal.database.account_models import (
    MAX_EMAIL_LENGTH,
    MAX_NAME_LENGTH,
    Account,
    OneTimeLink,
    Role,
    Session,
)
from portal.database.connection import execute, fetch_rows, transaction
from portal.events.log import AuditAction, EventType, record_action, record_outcome
from portal.locale.messages import Message
from portal.text import is_blank

EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+")
# Control characters, and lone surrogates, which PostgreSQL can't store.
NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

# Without the lock two owners could remove each other at the same time.
LOCK_ACCOUNTS = "LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE"
# Give objects without owner to an account. Publishing locks the upload's row, so the first
# statement waits for it, and a later one sees the new video.
ADOPT = (
    "UPDATE uploads SET owner_id = %s WHERE owner_id IS NULL",
    "UPDATE series SET owner_id = %s WHERE owner_id IS NULL",
    "UPDATE hand_ins SET owner_id = %s WHERE owner_id IS NULL",
    "UPDATE publications SET owner_id = %s WHERE id IN ("
    "SELECT id FROM publications WHERE owner_id IS NULL ORDER BY created_at FOR UPDATE)",
    "UPDATE webhooks SET account_id = %s WHERE account_id IS NULL",
)
# Give the objects of one account to another, in the order of `ADOPT` for the same reason.
# The hand-in links of the account end.
BEQUEATH_UPLOADS = "UPDATE uploads SET owner_id = %s, sender_digest = NULL WHERE owner_id = %s"
BEQUEATH_SERIES = "UPDATE series SET owner_id = %s WHERE owner_id = %s"
BEQUEATH_VIDEOS = """
UPDATE publications SET owner_id = %s
WHERE id IN (
  SELECT id FROM publications WHERE owner_id = %s ORDER BY created_at LIMIT %s FOR UPDATE
)
RETURNING id, deleted_at
"""
PRINCIPALS = f"""
SELECT id AS account_id, role, email, {GROUP_IDS}
FROM accounts account WHERE id = ANY (%s) AND NOT is_disabled
"""  # noqa: S608 - put together from constants
# Videos that one transaction gives to another account. While it writes their events, other changes
# of videos wait.
BEQUEST = 100


async def has_accounts() -> bool:
    """Return whether the portal has any account, including disabled ones."""
    return bool(await fetch_rows("SELECT FROM accounts LIMIT 1"))


async def lock_accounts() -> None:
    """Block other changes of accounts until the end of the transaction."""
    await execute(LOCK_ACCOUNTS)


async def fetch_account_id(email: str) -> UUID | None:
    """Return the id of the account with this email address, if there is one."""
    account = await Account.get_or_none(email=plain_email(email))
    return account.id if account else None


def plain_email(email: str) -> str:
    """Return an email address in the normal form that accounts are stored with."""
    return email.strip().lower().replace("\0", "")[:MAX_EMAIL_LENGTH]


def plain_name(name: str) -> str:
    """Return a person's name as one line of text, possibly empty.

    Raises `InvalidRequest` for a name that is too long.
    """
    line = " ".join(NOT_IN_NAMES.sub(" ", name).split())
    if len(line) > MAX_NAME_LENGTH:
        message = Message("Give a name of at most %(limit)s characters.", limit=MAX_NAME_LENGTH)
        raise errors.InvalidRequest([errors.FieldError("/name", message)])
    return "" if is_blank(line) else line


async def add(
    email: str, role: Role, *, password_hash: str | None = None, name: str = ""
) -> Account:
    """Add an account. The first one must be an owner's, who gets all existing videos.

    Raises `InvalidRequest` for an invalid address or name, or `AccountExists`.
    """
    async with transaction():
        await lock_accounts()
        account = await add_locked(email, role, password_hash=password_hash, name=name)
        await _note_on_account(AuditAction.ACCOUNT_ADDED, account, role=role.value)
        return account


async def add_locked(
    email: str,
    role: Role,
    *,
    password_hash: str | None = None,
    email_unverified: bool = False,
    name: str = "",
) -> Account:
    """Add an account under the caller's lock; the caller writes the audit log."""
    plain = plain_email(email)
    if not EMAIL.fullmatch(plain) or len(email.strip()) > MAX_EMAIL_LENGTH:
        message = Message("Enter an email address like ann@example.org.")
        raise errors.InvalidRequest([errors.FieldError("/email", message)])
    if await Account.exists(email=plain):
        raise errors.AccountExists
    is_first = not await has_accounts()
    if is_first and role is not Role.OWNER:
        message = Message("The first account must have the role owner.")
        raise errors.InvalidRequest([errors.FieldError("/role", message)])
    account = await Account.create(
        id=uuid4(),
        email=plain,
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
    """Add the first account, an owner's. Raises `AccountExists` if there is one already."""
    async with transaction():
        await lock_accounts()
        if await has_accounts():
            raise errors.AccountExists(
                Message("This portal already has accounts. Sign in instead.")
            )
        account = await add_locked(email, Role.OWNER, password_hash=password_hash)
        await _note_on_account(
            AuditAction.ACCOUNT_ADDED, account, by=account, role=account.role.value
        )
        return account


async def list_accounts() -> list[Account]:
    """Return all accounts, ordered by email address."""
    return await Account.all().order_by("email")


async def get(email: str) -> Account:
    """Return the account with this email address. Raises `AccountNotFound`."""
    account = await Account.get_or_none(email=plain_email(email))
    if account is None:
        raise errors.AccountNotFound
    return account


async def change_role(account_id: UUID, role: Role, *, by: Principal) -> None:
    """Change the role of an account, from its next request on. Raises as `changing`.

    Links that it made, and links to choose its password, become invalid.
    """
    async with changing(account_id, by) as account:
        if not by.may_manage(role):
            raise errors.NotAllowed(Message("Only an owner can make someone an owner."))
        if role is not Role.OWNER:
            await _require_another_owner(account)
        if role is not account.role:
            await Account.filter(id=account_id).update(role=role)
            await delete_links(account_id)
            await _note_on_account(
                AuditAction.ROLE_CHANGED, account, was=account.role.value, role=role.value
            )


async def disable(account_id: UUID, *, by: Principal) -> None:
    """Disable an account: end its sessions and links, and refuse its tokens.

    Raises as `changing`.
    """
    async with changing(account_id, by) as account:
        await _require_another_owner(account)
        await Account.filter(id=account_id).update(is_disabled=True)
        await Session.filter(account_id=account_id).delete()
        await delete_links(account_id)
        if not account.is_disabled:
            await _note_on_account(AuditAction.ACCOUNT_DISABLED, account)


async def enable(account_id: UUID, *, by: Principal) -> None:
    """Enable a disabled account, whose person must sign in again. Raises as `changing`."""
    async with changing(account_id, by) as account:
        await Account.filter(id=account_id).update(is_disabled=False)
        if account.is_disabled:
            await _note_on_account(AuditAction.ACCOUNT_ENABLED, account)


async def remove(account_id: UUID, *, by: Principal) -> Account:
    """Remove an account; return the new owner of its videos and series, see `heir_of`.

    The videos are given away in transactions of some videos each. The last transaction, which has
    no events, removes the account: other events lock webhooks, which are removed with it.
    """
    while True:
        async with changing(account_id, by) as account:
            heir = await heir_of(account, by=by)
            await execute(BEQUEATH_UPLOADS, heir.id, account_id)
            await execute(BEQUEATH_SERIES, heir.id, account_id)
            rows = await fetch_rows(BEQUEATH_VIDEOS, heir.id, account_id, BEQUEST)
            for row in rows:
                if row["deleted_at"] is None:
                    await record_outcome(EventType.UPDATED, row["id"])
            if not rows:
                await account.delete()
                await _note_on_account(AuditAction.ACCOUNT_REMOVED, account, heir=heir.email)
                return heir


async def delete_links(account_id: UUID) -> None:
    """Delete the links that an account made, and those to choose its password.

    The account may no longer manage others, and the makers of the latter may not manage it.
    """
    await OneTimeLink.filter(Q(account_id=account_id) | Q(made_by_id=account_id)).delete()


async def heir_of(account: Account, *, by: Principal) -> Account:
    """Return who gets an account's videos: the account that removes it, or the first owner.

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
    """Change or clear the name of an account. Raises `InvalidRequest` for one that is too long."""
    name = plain_name(name)
    async with transaction():
        account = await Account.filter(id=account_id).select_for_update().get_or_none()
        if account is None:
            raise errors.AccountNotFound
        if account.name == name:
            return
        await Account.filter(id=account_id).update(name=name)
        await _note_on_account(AuditAction.NAME_CHANGED, account)


async def names_of(account_ids: Iterable[UUID | None]) -> dict[UUID | None, str]:
    """Return display names by account id; unknown ids are left out."""
    ids = {account_id for account_id in account_ids if account_id}
    if not ids:
        return {}
    return dict(await Account.filter(id__in=ids).values_list("id", "name"))


async def fetch_principals(account_ids: Sequence[UUID]) -> dict[UUID, Principal]:
    """Return principals by account id; disabled and removed accounts are left out."""
    return {
        row["account_id"]: Principal(**principal_fields(row))
        for row in await fetch_rows(PRINCIPALS, list(account_ids))
    }


async def set_language(account_id: UUID, language: str) -> None:
    """Set the language of pages for an account, by its code."""
    await Account.filter(id=account_id).update(language=language)


async def set_password(account: Account, password_hash: str, **detail: str) -> None:
    """Replace a password, end all sessions, and invalidate the account's links.

    `detail` is written to the audit log.
    """
    async with transaction():
        await Account.filter(id=account.id).update(password_hash=password_hash)
        await Session.filter(account_id=account.id).delete()
        await OneTimeLink.filter(account_id=account.id).delete()
        await _note_on_account(AuditAction.PASSWORD_CHANGED, account, by=account, **detail)


@asynccontextmanager
async def changing(account_id: UUID, by: Principal) -> AsyncIterator[Account]:
    """Lock all accounts and yield one to be changed. Raises `AccountNotFound` or `NotAllowed`."""
    async with transaction():
        await lock_accounts()
        account = await Account.get_or_none(id=account_id)
        if account is None:
            raise errors.AccountNotFound
        if not by.may_manage(account.role):
            raise errors.NotAllowed(Message("Only an owner can change an owner's account."))
        yield account


async def _require_another_owner(account: Account) -> None:
    owners = Account.filter(role=Role.OWNER, is_disabled=False).exclude(id=account.id)
    if account.role is Role.OWNER and not await owners.exists():
        raise errors.LastOwner


async def _note_on_account(
    action: AuditAction, account: Account, *, by: Account | None = None, **detail: str
) -> None:
    await record_action(action, account.id, name=account.email, detail=detail, by=by)
