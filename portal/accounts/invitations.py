"""Invitations to a new account, and links to choose an account's password.

The portal sends no mail: the creator of a link passes it on. A link is shown once and works once,
within seven days; a newer link for the same account replaces it.
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
from portal.events.log import AuditAction, record_action
from portal.locale.messages import Message

LIFE_DAYS = 7


async def offer_password(account_id: UUID, *, by: Principal) -> str:
    """Create a link to choose an account's password; return its secret.

    Earlier links become invalid. The password works until the link is used. Raises as
    `people.changing`.
    """
    async with people.changing(account_id, by) as account:
        await OneTimeLink.filter(account_id=account_id).delete()
        secret, _ = await _create_link(by, account_id=account_id)
        await record_action(AuditAction.LINK_MADE, account_id, name=account.email)
        return secret


async def invite(role: Role, *, by: Principal, label: str = "") -> str:
    """Create an invitation to an account with a role; return its secret.

    `label` names the invited person. Raises `NotAllowed`, or `InvalidRequest` for a label that is
    too long.
    """
    if not by.may_manage(role):
        raise NotAllowed(Message("Only an owner can invite owners."))
    async with transaction():
        secret, link_id = await _create_link(by, role=role, label=checked_label(label))
        await record_action(AuditAction.INVITATION_MADE, link_id, name=role.value)
    return secret


async def list_invitations() -> list[OneTimeLink]:
    """Return the pending invitations, newest first."""
    pending = OneTimeLink.filter(account_id=None, expires_at__gt=datetime.now(UTC))
    return await pending.order_by("-created_at")


async def revoke_invitation(link_id: UUID) -> None:
    """Revoke a pending invitation."""
    async with transaction():
        pending = OneTimeLink.filter(id=link_id, account_id=None)
        link = await pending.first()
        # The first of two concurrent requests deletes the row and writes the audit log.
        if link is not None and await pending.delete():
            await record_action(
                AuditAction.INVITATION_REVOKED, link_id, name=_link_role(link).value
            )


async def look_up(secret: str) -> tuple[str, Role]:
    """Return the email address of a link's account, empty for an invitation, and its role.

    Raises `LinkNotValid`.
    """
    link, account = await _find_link(secret)
    return (account.email, account.role) if account else ("", _link_role(link))


async def accept(secret: str, *, email: str, password: str, passwords: Passwords) -> Account:
    """Use a link: set the password of its account, or add the account of an invitation.

    Raises `LinkNotValid`, `InvalidRequest` for an invalid address or password, or `AccountExists`;
    the link stays valid after the last two.
    """
    _, account = await _find_link(secret)
    email = account.email if account else email
    password_hash = await passwords.choose(password, email=email)
    async with transaction():
        await people.lock_accounts()
        link, account = await _find_link(secret)
        # Single use: the first of two concurrent requests wins.
        if not await OneTimeLink.filter(id=link.id).delete():
            raise LinkNotValid
        if account is None:
            role = _link_role(link)
            account = await people.add_locked(
                email, role, password_hash=password_hash, email_unverified=True
            )
            await record_action(
                AuditAction.INVITATION_ACCEPTED, link.id, name=role.value, by=account
            )
        else:
            await people.set_password(account, password_hash, way="link")
        return account


async def _create_link(
    by: Principal, *, account_id: UUID | None = None, role: Role | None = None, label: str = ""
) -> tuple[str, UUID]:
    secret = new_secret()
    link = await OneTimeLink.create(
        id=uuid4(),
        digest=digest(secret),
        account_id=account_id,
        role=role,
        label=label,
        made_by_id=by.account_id,
        expires_at=datetime.now(UTC) + timedelta(days=LIFE_DAYS),
    )
    return secret, link.id


async def _find_link(secret: str) -> tuple[OneTimeLink, Account | None]:
    usable = OneTimeLink.filter(digest=digest(secret), expires_at__gt=datetime.now(UTC))
    link = await usable.prefetch_related("account").first()
    if link is None or (link.account and link.account.is_disabled):
        raise LinkNotValid
    return link, link.account


def _link_role(link: OneTimeLink) -> Role:
    return link.role or Role.VIEWER
