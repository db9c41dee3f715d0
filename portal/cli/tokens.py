"""`portal tokens`: what programs send to a portal instead of a password."""

from pathlib import Path
from typing import Any

import click

from portal.accounts.tokens import MAX_DAYS
from portal.cli.account_administration import add_token, list_tokens, revoke_token
from portal.cli.common import age, ask, data_dir_option, json_option, print_json, print_table
from portal.database.states import Scope

SCOPES = click.Choice([scope.value for scope in Scope])


@click.group()
def tokens() -> None:
    """List, make and revoke API tokens."""


@tokens.command("list")
@json_option
@data_dir_option
def list_command(as_json: bool, data_dir: Path | None) -> None:
    """List the API tokens of all accounts, the newest first."""
    found = ask(data_dir, list_tokens)
    if as_json:
        print_json({"tokens": found})
        return
    heads = ("ID", "ACCOUNT", "NAME", "SCOPES", "MADE", "USED", "EXPIRES")
    print_table(heads, [_row_of(token) for token in found])


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
    "--days", type=click.IntRange(1, MAX_DAYS), help="How long it works; for ever if not."
)
@data_dir_option
def add_command(
    email: str, name: str, scopes: tuple[str, ...], days: int | None, data_dir: Path | None
) -> None:
    """Make an API token of an account, and print it. It may never do more than the account."""
    token = ask(data_dir, add_token, email=email, name=name, scopes=scopes, days=days)
    click.echo(
        "It is shown this once. Programs send it as `Authorization: Bearer …`; `portal publish` "
        "takes it from PORTAL_TOKEN.",
        err=True,
    )
    click.echo(token)


@tokens.command("revoke")
@click.argument("token_id", metavar="ID")
@data_dir_option
def revoke_command(token_id: str, data_dir: Path | None) -> None:
    """Make an API token void."""
    ask(data_dir, revoke_token, token_id=token_id)
    click.echo(f"{token_id} is revoked.")


def _row_of(token: dict[str, Any]) -> tuple[object, ...]:
    names = token["id"], token["email"], token["name"], ", ".join(token["scopes"])
    expires = "never" if token["expires_at"] is None else _expiry(age(token["expires_at"]))
    return *names, age(token["created_at"]), age(token["used_at"]), expires


def _expiry(words: str) -> str:
    return words if words.startswith("in ") else "expired"
