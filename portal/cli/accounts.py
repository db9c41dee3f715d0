"""`portal accounts`: who has an account of a portal, and with which role."""

import sys
from pathlib import Path
from typing import Any

import click

from portal.accounts.invitations import LIFE_DAYS
from portal.cli.account_administration import (
    PasswordLink,
    add_account,
    change_role,
    describe_inheritance,
    disable_account,
    enable_account,
    list_accounts,
    remove_account,
    reset_password,
    unbind_account,
)
from portal.cli.common import age, ask, data_dir_option, json_option, print_json, print_table
from portal.database.states import Role

ROLES = click.Choice([role.value for role in Role])


@click.group()
def accounts() -> None:
    """Add, change and remove the accounts of a portal."""


@accounts.command("list")
@json_option
@data_dir_option
def list_command(as_json: bool, data_dir: Path | None) -> None:
    """List accounts, by e-mail address."""
    found = ask(data_dir, list_accounts)
    if as_json:
        print_json({"accounts": found})
        return
    if not found:
        click.echo("There are no accounts: anyone who reaches this portal may do everything.")
        return
    print_table(("EMAIL", "ROLE", "STATE", "SEEN", "ADDED"), [_row_of(it) for it in found])


@accounts.command("add")
@click.argument("email")
@click.option("--role", required=True, type=ROLES, help="What it may do.")
@click.option("--name", default="", help="What viewers read beside its videos.")
@click.option(
    "--password-stdin", is_flag=True, help="Read its password from standard input; make no link."
)
@data_dir_option
def add_command(
    email: str, role: str, name: str, password_stdin: bool, data_dir: Path | None
) -> None:
    """Add an account, and print a link to choose its password. The first has to be an owner's."""
    password = _read_password() if password_stdin else None
    added = ask(data_dir, add_account, email=email, role=role, password=password, name=name)
    click.echo(f"{added.email} has an account with the role {role}.", err=True)
    if added.is_first:
        click.echo(
            "It is the first one: from now on changes need an account, and all videos that are "
            "there belong to it.",
            err=True,
        )
    if added.link:
        _print_link(added.link)


@accounts.command("role")
@click.argument("email")
@click.argument("role", type=ROLES)
@data_dir_option
def role_command(email: str, role: str, data_dir: Path | None) -> None:
    """Give an account another role."""
    changed = ask(data_dir, change_role, email=email, role=role)
    click.echo(f"{changed} has the role {role} now.")


@accounts.command("disable")
@click.argument("email")
@data_dir_option
def disable_command(email: str, data_dir: Path | None) -> None:
    """Let an account do nothing any more; its videos stay."""
    changed = ask(data_dir, disable_account, email=email)
    click.echo(f"{changed} is disabled: signed out everywhere, and its API tokens don't work.")


@accounts.command("enable")
@click.argument("email")
@data_dir_option
def enable_command(email: str, data_dir: Path | None) -> None:
    """Let a disabled account work again."""
    changed = ask(data_dir, enable_account, email=email)
    click.echo(f"{changed} is enabled, and has to sign in again.")


@accounts.command("reset")
@click.argument("email")
@data_dir_option
def reset_command(email: str, data_dir: Path | None) -> None:
    """Print a link to choose a password anew. The password stays until the link is used."""
    link = ask(data_dir, reset_password, email=email)
    if link.is_disabled:
        click.echo(f"{link.email} is disabled: the link works once it is enabled.", err=True)
    _print_link(link)


@accounts.command("unbind")
@click.argument("email")
@data_dir_option
def unbind_command(email: str, data_dir: Path | None) -> None:
    """Forget whose an account is by single sign-on: who next comes with its address has it."""
    changed = ask(data_dir, unbind_account, email=email)
    click.echo(f"{changed} is bound to nobody of single sign-on until someone signs in with it.")


@accounts.command("remove")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Don't ask.")
@data_dir_option
def remove_command(email: str, yes: bool, data_dir: Path | None) -> None:
    """Remove an account. Its videos go to the first owner."""
    if not yes:
        expected = ask(data_dir, describe_inheritance, email=email)
        fate = f"Its videos ({expected.videos}) go to {expected.heir}."
        click.confirm(f"{fate} Remove {expected.email}?", abort=True)
    done = ask(data_dir, remove_account, email=email)
    click.echo(f"{done.email} is removed. Its videos ({done.videos}) belong to {done.heir} now.")


def _read_password() -> str:
    """The first line of standard input, whatever the terminal's encoding."""
    try:
        return sys.stdin.buffer.readline().decode().rstrip("\r\n")
    except UnicodeDecodeError as exc:
        raise click.ClickException("The password is not encoded as UTF-8.") from exc


def _print_link(link: PasswordLink) -> None:
    """The link alone goes to standard output, for programs that hand it on."""
    click.echo(
        f"With this link {link.email} chooses a password. It works once, for {LIFE_DAYS} days:",
        err=True,
    )
    click.echo(link.address)


def _row_of(account: dict[str, Any]) -> tuple[object, ...]:
    state = "active" if account["has_password"] else "no password yet"
    state = "disabled" if account["is_disabled"] else state
    times = age(account["seen_at"]), age(account["created_at"])
    return account["email"], account["role"], state, *times
