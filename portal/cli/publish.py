"""`portal publish`: publish a file on a portal through its public API."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from portal.client import Portal, PortalFailure, PortalRefused
from portal.client.portal import CONTENT_TYPES
from portal.client.repack import repacked
from portal.text import http_address

# Messages by error code, where the API's own message speaks to visitors of pages.
REMEDIES = {
    "not_signed_in": "This portal requires an API token. Create one with the scopes videos:read "
    "and videos:write on your account's page, and pass it with --token or in PORTAL_TOKEN.",
}
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("file")
@click.option("--title", default="", help="Title of the video.  [default: name of the file]")
@click.option("--description", default="", help="Description, as plain text.")
@click.option(
    "--category",
    "categories",
    multiple=True,
    required=True,
    help="Name or id of a category. Repeat the option for several categories.",
)
@click.option("--tags", default="", help="Tags, separated by commas.")
@click.option(
    "--visibility",
    type=click.Choice(["public", "unlisted", "private"]),
    help="Visibility of the video.  [default: the portal's setting]",
)
@click.option(
    "--url",
    default="http://127.0.0.1:8000",
    show_default=True,
    envvar="PORTAL_URL",
    help="URL of the portal.",
)
@click.option(
    "--token",
    default="",
    envvar="PORTAL_TOKEN",
    help="API token, for a portal with accounts. Prefer $PORTAL_TOKEN: process lists show options.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until the video can be played.")
def publish(file: str, url: str, token: str, wait: bool, **metadata: Any) -> None:
    """Publish a video file and print its playback URL.

    FILE is a path, or an https URL that the portal downloads. A file that isn't MP4 or QuickTime is
    repacked without loss first, and a sound file becomes a film with its cover or title. With
    --no-wait, print the id of the video instead.
    """
    try:
        asyncio.run(_publish(Portal(url, token=token.strip()), file, metadata, wait=wait))
    except PortalRefused as exc:
        raise click.ClickException(REMEDIES.get(exc.code, str(exc))) from exc
    except PortalFailure as exc:
        raise click.ClickException(str(exc)) from exc


async def _publish(portal: Portal, file: str, metadata: dict[str, Any], *, wait: bool) -> None:
    """Publish a path or a URL; `metadata` are arguments of `Portal.publish`."""
    async with AsyncExitStack() as context:
        source: Path | str = file if http_address(file) else FILE.convert(file, None, None)
        if isinstance(source, str):
            click.echo("Importing…", err=True)
        elif source.suffix.lower() not in CONTENT_TYPES:
            with _bar("Repacking") as show:
                ready = await context.enter_async_context(repacked(source, on_repacked=show))
            click.echo(ready.note, err=True)
            source = ready.file
        await context.enter_async_context(portal)
        with _bar("Uploading") as show:
            video = await portal.publish(source, **metadata, on_sent=show)
        click.echo(f"Created {portal.page_of(video['id'])}", err=True)
        if not wait:
            click.echo(video["id"])
            return
        click.echo("Converting…", err=True)
        click.echo((await portal.wait(video["id"]))["playbackUrl"])


@contextmanager
def _bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Return a function that shows a progress bar, which begins with its first call."""
    with ExitStack() as bars:
        bar: Any = None

        def show(done: int, total: int) -> None:
            nonlocal bar
            if bar is None:
                bar = click.progressbar(length=total, label=label, file=sys.stderr)
                bars.enter_context(bar)
            bar.update(done - bar.pos)

        yield show
