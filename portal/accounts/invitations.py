"""One-time links: to choose a password for an account, or for a new one one is invited to.

There is no mail server: whoever makes a link hands it on. It is shown once, works once, for seven
days, and a newer one for the same account replaces it.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from portal.accounts import people
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import Principal
from portal.accounts.tokens import checked_label, digest, new_secret
from portal.database.account_models import Account, OneTimeLink, Role
from portal.database.connection import transaction
from portal.errors import LinkNotValid, NotAllowed
from portal.events.log import AuditAction, note

LIFE_DAYS = 7


async def offer_password(account_id: UUID, *, by: Principal) -> str:
    """Make a link to choose an account's password; returns its secret. Earlier ones are void.

    The password stays as it is until then. Raises as `people.changing`.
    """
    async with people.changing(account_id, by) as account:
        await OneTimeLink.filter(account_id=account_id).delete()
        secret, _ = await _make(account_id=account_id)
        await note(AuditAction.LINK_MADE, account_id, name=account.email)
        return secret


async def invite(role: Role, *, by: Principal, label: str = "") -> str:
    """Make a link to an account of a role; returns its secret.

    `label` says whom it is for. Raises `NotAllowed`, or `InvalidRequest` for a label too long.
    """
    if not by.may_manage(role):
        raise NotAllowed("Only an owner invites owners.")
    async with transaction():
        secret, link_id = await _make(role=role, label=checked_label(label))
        await note(AuditAction.INVITATION_MADE, link_id, name=role.value)
    return secret


async def list_invitations() -> list[OneTimeLink]:
    """The invitations that nobody has accepted yet, the newest first."""
    pending = OneTimeLink.filter(account_id=None, expires_at__gt=datetime.now(UTC))
    return await pending.order_by("-created_at")


async def revoke_invitation(link_id: UUID) -> None:
    """Make an invitation void."""
    async with transaction():
        pending = OneTimeLink.filter(id=link_id, account_id=None)
        link = await pending.first()
        # Of two who revoke it at once the first one does.
        if link is not None and await pending.delete():
            await note(AuditAction.INVITATION_REVOKED, link_id, name=_role(link).value)


async def look_up(secret: str) -> tuple[str, Role]:
    """What a link is for: the account's email address, empty for a new one, and its role.

    Raises `LinkNotValid`.
    """
    link, account = await _find(secret)
    return (account.email, account.role) if account else ("", _role(link))


async def accept(secret: str, *, email: str, password: str, passwords: Passwords) -> Account:
    """Use a link up: the account it is for has this password, or a new one is made with it.

    Raises `LinkNotValid`, `InvalidRequest` for an address or a password that can't be, or
    `AccountExists`; then the link can still be used.
    """
    _, account = await _find(secret)
    email = account.email if account else email
    password_hash = await passwords.choose(password, email=email)
    async with transaction():
        await people.lock_accounts()
        link, account = await _find(secret)
        # Of two who use it at once the first one does.
        if not await OneTimeLink.filter(id=link.id).delete():
            raise LinkNotValid
        if account is None:
            role = _role(link)
            account = await people.add_locked(
                email, role, password_hash=password_hash, email_unverified=True
            )
            await note(AuditAction.INVITATION_ACCEPTED, link.id, name=role.value, by=account)
        else:
            await people.set_password(account, password_hash, way="link")
        return account


async def _make(
    *, account_id: UUID | None = None, role: Role | None = None, label: str = ""
) -> tuple[str, UUID]:
    secret = new_secret()
    link = await OneTimeLink.create(
        id=uuid4(),
        digest=digest(secret),
        account_id=account_id,
        role=role,
        label=label,
        expires_at=datetime.now(UTC) + timedelta(days=LIFE_DAYS),
    )
    return secret, link.id


async def _find(secret: str) -> tuple[OneTimeLink, Account | None]:
    usable = OneTimeLink.filter(digest=digest(secret), expires_at__gt=datetime.now(UTC))
    link = await usable.prefetch_related("account").first()
    if link is None or (link.account and link.account.is_disabled):
        raise LinkNotValid
    return link, link.account


def _role(link: OneTimeLink) -> Role:
    return link.role or Role.VIEWER
