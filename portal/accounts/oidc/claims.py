"""Who signs in, read from what the provider claims and the settings allow. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portal.accounts.people import EMAIL, plain_email
from portal.config import Config
from portal.database.account_models import MAX_NAME_LENGTH, MAX_SUBJECT_LENGTH
from portal.database.states import Role
from portal.errors import SingleSignOnRefused

UNVERIFIED = (
    "The provider of single sign-on does not say that it has verified your e-mail address. Have it "
    "verified there, or sign in with your password."
)


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


def read(claims: Mapping[str, Any], config: Config) -> Person:
    """The person of verified claims. Raises `SingleSignOnRefused` for another domain's."""
    subject, email = str(claims["sub"]), _verified_email(claims)
    if not 0 < len(subject) <= MAX_SUBJECT_LENGTH or "\0" in subject:
        raise SingleSignOnRefused
    if config.oidc_domains:
        _require_domain(email, config.oidc_domains)
    return Person(
        issuer=str(claims["iss"]),
        subject=subject,
        email=email,
        name=_name(claims),
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


def _verified_email(claims: Mapping[str, Any]) -> str:
    email = claims.get("email")
    # Only `true` itself: some providers let people claim any address, and say so here.
    if not isinstance(email, str) or claims.get("email_verified") is not True:
        return ""
    plain = plain_email(email)
    # What would be kept has to be the very address: without a character left out or replaced, such
    # as the Kelvin sign, whose lower case is a plain k.
    is_same = plain == email.lower() and plain.isascii() == email.isascii()
    return plain if is_same and EMAIL.fullmatch(plain) else ""


def _name(claims: Mapping[str, Any]) -> str:
    name = claims.get("name")
    return name[:MAX_NAME_LENGTH] if isinstance(name, str) else ""


def _require_domain(email: str, domains: tuple[str, ...]) -> None:
    if not email:
        raise SingleSignOnRefused(UNVERIFIED)
    if email.rpartition("@")[2] not in domains:
        raise SingleSignOnRefused(f"People whose address is {email} may not sign in here this way.")


def _role(claims: Mapping[str, Any], config: Config) -> Role | None:
    """The highest role that is mapped from what is claimed, or else newcomers'."""
    found = value_of(claims, config.oidc_role_claim)
    values = found if isinstance(found, list) else [found]
    mapped = {role for value, role in config.oidc_roles if value in values}
    # The roles stand in their order, the most first.
    highest = next((role for role in Role if role in mapped), None)
    return highest or (Role(config.oidc_default_role) if config.oidc_default_role else None)
