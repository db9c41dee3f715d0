"""`portal audit` and `portal keys`: the audit log, and the keys that sign playback URLs."""

from datetime import UTC, datetime
from pathlib import Path

import click

from portal.accounts.audit import AuditQuery, json_line, read_all, read_page
from portal.cli import common
from portal.database.connection import Row
from portal.database.event_models import Event
from portal.videos import playback_links


@click.command()
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="Only entries from this time (UTC) on.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, common.MAX_LIMIT),
    default=50,
    show_default=True,
    help="Maximum number of entries to show.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print all entries as JSON, one per line, oldest first.",
)
@common.with_database
async def audit(since: datetime | None, limit: int, as_json: bool) -> None:
    """Show the audit log, newest entries first."""
    query = AuditQuery(since=since.replace(tzinfo=UTC) if since else None)
    if as_json:
        async for event in read_all(query):
            click.echo(json_line(event))
        return
    events, _ = await read_page(query, limit=limit)
    common.print_table([_audit_row(event) for event in events])


@click.group()
def keys() -> None:
    """List and replace the keys that sign playback URLs."""


@keys.command("list")
@common.json_option
@common.with_database
async def list_keys(as_json: bool) -> None:
    """List the keys: the first one signs, all of them verify."""
    records = await playback_links.list_keys()
    empty = "No keys yet. The first one is created when a playback URL is signed."
    rows = [{"id": key["kid"], "created": key["created_at"]} for key in records]
    common.print_list("keys", records, rows, as_json=as_json, empty=empty)


@keys.command("rotate")
@click.option("--revoke", is_flag=True, help="Revoke the old keys, and with them all links.")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@common.data_dir_option
def rotate_keys(revoke: bool, yes: bool, data_dir: Path | None) -> None:
    """Create a new signing key.

    Existing playback links keep working, unless you revoke the old keys.
    """
    if revoke and not yes:
        click.confirm("All playback links will stop working. Revoke the keys?", abort=True)
    kid = common.ask(data_dir, playback_links.rotate, revoke=revoke)
    if revoke:
        click.echo(f"Key {kid} is in use. The old keys stop working within seconds.")
    else:
        click.echo(f"Key {kid} will be in use within seconds. Existing links keep working.")


def _audit_row(event: Event) -> Row:
    actor = event.actor_email or event.actor_kind
    return {
        "when": event.at,
        "who": f"{actor} ({event.token_name})" if event.token_name else actor,
        "from": event.address or None,
        "what": event.action,
        "object": event.object_name or event.object_id,
        "more": ", ".join(f"{name}: {text}" for name, text in sorted(event.detail.items())),
    }
