"""`portal publish`: upload a file to a portal, as any client of its API does."""

import asyncio
from pathlib import Path

import click

from portal.client.publish import publish_file


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--title", help="Title; the file's name by default.")
@click.option("--description", default="", help="Plain text.")
@click.option(
    "--category", "categories", multiple=True, required=True, help="Name or id; may be given again."
)
@click.option("--tags", default="", help="Comma-separated.")
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
def publish(
    file: Path,
    title: str | None,
    description: str,
    categories: tuple[str, ...],
    tags: str,
    url: str,
    token: str,
    wait: bool,
) -> None:
    """Upload FILE to a portal, wait for it, and print its playback address."""
    texts = {"title": title or file.stem, "description": description, "tags": tags}
    where = {"portal_url": url.rstrip("/"), "token": token.strip()}
    asyncio.run(publish_file(file, texts, categories=categories, wait=wait, **where))
