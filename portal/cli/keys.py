"""`portal keys`: the keys that sign playback addresses."""

from pathlib import Path

import click

from portal.cli.common import age, ask, data_dir_option, json_option, print_json, print_table
from portal.config import Config
from portal.database.connection import Row, open_database
from portal.videos import playback_tokens


@click.group()
def keys() -> None:
    """List and replace the keys that sign playback addresses."""


@keys.command("list")
@json_option
@data_dir_option
def list_command(as_json: bool, data_dir: Path | None) -> None:
    """List the keys; the first one signs, all of them verify."""
    found = ask(data_dir, _list)
    if as_json:
        print_json({"keys": found})
    elif found:
        print_table(("ID", "MADE"), [(key["kid"], age(key["created_at"])) for key in found])
    else:
        click.echo("There are no keys yet: the first is made when it is needed.")


@keys.command("rotate")
@click.option("--revoke", is_flag=True, help="Remove the old keys at once, and all playback links.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@data_dir_option
def rotate_command(revoke: bool, yes: bool, data_dir: Path | None) -> None:
    """Make a key that signs from now on. Links keep working, unless the old keys are revoked."""
    if revoke and not yes:
        click.confirm("All playback links stop working. Revoke the keys?", abort=True)
    kid = ask(data_dir, _rotate, revoke=revoke)
    if revoke:
        click.echo(f"Key {kid} signs now. Within seconds no other is good for anything.")
    else:
        click.echo(f"Key {kid} signs within seconds. Links work as before.")


async def _list(config: Config) -> list[Row]:
    async with open_database(config):
        return await playback_tokens.list_keys()


async def _rotate(config: Config, *, revoke: bool) -> str:
    async with open_database(config):
        return await playback_tokens.rotate(revoke=revoke)
