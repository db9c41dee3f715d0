"""`portal publish`: a file on a portal, by its public API."""

import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from portal.client import Portal, PortalFailure, PortalRefused
from portal.text import http_address

# By the portal's code: what its user does about it, where the portal speaks to people.
REMEDIES = {
    "not_signed_in": "This portal has accounts. Make an API token with the scopes videos:read and "
    "videos:write on your account's page, and give it with --token or in PORTAL_TOKEN.",
}
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("file")
@click.option("--title", default="", help="Title; the file's name by default.")
@click.option("--description", default="", help="Plain text.")
@click.option(
    "--category", "categories", multiple=True, required=True, help="Name or id; may be given again."
)
@click.option("--tags", default="", help="Comma-separated.")
@click.option(
    "--visibility",
    type=click.Choice(["public", "unlisted", "private"]),
    help="Who may see it from the start; the portal's setting by default.",
)
@click.option(
    "--url",
    default="http://127.0.0.1:8000",
    show_default=True,
    envvar="PORTAL_URL",
    help="The portal's address.",
)
@click.option(
    "--token",
    default="",
    envvar="PORTAL_TOKEN",
    help="API token, for a portal with accounts. In PORTAL_TOKEN no process list shows it.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until the video can be played.")
def publish(file: str, url: str, token: str, wait: bool, **described: Any) -> None:
    """Upload FILE to a portal, wait for it, and print its playback address.

    Of an https address, the portal fetches the file by itself.
    """
    try:
        asyncio.run(_publish(Portal(url, token=token.strip()), file, described, wait=wait))
    except PortalRefused as exc:
        raise click.ClickException(REMEDIES.get(exc.code, str(exc))) from exc
    except PortalFailure as exc:
        raise click.ClickException(str(exc)) from exc


async def _publish(portal: Portal, file: str, described: dict[str, Any], *, wait: bool) -> None:
    """Publish a file, or an address; `described` is by the names of `Portal.publish`."""
    async with portal:
        with ExitStack() as shown:
            bar: Any = None

            def show(sent_bytes: int, size_bytes: int) -> None:
                nonlocal bar
                if bar is None:
                    found = click.progressbar(length=size_bytes, label="Uploading", file=sys.stderr)
                    bar = shown.enter_context(found)
                bar.update(sent_bytes - bar.pos)

            source = file if http_address(file) else FILE.convert(file, None, None)
            if source is file:
                click.echo("Importing…", err=True)
            video = await portal.publish(source, **described, on_sent=show)
        click.echo(f"Created {portal.page_of(video['id'])}", err=True)
        if not wait:
            click.echo(video["id"])
            return
        click.echo("Converting…", err=True)
        click.echo((await portal.wait(video["id"]))["playbackUrl"])
