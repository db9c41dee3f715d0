"""Single sign-on: pending sign-ons, and the links between people of a provider and accounts.

A pending sign-on is valid for ten minutes and for one use. The browser keeps a secret in a cookie.
State, nonce and code verifier are derived from it independently, so that neither the provider,
which receives some of them, nor a reader of the database, which has a digest, can compute the
others. `oidc` talks to the provider.

The first sign-on links an account to a person, by issuer and subject. Afterwards the email address
doesn't matter: another person of the provider can't use the account, even with the same address.
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from portal.accounts import groups, people, sessions
from portal.accounts.tokens import digest, new_secret
from portal.config import Config
from portal.database.account_models import (
    MAX_NAME_LENGTH,
    MAX_PATH_LENGTH,
    MAX_SUBJECT_LENGTH,
    Account,
    Identity,
    Role,
    SignOn,
)
from portal.database.connection import NOW, fetch_rows, transaction
from portal.errors import SignOnUnknown, SingleSignOnRefused
from portal.events.log import AuditAction, record_action
from portal.locale.messages import Message

LIFE_S = 600
# Path to which the provider redirects browsers.
CALLBACK = "/sign-in/oidc/callback"
# Single use: the first of two concurrent callbacks wins.
TAKE_SIGN_ON = """
DELETE FROM sign_ons WHERE digest = %s RETURNING next_path, expires_at > now() AS is_live
"""
UNVERIFIED = Message(
    "The single sign-on provider has not verified your email address. Verify it there, or sign in "
    "with your password."
)


@dataclass(frozen=True, slots=True)
class SignOnSecrets:
    """Secret of a browser for one sign-on, and the values that are derived from it."""

    secret: str

    @property
    def state(self) -> str:
        """Return the state, which proves at the callback that this browser began the sign-on."""
        return self._derive("state")

    @property
    def nonce(self) -> str:
        """Return the nonce, which proves that the ID token was issued for this sign-on."""
        return self._derive("nonce")

    @property
    def verifier(self) -> str:
        """Return the code verifier, which is sent with the code (RFC 7636, section 4.1)."""
        return self._derive("verifier")

    def _derive(self, purpose: str) -> str:
        key = self.secret.encode("utf-8", "replace")
        derived = hmac.digest(key, purpose.encode(), hashlib.sha256)
        return urlsafe_b64encode(derived).rstrip(b"=").decode()


async def begin_sign_on(next_path: str) -> SignOnSecrets:
    """Begin a sign-on; `next_path` is the path of the portal to open afterwards."""
    secret = new_secret()
    await SignOn.create(
        id=uuid4(),
        digest=digest(secret),
        next_path=next_path if len(next_path) <= MAX_PATH_LENGTH else "/",
        expires_at=datetime.now(UTC) + timedelta(seconds=LIFE_S),
    )
    return SignOnSecrets(secret)


async def end_sign_on(secrets: SignOnSecrets, state: str) -> str:
    """End a pending sign-on; return the path to open.

    Raises `SignOnUnknown` for the state of another browser, and for a used or expired sign-on. The
    former leaves the sign-on pending, because anyone can send a wrong state.
    """
    if not hmac.compare_digest(secrets.state.encode(), state.encode("utf-8", "replace")):
        raise SignOnUnknown
    rows = await fetch_rows(TAKE_SIGN_ON, digest(secrets.secret))
    if not rows or not rows[0]["is_live"]:
        raise SignOnUnknown
    return str(rows[0]["next_path"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Person who signs in, as described by the provider.

    `email` is empty unless the provider has verified it, `name` if there is none. `role` is that of
    a new account; None refuses new accounts. With `has_mapped_role` existing accounts get it, too.
    `groups` are the values of the claim, which groups of accounts follow.
    """

    issuer: str
    subject: str
    email: str
    name: str
    role: Role | None
    has_mapped_role: bool
    groups: frozenset[str]


def read_claims(claims: Mapping[str, Any], config: Config) -> Person:
    """Return the person of verified claims.

    An address that the provider hasn't verified is left out. Raises `SingleSignOnRefused` for an
    empty or overlong subject. If `oidc_domains` are configured, it is also raised for an address of
    another domain, or for none.
    """
    subject = str(claims["sub"])
    email = _verified_email(claims)
    if not 0 < len(subject) <= MAX_SUBJECT_LENGTH or "\0" in subject:
        raise SingleSignOnRefused
    if config.oidc_domains and not email:
        raise SingleSignOnRefused(UNVERIFIED)
    if config.oidc_domains and email.rpartition("@")[2] not in config.oidc_domains:
        raise SingleSignOnRefused(
            Message(
                "Single sign-on is not allowed for %(email)s. Use an address of your organization.",
                email=email,
            )
        )
    name = claims.get("name")
    return Person(
        issuer=str(claims["iss"]),
        subject=subject,
        email=email,
        name=name[:MAX_NAME_LENGTH] if isinstance(name, str) else "",
        role=_mapped_role(claims, config),
        has_mapped_role=bool(config.oidc_roles),
        groups=frozenset(value for value in _claimed(claims, config) if isinstance(value, str)),
    )


