"""`portal accounts` and `portal tokens`: who may do what on a portal, people and programs.

Operators may do everything. Of accounts and tokens neither hashes nor digests are shown.
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
    """Add, change and remove the accounts of a portal."""


@accounts.command("list")
@json_option
@with_database
async def list_accounts(as_json: bool) -> None:
    """List accounts, by email address."""
    accounts = Account.all().order_by("email")
    found = [
        {"has_password": row.pop("password_hash") is not None, **row}
        for row in await accounts.values(*ACCOUNT, "password_hash")
    ]
    empty = "There are no accounts: anyone who reaches this portal may do everything."
    print_list("accounts", found, map(_account_row, found), as_json=as_json, empty=empty)


def _read_password(_context: click.Context, _option: click.Parameter, wanted: bool) -> str | None:
    """The first line of standard input, whatever the terminal's encoding."""
    try:
        return sys.stdin.buffer.readline().decode().rstrip("\r\n") if wanted else None
    except UnicodeDecodeError as exc:
        raise click.ClickException("The password is not encoded as UTF-8.") from exc


@accounts.command("add")
@click.argument("email")
@click.option("--role", required=True, type=ROLES, help="What it may do.")
@click.option("--name", default="", help="What viewers read beside its videos.")
@click.option(
    *("--password-stdin", "password"),
    is_flag=True,
    callback=_read_password,
    help="Read its password from standard input; make no link.",
)
@with_database
@click.pass_obj
async def add_account(
    config: Config, email: str, role: str, name: str, password: str | None
) -> None:
    """Add an account, and print a link to choose its password. The first has to be an owner's."""
    password_hash = None
    if password is not None:
        password_hash = await Passwords().choose(password, email=people.plain_email(email))
    is_first = not await people.has_accounts()
    account = await people.add(email, Role(role), password_hash=password_hash, name=name)
    click.echo(f"{account.email} has an account with the role {role}.", err=True)
    if is_first:
        click.echo(
            "It is the first one: from now on changes need an account, and all videos that are "
            "there belong to it.",
            err=True,
        )
    if password is None:
        await _print_link(config, account)


@accounts.command("role")
@click.argument("email")
@click.argument("role", type=ROLES)
@with_database
async def change_role(email: str, role: str) -> None:
    """Give an account another role."""
    account = await people.get(email)
    await people.change_role(account.id, Role(role), by=EVERYONES)
    click.echo(f"{account.email} has the role {role} now.")


@accounts.command("disable")
@click.argument("email")
@with_database
async def disable_account(email: str) -> None:
    """Let an account do nothing any more; its videos stay."""
    account = await people.get(email)
    await people.disable(account.id, by=EVERYONES)
    click.echo(
        f"{account.email} is disabled: signed out everywhere, and its API tokens don't work."
    )


@accounts.command("enable")
@click.argument("email")
@with_database
async def enable_account(email: str) -> None:
    """Let a disabled account work again."""
    account = await people.get(email)
    await people.enable(account.id, by=EVERYONES)
    click.echo(f"{account.email} is enabled, and has to sign in again.")


@accounts.command("reset")
@click.argument("email")
@with_database
@click.pass_obj
async def reset_password(config: Config, email: str) -> None:
    """Print a link to choose a password anew. The password stays until the link is used."""
    account = await people.get(email)
    if account.is_disabled:
        click.echo(f"{account.email} is disabled: the link works once it is enabled.", err=True)
    await _print_link(config, account)


@accounts.command("unbind")
@click.argument("email")
@with_database
async def unbind_account(email: str) -> None:
    """Forget whose an account is by single sign-on: who next comes with its address has it."""
    account = await people.get(email)
    await identities.unbind(account.id)
    click.echo(
        f"{account.email} is bound to nobody of single sign-on until someone signs in with it."
    )


@accounts.command("remove")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Don't ask.")
@data_dir_option
def remove_account(email: str, yes: bool, data_dir: Path | None) -> None:
    """Remove an account. Its videos go to the first owner."""
    if not yes:
        click.confirm(ask(data_dir, _removal_question, email=email), abort=True)
    ask(data_dir, _remove, email=email)


async def _removal_question(email: str) -> str:
    account = await people.get(email)
    heir = await people.heir_of(account, by=EVERYONES)
    videos = await Video.filter(owner_id=account.id).count()
    return f"Its videos ({videos}) go to {heir.email}. Remove {account.email}?"


async def _remove(email: str) -> None:
    account = await people.get(email)
    videos = await Video.filter(owner_id=account.id).count()
    heir = await people.remove(account.id, by=EVERYONES)
    click.echo(f"{account.email} is removed. Its videos ({videos}) belong to {heir.email} now.")


@click.group()
def tokens() -> None:
    """List, make and revoke API tokens."""


@tokens.command("list")
@json_option
@with_database
async def list_tokens(as_json: bool) -> None:
    """List the API tokens of all accounts, the newest first."""
    found = await ApiToken.all().order_by("-created_at").values(*TOKEN, email="account__email")
    print_list("tokens", found, map(_token_row, found), as_json=as_json)


@tokens.command("add")
@click.argument("email")
@click.option("--name", required=True, help="What will use it.")
@click.option(
    *("--scope", "scopes"),
    multiple=True,
    required=True,
    type=SCOPES,
    help="What it may be used for; may be given again.",
)
@click.option(
    "--days",
    type=click.IntRange(1, api_tokens.MAX_DAYS),
    help="How long it works; for ever if not.",
)
@with_database
async def add_token(email: str, name: str, scopes: tuple[str, ...], days: int | None) -> None:
    """Make an API token of an account, and print it. It may never do more than the account."""
    account = await people.get(email)
    token = await api_tokens.create(account.id, name=name, scopes=scopes, days=days)
    click.echo(
        "It is shown this once. Programs send it as `Authorization: Bearer …`; `portal publish` "
        "takes it from PORTAL_TOKEN.",
        err=True,
    )
    click.echo(token)


@tokens.command("revoke")
@click.argument("token_id", metavar="ID", type=click.UUID)
@with_database
async def revoke_token(token_id: UUID) -> None:
    """Make an API token void."""
    token = await ApiToken.get_or_none(id=token_id)
    if token is None:
        raise NotFound("There is no API token with this id. See `portal tokens list`.")
    await api_tokens.revoke(token.id, account_id=token.account_id)
    click.echo(f"{token_id} is revoked.")


async def _print_link(config: Config, account: Account) -> None:
    """The link alone goes to standard output, for programs that hand it on."""
    secret = await invitations.offer_password(account.id, by=EVERYONES)
    click.echo(
        f"With this link {account.email} chooses a password. It works once, for "
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
        "made": token["created_at"],
        "used": token["used_at"],
        "expires": expires,
    }
