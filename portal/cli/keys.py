"""`portal keys`: the keys that sign playback addresses."""

from pathlib import Path
from typing import Any

import click

from portal.cli.common import age, ask, data_dir_option, json_option, print_json, print_table
from portal.config import Config
from portal.database.connection import Row, open_database
from portal.videos import signing_keys
from portal.videos.signing_keys import MAX_AGE_S, ROTATED_AFTER_S


@click.group()
def keys() -> None:
    """List and replace the keys that sign playback addresses."""


@keys.command("list")
@json_option
@data_dir_option
def list_command(as_json: bool, data_dir: Path | None) -> None:
    """List the keys, the newest first, and how many links each has signed."""
    found = ask(data_dir, _list)
    if as_json:
        print_json({"keys": found})
        return
    if not found:
        click.echo("There are no keys yet: the first is made when it is needed.")
        return
    print_table(("ID", "STATE", "LINKS", "MADE", "RETIRED"), [_row_of(key) for key in found])


@keys.command("rotate")
@click.option(
    "--revoke", is_flag=True, help="Remove the old keys at once, and all links with them."
)
@click.option("--yes", is_flag=True, help="Don't ask.")
@data_dir_option
def rotate_command(revoke: bool, yes: bool, data_dir: Path | None) -> None:
    """Make a key that signs from now on. Links keep working, unless the old keys are revoked."""
    if revoke and not yes:
        links = sum(key["links"] for key in ask(data_dir, _list))
        click.confirm(f"All playback links ({links}) stop working. Revoke the keys?", abort=True)
    kid = ask(data_dir, _rotate, revoke=revoke)
    if revoke:
        click.echo(f"Key {kid} signs now. Within {MAX_AGE_S:.0f} s no other is good for anything.")
    else:
        click.echo(f"Key {kid} signs within {ROTATED_AFTER_S:.0f} s. Links work as before.")


async def _list(config: Config) -> list[Row]:
    async with open_database(config):
        return await signing_keys.list_keys()


async def _rotate(config: Config, *, revoke: bool) -> str:
    async with open_database(config):
        return await signing_keys.rotate(revoke=revoke)


def _row_of(key: dict[str, Any]) -> tuple[object, ...]:
    is_new = key["retired_at"] is None
    state = "signs" if key["signs"] else "signs soon" if is_new else "verifies"
    return key["kid"], state, key["links"], age(key["created_at"]), age(key["retired_at"])
