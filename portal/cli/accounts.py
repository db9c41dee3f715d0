"""`portal accounts` and `portal tokens`: manage the accounts and API tokens of a portal.

Operators have every permission. Password hashes and token digests are never printed.
"""

import sys
from pathlib import Path
from uuid import UUID

import click

from portal.accounts import identities, invitations, people
from portal.accounts import tokens as api_tokens
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import EVERYONES
from portal.cli.common import age, ask, data_dir_option, json_option, print_list, with_database
from portal.config import Config
from portal.database.account_models import Account, ApiToken, Role, Scope
from portal.database.connection import Row
from portal.database.models import Video
from portal.errors import NotFound

ROLES = click.Choice([role.value for role in Role])
SCOPES = click.Choice([scope.value for scope in Scope])
ACCOUNT = ("id", "email", "name", "role", "is_disabled", "created_at", "seen_at")
TOKEN = ("id", "name", "scopes", "created_at", "expires_at", "used_at")


@click.group()
def accounts() -> None:
    """Add, change and remove accounts."""


@accounts.command("list")
@json_option
@with_database
async def list_accounts(as_json: bool) -> None:
    """List all accounts, ordered by email address."""
    accounts = Account.all().order_by("email")
    records = [
        {"has_password": row.pop("password_hash") is not None, **row}
        for row in await accounts.values(*ACCOUNT, "password_hash")
    ]
    empty = "No accounts. Without accounts, everyone who can reach this portal can change it."
    print_list("accounts", records, map(_account_row, records), as_json=as_json, empty=empty)


def _read_password(_context: click.Context, _option: click.Parameter, is_given: bool) -> str | None:
    """Return the first line of standard input, decoded as UTF-8 in every locale."""
    try:
        return sys.stdin.buffer.readline().decode().rstrip("\r\n") if is_given else None
    except UnicodeDecodeError as exc:
        raise click.ClickException("The password on standard input is not valid UTF-8.") from exc


@accounts.command("add")
@click.argument("email")
@click.option("--role", required=True, type=ROLES, help="Role of the account.")
@click.option("--name", default="", help="Name that viewers see next to the account's videos.")
@click.option(
    *("--password-stdin", "password"),
    is_flag=True,
    callback=_read_password,
    help="Read the password from standard input instead of printing a link.",
)
@with_database
@click.pass_obj
async def add_account(
    config: Config, email: str, role: str, name: str, password: str | None
) -> None:
    """Add an account and print a link to choose its password.

    The first account must be an owner's.
    """
    password_hash = None
    if password is not None:
        password_hash = await Passwords().choose(password, email=people.plain_email(email))
    is_first = not await people.has_accounts()
    account = await people.add(email, Role(role), password_hash=password_hash, name=name)
    click.echo(f"Added the account {account.email} with the role {role}.", err=True)
    if is_first:
        click.echo(
            "This is the first account. It owns all existing videos, and from now on changes "
            "require an account.",
            err=True,
        )
    if password is None:
        await _print_link(config, account)


@accounts.command("role")
@click.argument("email")
@click.argument("role", type=ROLES)
@with_database
async def change_role(email: str, role: str) -> None:
    """Change the role of an account."""
    account = await people.get(email)
    await people.change_role(account.id, Role(role), by=EVERYONES)
    click.echo(f"{account.email} now has the role {role}.")


@accounts.command("disable")
@click.argument("email")
@with_database
async def disable_account(email: str) -> None:
    """Disable an account; its videos are kept."""
    account = await people.get(email)
    await people.disable(account.id, by=EVERYONES)
    click.echo(
        f"{account.email} is disabled. It is signed out everywhere, and its API tokens no longer "
        "work."
    )


@accounts.command("enable")
@click.argument("email")
@with_database
async def enable_account(email: str) -> None:
    """Enable a disabled account."""
    account = await people.get(email)
    await people.enable(account.id, by=EVERYONES)
    click.echo(f"{account.email} is enabled. It must sign in again.")


@accounts.command("reset")
@click.argument("email")
@with_database
@click.pass_obj
async def reset_password(config: Config, email: str) -> None:
    """Print a link to choose a new password.

    The present password works until the link is used.
    """
    account = await people.get(email)
    if account.is_disabled:
        click.echo(
            f"{account.email} is disabled. The link works after you enable the account.", err=True
        )
    await _print_link(config, account)


