"""The commands that run a portal.

Each imports what it runs only when it runs: web and worker stay in memory for long, and neither
should carry the other's libraries.
"""

import asyncio
import os
import sys
from pathlib import Path

import click


@click.command()
def migrate() -> None:
    """Bring the database to the newest version."""
    from portal.cli.common import read_config, run
    from portal.database.schema import migrate as run_migrations

    run(run_migrations(read_config()))
    click.echo("The database is up to date.")


@click.command()
@click.option("--host", help="Address to listen on; HOST by default.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on; PORT by default.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes; WEB_WORKERS by default.")
def web(host: str | None, port: int | None, workers: int | None) -> None:
    """Serve the pages, the JSON API and the playlists."""
    from portal.cli.common import read_config
    from portal.web.serve import serve

    # The app, in this process or in several, reads the same settings again.
    given = {"HOST": host, "PORT": port, "WEB_WORKERS": workers}
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    sys.exit(serve(read_config()))


@click.command()
@click.option("--cores", type=click.IntRange(0, 1024), help="WORKER_CORES by default.")
def worker(cores: int | None) -> None:
    """Transcode videos from the queue until stopped."""
    from portal.cli.common import read_config, run
    from portal.worker.run import work

    if cores is not None:
        os.environ["WORKER_CORES"] = str(cores)
    run(work(read_config()))


@click.command()
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
