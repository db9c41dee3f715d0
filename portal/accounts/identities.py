"""Single sign-on: sign-ins under way, who signs in by the provider, and which account it is.

A sign-in under way lasts ten minutes and is used once. The browser keeps a secret in a cookie;
state, nonce and code verifier are derived from it, each by itself, so that the provider, who is
told some of them, can't tell the others, and neither can who reads the database, which has a
digest. `oidc` speaks with the provider.

An account is bound to one person of a provider, by the issuer and the subject, when that person
signs in for the first time. From then on the address does not matter, and nobody else of the
provider's gets at the account, should the address be given to someone else.
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from portal.accounts import people, sessions
from portal.accounts.tokens import digest, new_secret
from portal.config import Config
from portal.database.account_models import (
    MAX_NAME_LENGTH,
    MAX_PATH_LENGTH,
    MAX_SUBJECT_LENGTH,
    Account,
    Identity,
    OneTimeLink,
    Role,
    SignOn,
)
from portal.database.connection import NOW, fetch_rows, transaction
from portal.errors import SignOnUnknown, SingleSignOnRefused
from portal.events.log import AuditAction, note

LIFE_S = 600
# Where the provider sends browsers back to.
CALLBACK = "/sign-in/oidc/callback"
# Of two who come back with the same the first one has it.
TAKE_SIGN_ON = """
DELETE FROM sign_ons WHERE digest = %s RETURNING next_path, expires_at > now() AS is_live
"""
UNVERIFIED = (
    "The provider of single sign-on does not say that it has verified your email address. Have it "
    "verified there, or sign in with your password."
)
EMAIL_UNVERIFIED = (
    "There is an account of {}, but nobody has checked that the address belongs to whoever made "
    "it. If that was you, sign in with your password, and then choose single sign-on on the page "
    "of your account. If not, tell an owner of this portal."
)


@dataclass(frozen=True, slots=True)
class SignOnSecrets:
    """What a browser's secret stands for in the requests of one sign-in."""

    secret: str

    @property
    def state(self) -> str:
        """Comes back with the answer, and shows that this browser asked for it."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Is part of the ID token, and shows that it was made for this sign-in."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """Redeems the code, together with it (RFC 7636, section 4.1)."""
        return self._derived("verifier")

    def _derived(self, purpose: str) -> str:
        made = hmac.digest(self.secret.encode("utf-8", "replace"), purpose.encode(), hashlib.sha256)
        return urlsafe_b64encode(made).rstrip(b"=").decode()


async def begin_sign_on(next_path: str) -> SignOnSecrets:
    """Begin a sign-in that goes on at this path of the portal."""
    secret = new_secret()
    await SignOn.create(
        id=uuid4(),
        digest=digest(secret),
        next_path=next_path if len(next_path) <= MAX_PATH_LENGTH else "/",
        expires_at=datetime.now(UTC) + timedelta(seconds=LIFE_S),
    )
    return SignOnSecrets(secret)


async def end_sign_on(secrets: SignOnSecrets, state: str) -> str:
    """Use a sign-in up; returns the path to go on at.

    Raises `SignOnUnknown` for another browser's state, and for one that was used or is too old.
    Another's state uses nothing up: it could be sent by anyone.
    """
    if not hmac.compare_digest(secrets.state.encode(), state.encode("utf-8", "replace")):
        raise SignOnUnknown
    taken = await fetch_rows(TAKE_SIGN_ON, digest(secrets.secret))
    if not taken or not taken[0]["is_live"]:
        raise SignOnUnknown
    return str(taken[0]["next_path"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who signs in, by the provider.

    `email` is empty unless the provider has verified it, `name` unless there is one. `role` is what
    an account gets that is made now, if one may be; with `has_mapped_role` also one that is there.
    """

    issuer: str
    subject: str
    email: str
    name: str
    role: Role | None
    has_mapped_role: bool


