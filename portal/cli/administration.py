"""`portal audit` and `portal keys`: who did what on a portal, and what signs its addresses."""

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
    "--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="The first moment, UTC."
)
@click.option(
    "--limit",
    type=click.IntRange(1, common.MAX_LIMIT),
    default=50,
    show_default=True,
    help="How many lines, the newest first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all lines as JSON, the oldest first.")
@common.with_database
async def audit(since: datetime | None, limit: int, as_json: bool) -> None:
    """List who did what, from where and when."""
    query = AuditQuery(since=since.replace(tzinfo=UTC) if since else None)
    if as_json:
        async for event in read_all(query):
            click.echo(json_line(event))
        return
    events, _ = await read_page(query, limit=limit)
    common.print_table([_audit_row(event) for event in events])


@click.group()
def keys() -> None:
    """List and replace the keys that sign playback addresses."""


@keys.command("list")
@common.json_option
@common.with_database
async def list_keys(as_json: bool) -> None:
    """List the keys; the first one signs, all of them verify."""
    found = await playback_links.list_keys()
    empty = "There are no keys yet: the first is made when it is needed."
    rows = [{"id": key["kid"], "made": key["created_at"]} for key in found]
    common.print_list("keys", found, rows, as_json=as_json, empty=empty)


@keys.command("rotate")
@click.option("--revoke", is_flag=True, help="Remove the old keys at once, and all playback links.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@common.data_dir_option
def rotate_keys(revoke: bool, yes: bool, data_dir: Path | None) -> None:
    """Make a key that signs from now on. Links keep working, unless the old keys are revoked."""
    if revoke and not yes:
        click.confirm("All playback links stop working. Revoke the keys?", abort=True)
    kid = common.ask(data_dir, playback_links.rotate, revoke=revoke)
    if revoke:
        click.echo(f"Key {kid} signs now. Within seconds no other is good for anything.")
    else:
        click.echo(f"Key {kid} signs within seconds. Links work as before.")


def _audit_row(event: Event) -> Row:
    who = event.actor_email or event.actor_kind
    return {
        "when": event.at,
        "who": f"{who} ({event.token_name})" if event.token_name else who,
        "from": event.address or None,
        "what": event.action,
        "object": event.object_name or event.object_id,
        "more": ", ".join(f"{name}: {text}" for name, text in sorted(event.detail.items())),
    }