def value_of(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by a dotted path such as Keycloak's `realm_access.roles`."""
    if name in claims:
        return claims[name]
    first, _, inner_name = name.partition(".")
    inner = claims.get(first)
    return value_of(inner, inner_name) if inner_name and isinstance(inner, Mapping) else None


async def sign_in(
    person: Person, *, device: str, address: str, signed_in_id: UUID | None = None
) -> str:
    """Begin a session of the person's account; return the secret for its cookie.

    `signed_in_id` is the account that is already signed in to this browser, if there is one.
    Raises `SingleSignOnRefused` with the reason if the person has no account and gets none.
    """
    async with transaction():
        await people.lock_accounts()
        identities = Identity.filter(issuer=person.issuer, subject=person.subject)
        identity = await identities.prefetch_related("account").first()
        account = identity.account if identity else await _link_account(person, signed_in_id)
        _require_enabled(account)
        await _adjust_role(account, person)
        await groups.follow(account.id, person.groups)
        await Account.filter(id=account.id).update(seen_at=NOW)
        await _note_by_provider(AuditAction.SIGNED_IN, account, person)
        return await sessions.create(account.id, device=device, address=address)


async def is_bound(account_id: UUID, issuer: str) -> bool:
    """Return whether an account is linked to a person of this provider."""
    return await Identity.exists(account_id=account_id, issuer=issuer)


async def unbind(account_id: UUID) -> None:
    """Unlink an account from single sign-on; the next sign-on with its address links it again."""
    async with transaction():
        if await Identity.filter(account_id=account_id).delete():
            account = await Account.get(id=account_id)
            await record_action(AuditAction.ACCOUNT_UNBOUND, account.id, name=account.email)


def _verified_email(claims: Mapping[str, Any]) -> str:
    email = claims.get("email")
    # Only `true` counts: some providers let people enter any address, and send another value.
    if not isinstance(email, str) or claims.get("email_verified") is not True:
        return ""
    plain = people.plain_email(email)
    # The normal form must be the same address, without omitted or replaced characters: the lower
    # case of the Kelvin sign, for example, is a plain k.
    is_same = plain == email.lower() and plain.isascii() == email.isascii()
    return plain if is_same and people.EMAIL.fullmatch(plain) else ""


def _mapped_role(claims: Mapping[str, Any], config: Config) -> Role | None:
    """Return the highest role that the claims are mapped to, or the default role."""
    values = _claimed(claims, config)
    mapped = {role for value, role in config.oidc_roles if value in values}
    # Roles are declared from the highest to the lowest.
    highest = next((role for role in Role if role in mapped), None)
    return highest or (Role(config.oidc_default_role) if config.oidc_default_role else None)


def _claimed(claims: Mapping[str, Any], config: Config) -> list[Any]:
    """Return the values of the claim with a person's groups or roles."""
    claim = value_of(claims, config.oidc_role_claim)
    return claim if isinstance(claim, list) else [claim]


async def _link_account(person: Person, signed_in_id: UUID | None) -> Account:
    """Link the account with the person's email address, which is added if it may be."""
    if not person.email:
        raise SingleSignOnRefused(UNVERIFIED)
    account = await Account.get_or_none(email=person.email) or await _add_newcomer(person)
    _require_enabled(account)
    # An invited person could have added an account with someone else's address, to share the
    # account's permissions once that person signs in.
    if account.email_unverified and account.id != signed_in_id:
        raise SingleSignOnRefused(
            Message(
                "An account with the address %(email)s exists, but its address was never verified. "
                "If the account is yours, sign in with your password, and then choose single "
                "sign-on on your account's page. Otherwise tell an owner of this portal.",
                email=person.email,
            )
        )
    if await Identity.exists(account_id=account.id, issuer=person.issuer):
        raise SingleSignOnRefused(
            Message(
                "The account %(email)s is linked to another person of this provider. Ask the "
                "operator of this portal to unlink it.",
                email=person.email,
            )
        )
    await Identity.create(
        id=uuid4(), issuer=person.issuer, subject=person.subject, account_id=account.id
    )
    if person.name and not account.name:
        await Account.filter(id=account.id).update(name=people.plain_name(person.name))
    await _note_by_provider(AuditAction.ACCOUNT_BOUND, account, person)
    return account


async def _add_newcomer(person: Person) -> Account:
    # The first account closes the portal, which must not happen by a sign-on.
    if person.role is None or not await people.has_accounts():
        raise SingleSignOnRefused(
            Message(
                "%(email)s has no account here. Ask an owner or admin of this portal for an "
                "invitation.",
                email=person.email,
            )
        )
    account = await people.add_locked(person.email, person.role, name=person.name)
    await _note_by_provider(AuditAction.ACCOUNT_ADDED, account, person, role=person.role.value)
    return account


async def _adjust_role(account: Account, person: Person) -> None:
    """Change the account's role to the mapped one; owners keep theirs."""
    if not person.has_mapped_role or person.role is None:
        return
    if account.role in (person.role, Role.OWNER):
        return
    await Account.filter(id=account.id).update(role=person.role)
    await people.delete_links(account.id)
    roles = {"was": account.role.value, "role": person.role.value}
    await _note_by_provider(AuditAction.ROLE_CHANGED, account, person, **roles)


def _require_enabled(account: Account) -> None:
    if account.is_disabled:
        raise SingleSignOnRefused(
            Message("Your account is disabled. Ask an owner or admin of this portal to enable it.")
        )


async def _note_by_provider(
    action: AuditAction, account: Account, person: Person, **detail: str
) -> None:
    """Write an action of the account itself to the audit log, with its provider."""
    detail = {"provider": person.issuer, **detail}
    await record_action(action, account.id, name=account.email, detail=detail, by=account)
