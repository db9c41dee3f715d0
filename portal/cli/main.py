"""The `portal` command. Each subcommand reads its input and calls one function elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import click

from portal import __version__
from portal.cli.common import data_dir_option, quiet, read_config, run
from portal.cli.videos import queue, videos

DEFAULT_ADDRESS = "http://127.0.0.1:8000"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="portal")
def main() -> None:
    """A self-hosted video publishing portal."""


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--data-dir",
    default="data",
    show_default=True,
    type=click.Path(path_type=Path, readable=False),
    help="Where database, videos and logs are kept.",
)
def up(host: str, port: int, data_dir: Path) -> None:
    """Run everything on this machine: database, storage, web and one worker."""
    from portal.bundled.up import up as run_up

    asyncio.run(run_up(host=host, port=port, data_dir=data_dir))


@main.command()
@click.option("--host", help="Address to listen on; HOST by default.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on; PORT by default.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes; WEB_WORKERS by default.")
def web(host: str | None, port: int | None, workers: int | None) -> None:
    """Serve the pages, the JSON API and the playlists."""
    from portal.web.serve import serve

    # The app, in this process or in several, reads the same settings again.
    given = {"HOST": host, "PORT": port, "WEB_WORKERS": workers}
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    sys.exit(serve(read_config()))


@main.command()
def worker() -> None:
    """Transcode videos from the queue until stopped."""
    from portal.worker.tasks import work

    config = read_config()
    run(work(config))


@main.command()
def migrate() -> None:
    """Bring the database to the newest version."""
    from portal.database.connection import migrate as run_migrations

    config = read_config()
    run(run_migrations(config))
    click.echo("The database is up to date.")


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--title", help="Title; the file's name by default.")
@click.option("--description", default="", help="Plain text.")
@click.option(
    "--category", "categories", multiple=True, required=True, help="Name or id; may be given again."
)
@click.option("--tags", default="", help="Comma-separated.")
@click.option(
    "--url",
    default=DEFAULT_ADDRESS,
    show_default=True,
    envvar="PORTAL_URL",
    help="The portal's address.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until the video can be played.")
def publish(
    file: Path,
    title: str | None,
    description: str,
    categories: tuple[str, ...],
    tags: str,
    url: str,
    wait: bool,
) -> None:
    """Upload FILE to a portal, wait for it, and print its playback address."""
    from portal.client.publish import Metadata, publish_file

    metadata = Metadata(
        title=title or file.stem, description=description, categories=categories, tags=tags
    )
    asyncio.run(publish_file(file, metadata, portal_url=url.rstrip("/"), wait=wait))


@main.command()
@click.option("--deep", is_flag=True, help="Compare database and storage instead, both ways.")
@click.option("--fix", is_flag=True, help="With --deep: repair what can be repaired.")
@click.option(
    "--accept-sources",
    is_flag=True,
    help="With --fix, after a restore: take files of the right size for the uploaded ones.",
)
@click.option("--json", "as_json", is_flag=True, help="With --deep: print JSON.")
@data_dir_option
def doctor(
    deep: bool, fix: bool, accept_sources: bool, as_json: bool, data_dir: Path | None
) -> None:
    """Try every part for real and print the fix for what does not work."""
    from portal.cli.doctor import examine, examine_deeply

    if not deep and (fix or as_json or accept_sources):
        raise click.UsageError("--fix, --accept-sources and --json go with --deep.")
    # The libraries' own warnings would say everything twice.
    quiet()
    config = read_config(data_dir)
    if not deep:
        sys.exit(0 if asyncio.run(examine(config)) else 1)
    work = examine_deeply(config, fix=fix, accepts_sources=accept_sources, as_json=as_json)
    sys.exit(0 if run(work) else 1)


main.add_command(videos)
main.add_command(queue)
