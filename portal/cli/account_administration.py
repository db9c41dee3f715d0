"""What operators ask of a portal's accounts and API tokens from the command line, as plain values.

Each function opens what it needs for itself, and may do everything. Raises `AccountNotFound` for
an unknown e-mail address, and what else the service refuses.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from portal.accounts import identities, invitations, people, tokens
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import EVERYONES
from portal.config import Config
from portal.database.account_models import Account, ApiToken
from portal.database.connection import Row, open_database
from portal.database.models import Video
from portal.database.states import Role
from portal.errors import NotFound

# Of accounts and tokens, what is shown: neither hashes nor digests.
ACCOUNT = ("id", "email", "name", "role", "is_disabled", "created_at", "seen_at")
TOKEN = ("id", "name", "scopes", "created_at", "expires_at", "used_at")


@dataclass(frozen=True, slots=True)
class PasswordLink:
    """The address at which an account's password can be chosen, once."""

    email: str
    address: str
    is_disabled: bool


@dataclass(frozen=True, slots=True)
class AddedAccount:
    """A new account; without a link it has its password already."""

    email: str
    is_first: bool
    link: PasswordLink | None


@dataclass(frozen=True, slots=True)
class Inheritance:
    """To whom how many videos go when an account is removed."""

    email: str
    heir: str
    videos: int


async def list_accounts(config: Config) -> list[Row]:
    """All accounts, by e-mail address."""
    async with open_database(config):
        return [
            {
                **{name: getattr(account, name) for name in ACCOUNT},
                "has_password": account.password_hash is not None,
            }
            for account in await people.list_accounts()
        ]


async def add_account(
    config: Config, *, email: str, role: str, password: str | None, name: str
) -> AddedAccount:
    """Make an account, with a password or with a link to choose one.

    Raises `InvalidRequest` for what can't be, or `AccountExists`.
    """
    plain = people.plain_email(email)
    password_hash = None
    if password is not None:
        password_hash = await Passwords().choose(password, email=plain)
    async with open_database(config):
        is_first = not await people.list_accounts()
        account = await people.add(email, Role(role), password_hash=password_hash, name=name)
        link = None if password_hash else await _offer(config, account)
        return AddedAccount(account.email, is_first, link)


async def change_role(config: Config, *, email: str, role: str) -> str:
    """Give an account another role; returns its e-mail address. Raises `LastOwner`."""
    return await _change(
        config, email, lambda account_id: people.change_role(account_id, Role(role), by=EVERYONES)
    )


async def disable_account(config: Config, *, email: str) -> str:
    """Let an account do nothing any more; returns its e-mail address. Raises `LastOwner`."""
    return await _change(config, email, lambda it: people.disable(it, by=EVERYONES))


async def enable_account(config: Config, *, email: str) -> str:
    """Let a disabled account work again; returns its e-mail address."""
    return await _change(config, email, lambda it: people.enable(it, by=EVERYONES))


async def reset_password(config: Config, *, email: str) -> PasswordLink:
    """Make a link to choose a password anew; the password stays until the link is used."""
    async with open_database(config):
        return await _offer(config, await people.get(email))


async def unbind_account(config: Config, *, email: str) -> str:
    """Forget whose an account is by single sign-on; returns its e-mail address."""
    return await _change(config, email, identities.unbind)


async def describe_inheritance(config: Config, *, email: str) -> Inheritance:
    """Who would get an account's videos. Raises `LastOwner`."""
    async with open_database(config):
        return await _inheritance(await people.get(email))


async def remove_account(config: Config, *, email: str) -> Inheritance:
    """Remove an account; returns who has its videos now. Raises `LastOwner`."""
    async with open_database(config):
        account = await people.get(email)
        inheritance = await _inheritance(account)
        heir = await people.remove(account.id, by=EVERYONES)
        return replace(inheritance, heir=heir.email)


async def list_tokens(config: Config) -> list[Row]:
    """The API tokens of all accounts, the newest first; expired ones included."""
    async with open_database(config):
        tokens = await ApiToken.all().order_by("-created_at").prefetch_related("account")
        return [
            {**{name: getattr(token, name) for name in TOKEN}, "email": token.account.email}
            for token in tokens
        ]


async def add_token(
    config: Config, *, email: str, name: str, scopes: Sequence[str], days: int | None
) -> str:
    """Make an API token of an account; returns it. Raises `InvalidRequest` for what can't be."""
    async with open_database(config):
        account = await people.get(email)
        return await tokens.create(account.id, name=name, scopes=scopes, days=days)


async def revoke_token(config: Config, *, token_id: str) -> None:
    """Revoke an API token. Raises `NotFound`."""
    async with open_database(config):
        token = await ApiToken.get_or_none(id=_parse_id(token_id))
        if token is None:
            raise NotFound("There is no API token with this id. See `portal tokens list`.")
        await tokens.revoke(token.id, account_id=token.account_id)


def _parse_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def _change(config: Config, email: str, change: Callable[[UUID], Awaitable[None]]) -> str:
    async with open_database(config):
        account = await people.get(email)
        await change(account.id)
        return account.email


async def _offer(config: Config, account: Account) -> PasswordLink:
    secret = await invitations.offer_password(account.id, by=EVERYONES)
    address = f"{config.public_url}/welcome/{secret}"
    return PasswordLink(account.email, address, account.is_disabled)


async def _inheritance(account: Account) -> Inheritance:
    heir = await people.heir_of(account, by=EVERYONES)
    videos = await Video.filter(owner_id=account.id).count()
    return Inheritance(account.email, heir.email, videos)