def read_claims(claims: Mapping[str, Any], config: Config) -> Person:
    """The person of verified claims. Raises `SingleSignOnRefused` for another domain's."""
    subject, email = str(claims["sub"]), _verified_email(claims)
    if not 0 < len(subject) <= MAX_SUBJECT_LENGTH or "\0" in subject:
        raise SingleSignOnRefused
    if config.oidc_domains and not email:
        raise SingleSignOnRefused(UNVERIFIED)
    if config.oidc_domains and email.rpartition("@")[2] not in config.oidc_domains:
        raise SingleSignOnRefused(f"People whose address is {email} may not sign in here this way.")
    name = claims.get("name")
    return Person(
        issuer=str(claims["iss"]),
        subject=subject,
        email=email,
        name=name[:MAX_NAME_LENGTH] if isinstance(name, str) else "",
        role=_role(claims, config),
        has_mapped_role=bool(config.oidc_roles),
    )


def value_of(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path with dots, such as Keycloak's realm_access.roles."""
    if name in claims:
        return claims[name]
    first, _, rest = name.partition(".")
    inner = claims.get(first)
    return value_of(inner, rest) if rest and isinstance(inner, Mapping) else None


async def sign_in(
    person: Person, *, device: str, address: str, signed_in_id: UUID | None = None
) -> str:
    """The secret of a new session of the person's account.

    `signed_in_id` is the account in which the same browser is signed in already, if in any.
    Raises `SingleSignOnRefused`, which says why, for someone who has none and gets none.
    """
    async with transaction():
        await people.lock_accounts()
        known = Identity.filter(issuer=person.issuer, subject=person.subject)
        identity = await known.prefetch_related("account").first()
        account = identity.account if identity else await _bind(person, signed_in_id)
        _require_enabled(account)
        await _adjust_role(account, person)
        await Account.filter(id=account.id).update(seen_at=NOW)
        await _note(AuditAction.SIGNED_IN, account, person)
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


def _verified_email(claims: Mapping[str, Any]) -> str:
    email = claims.get("email")
    # Only `true` itself: some providers let people claim any address, and say so here.
    if not isinstance(email, str) or claims.get("email_verified") is not True:
        return ""
    plain = people.plain_email(email)
    # What would be kept has to be the very address: without a character left out or replaced, such
    # as the Kelvin sign, whose lower case is a plain k.
    is_same = plain == email.lower() and plain.isascii() == email.isascii()
    return plain if is_same and people.EMAIL.fullmatch(plain) else ""


def _role(claims: Mapping[str, Any], config: Config) -> Role | None:
    """The highest role that is mapped from what is claimed, or else newcomers'."""
    found = value_of(claims, config.oidc_role_claim)
    values = found if isinstance(found, list) else [found]
    mapped = {role for value, role in config.oidc_roles if value in values}
    # The roles stand in their order, the most first.
    highest = next((role for role in Role if role in mapped), None)
    return highest or (Role(config.oidc_default_role) if config.oidc_default_role else None)


async def _bind(person: Person, signed_in_id: UUID | None) -> Account:
    if not person.email:
        raise SingleSignOnRefused(UNVERIFIED)
    account = await Account.get_or_none(email=person.email) or await _add_newcomer(person)
    _require_enabled(account)
    # Else who was invited could make an account with another's address, wait for that one to come
    # by single sign-on, and share all that the account may from then on.
    if account.email_unverified and account.id != signed_in_id:
        raise SingleSignOnRefused(EMAIL_UNVERIFIED.format(person.email))
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
    return account


async def _add_newcomer(person: Person) -> Account:
    # The first account closes the portal: that is done on purpose, not by whoever comes along.
    if person.role is None or not await people.has_accounts():
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


def _require_enabled(account: Account) -> None:
    if account.is_disabled:
        raise SingleSignOnRefused(
            "Your account is disabled. Ask an owner or admin of this portal to enable it."
        )


async def _note(action: AuditAction, account: Account, person: Person, **detail: str) -> None:
    """As the account's own doing, by its provider."""
    told = {"provider": person.issuer, **detail}
    await note(action, account.id, name=account.email, detail=told, by=account)