@accounts.command("unbind")
@click.argument("email")
@with_database
async def unbind_account(email: str) -> None:
    """Unlink an account from single sign-on.

    The next person who signs in with the account's email address is linked to it.
    """
    account = await people.get(email)
    await identities.unbind(account.id)
    click.echo(f"{account.email} is no longer linked to single sign-on.")


@accounts.command("remove")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@data_dir_option
def remove_account(email: str, yes: bool, data_dir: Path | None) -> None:
    """Remove an account and give its videos to the first owner."""
    if not yes:
        click.confirm(ask(data_dir, _removal_question, email=email), abort=True)
    ask(data_dir, _remove, email=email)


async def _removal_question(email: str) -> str:
    account = await people.get(email)
    heir = await people.heir_of(account, by=EVERYONES)
    videos = await Video.filter(owner_id=account.id).count()
    return f"{heir.email} will own its videos ({videos}). Remove {account.email}?"


async def _remove(email: str) -> None:
    account = await people.get(email)
    videos = await Video.filter(owner_id=account.id).count()
    heir = await people.remove(account.id, by=EVERYONES)
    click.echo(f"Removed {account.email}. {heir.email} now owns its videos ({videos}).")


@click.group()
def tokens() -> None:
    """List, create and revoke API tokens."""


@tokens.command("list")
@json_option
@with_database
async def list_tokens(as_json: bool) -> None:
    """List the API tokens of all accounts, newest first."""
    records = await ApiToken.all().order_by("-created_at").values(*TOKEN, email="account__email")
    print_list("tokens", records, map(_token_row, records), as_json=as_json)


@tokens.command("add")
@click.argument("email")
@click.option("--name", required=True, help="Name of the token, such as the program that uses it.")
@click.option(
    *("--scope", "scopes"),
    multiple=True,
    required=True,
    type=SCOPES,
    help="Scope of the token. Repeat the option for several scopes.",
)
@click.option(
    "--days",
    type=click.IntRange(1, api_tokens.MAX_DAYS),
    help="Days until the token expires. By default it never expires.",
)
@with_database
async def add_token(email: str, name: str, scopes: tuple[str, ...], days: int | None) -> None:
    """Create an API token for an account and print it.

    A token never has more permissions than its account.
    """
    account = await people.get(email)
    token = await api_tokens.create(account.id, name=name, scopes=scopes, days=days)
    click.echo(
        "Store this token now: it is shown only once. Send it as `Authorization: Bearer …`, or put "
        "it into PORTAL_TOKEN for `portal publish`.",
        err=True,
    )
    click.echo(token)


@tokens.command("revoke")
@click.argument("token_id", metavar="ID", type=click.UUID)
@with_database
async def revoke_token(token_id: UUID) -> None:
    """Revoke an API token."""
    token = await ApiToken.get_or_none(id=token_id)
    if token is None:
        raise NotFound("There is no API token with this id. List them with `portal tokens list`.")
    await api_tokens.revoke(token.id, account_id=token.account_id)
    click.echo(f"Revoked the API token {token_id}.")


async def _print_link(config: Config, account: Account) -> None:
    """Print a link to choose a password; only the link itself goes to standard output."""
    secret = await invitations.offer_password(account.id, by=EVERYONES)
    click.echo(
        f"Send this link to {account.email} to choose a password. It works once and expires in "
        f"{invitations.LIFE_DAYS} days:",
        err=True,
    )
    click.echo(f"{config.public_url}/welcome/{secret}")


def _account_row(account: Row) -> Row:
    state = "active" if account["has_password"] else "no password yet"
    return {
        "email": account["email"],
        "role": account["role"],
        "state": "disabled" if account["is_disabled"] else state,
        "seen": account["seen_at"],
        "added": account["created_at"],
    }


def _token_row(token: Row) -> Row:
    expires = "never"
    if token["expires_at"] is not None:
        expires = age(token["expires_at"])
        expires = expires if expires.startswith("in ") else "expired"
    return {
        "id": token["id"],
        "account": token["email"],
        "name": token["name"],
        "scopes": ", ".join(token["scopes"]),
        "created": token["created_at"],
        "used": token["used_at"],
        "expires": expires,
    }
