"""`portal migrate`: bring the database up to date."""

import click

from portal.cli.common import read_config, run
from portal.database.connection import migrate as run_migrations


@click.command()
def migrate() -> None:
    """Bring the database to the newest version."""
    run(run_migrations(read_config()))
    click.echo("The database is up to date.")
