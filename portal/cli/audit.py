"""`portal audit`: who did what on a portal, from where and when."""

from datetime import UTC, datetime
from pathlib import Path

import click

from portal.accounts.audit import AuditQuery, json_line, read_all, read_page
from portal.cli.common import MAX_LIMIT, age, ask, data_dir_option, print_table
from portal.config import Config
from portal.database.account_models import AuditEvent
from portal.database.connection import open_database

HEADS = ("WHEN", "WHO", "FROM", "WHAT", "OBJECT", "MORE")


@click.command()
@click.option(
    "--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="The first moment, UTC."
)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    default=50,
    show_default=True,
    help="How many lines, the newest first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all lines as JSON, the oldest first.")
@data_dir_option
def audit(since: datetime | None, limit: int, as_json: bool, data_dir: Path | None) -> None:
    """List who did what, from where and when."""
    query = AuditQuery(since=since.replace(tzinfo=UTC) if since else None)
    if as_json:
        ask(data_dir, _print_all, query=query)
        return
    print_table(HEADS, map(_row_of, ask(data_dir, _newest, query=query, limit=limit)))


async def _newest(config: Config, *, query: AuditQuery, limit: int) -> list[AuditEvent]:
    async with open_database(config):
        return list((await read_page(query, limit=limit)).events)


async def _print_all(config: Config, *, query: AuditQuery) -> None:
    async with open_database(config):
        async for event in read_all(query):
            click.echo(json_line(event))


def _row_of(event: AuditEvent) -> tuple[object, ...]:
    who = event.actor_email or event.actor_kind
    who = f"{who} ({event.token_name})" if event.token_name else who
    more = ", ".join(f"{name}: {text}" for name, text in sorted(event.detail.items()))
    thing = event.object_name or event.object_id or "-"
    return age(event.at), who, event.address or "-", event.action, thing, more
