"""Which account a person of the provider's has: known from before, by e-mail address, or new.

An account is bound to one person of a provider, by the issuer and the subject, when that person
signs in for the first time. From then on the address does not matter, and nobody else of the
provider's gets at the account, should the address be given to someone else.
"""

import logging
from uuid import UUID, uuid4

from portal.accounts import people, rows, sessions
from portal.accounts.audit import AuditAction, note
from portal.accounts.oidc.claims import UNVERIFIED, Person
from portal.database.account_models import Account, Identity, OneTimeLink
from portal.database.connection import transaction
from portal.database.rows import NOW
from portal.database.states import Role
from portal.errors import SingleSignOnRefused

logger = logging.getLogger(__name__)

OWN_WORD = (
    "There is an account of {}, but nobody has checked that the address belongs to whoever made "
    "it. If that was you, sign in with your password, and then choose single sign-on on the page "
    "of your account. If not, tell an owner of this portal."
)


async def sign_in(
    person: Person, *, device: str, address: str, signed_in_id: UUID | None = None
) -> str:
    """The secret of a new session of the person's account.

    `signed_in_id` is the account in which the same browser is signed in already, if in any.
    Raises `SingleSignOnRefused`, which says why, for someone who has none and gets none.
    """
    async with transaction():
        await rows.lock_accounts()
        account = await _known(person) or await _bound_now(person, signed_in_id)
        _require_enabled(account)
        await _adjust_role(account, person)
        await Account.filter(id=account.id).update(seen_at=NOW)
        await _note(AuditAction.SIGNED_IN, account, person)
        _log("Signed in", "sign_in", account)
        return await sessions.begin(account.id, device=device, address=address)


async def is_bound(account_id: UUID, issuer: str) -> bool:
    """Whether someone of this provider's has an account."""
    return await Identity.exists(account_id=account_id, issuer=issuer)


async def unbind(account_id: UUID) -> None:
    """Forget which person of the provider's has an account; by the address it is bound anew."""
    async with transaction():
        if await Identity.filter(account_id=account_id).delete():
            account = await Account.get(id=account_id)
            await note(AuditAction.ACCOUNT_UNBOUND, account.id, name=account.email)


async def _known(person: Person) -> Account | None:
    by_subject = Identity.filter(issuer=person.issuer, subject=person.subject)
    identity = await by_subject.prefetch_related("account").first()
    return identity.account if identity else None


async def _bound_now(person: Person, signed_in_id: UUID | None) -> Account:
    if not person.email:
        raise SingleSignOnRefused(UNVERIFIED)
    account = await Account.get_or_none(email=person.email) or await _made(person)
    _require_enabled(account)
    # Else who was invited could make an account with another's address, wait for that one to come
    # by single sign-on, and share all that the account may from then on.
    if account.email_unverified and account.id != signed_in_id:
        raise SingleSignOnRefused(OWN_WORD.format(person.email))
    if await Identity.exists(account_id=account.id, issuer=person.issuer):
        raise SingleSignOnRefused(
            f"The account {person.email} belongs to someone else of the same provider. Ask whoever "
            "runs this portal to unbind it."
        )
    await Identity.create(
        id=uuid4(), issuer=person.issuer, subject=person.subject, account_id=account.id
    )
    if person.name and not account.name:
        await Account.filter(id=account.id).update(name=people.plain_name(person.name))
    await _note(AuditAction.ACCOUNT_BOUND, account, person)
    _log("Account bound to single sign-on", "account_bound", account)
    return account


async def _made(person: Person) -> Account:
    # The first account closes the portal: that is done on purpose, not by whoever comes along.
    if person.role is None or not await rows.has_accounts():
        raise SingleSignOnRefused(
            f"There is no account of {person.email} here. Ask an owner or admin of this portal for "
            "an invitation."
        )
    account = await people.add_locked(person.email, person.role, name=person.name)
    await _note(AuditAction.ACCOUNT_ADDED, account, person, role=person.role.value)
    return account


async def _adjust_role(account: Account, person: Person) -> None:
    """Give the role that the provider's claims are mapped to. Owners stay what they are."""
    if not person.has_mapped_role or person.role is None:
        return
    if account.role in (person.role, Role.OWNER):
        return
    await Account.filter(id=account.id).update(role=person.role)
    # As when someone changes the role: who made them may not manage the new role.
    await OneTimeLink.filter(account_id=account.id).delete()
    changed = {"was": account.role.value, "role": person.role.value}
    await _note(AuditAction.ROLE_CHANGED, account, person, **changed)
    _log(f"Role is now {person.role}", "role_changed", account)


def _require_enabled(account: Account) -> None:
    if account.is_disabled:
        raise SingleSignOnRefused(
            "Your account is disabled. Ask an owner or admin of this portal to enable it."
        )


async def _note(action: AuditAction, account: Account, person: Person, **detail: str) -> None:
    """As the account's own doing, by its provider."""
    told = {"provider": person.issuer, **detail}
    await note(action, account.id, name=account.email, detail=told, by=account)


def _log(words: str, action: str, account: Account) -> None:
    extra = {"action": action, "account_id": str(account.id), "by": "single_sign_on"}
    logger.info(words, extra=extra)
