"""Commands that run the processes of a portal.

Each command imports its process when it runs: web and worker run for a long time, and neither
should hold the other's libraries in memory.
"""

import asyncio
import os
import sys
from pathlib import Path

import click


@click.command()
def migrate() -> None:
    """Apply database migrations.

    Safe to run more than once, and from several machines at the same time.
    """
    from portal.cli.common import read_config, run
    from portal.database.schema import migrate as run_migrations

    run(run_migrations(read_config()))
    click.echo("The database is up to date.")


@click.command()
@click.option("--host", help="Address to listen on.  [default: $HOST]")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on.  [default: $PORT]")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="Number of server processes.  [default: $WEB_WORKERS]",
)
def web(host: str | None, port: int | None, workers: int | None) -> None:
    """Run the web server.

    It serves the pages, the JSON API and the playlists.
    """
    from portal.cli.common import read_config
    from portal.web.serve import serve

    # Each server process reads its settings from the environment.
    options = {"HOST": host, "PORT": port, "WEB_WORKERS": workers}
    os.environ.update({name: str(value) for name, value in options.items() if value is not None})
    sys.exit(serve(read_config()))


@click.command()
@click.option(
    "--cores",
    type=click.IntRange(0, 1024),
    help="Number of CPU cores to use, 0 for all.  [default: $WORKER_CORES]",
)
def worker(cores: int | None) -> None:
    """Run a worker that transcodes videos.

    It takes jobs from the queue until it is stopped.
    """
    from portal.cli.common import read_config, run
    from portal.worker.run import work

    if cores is not None:
        os.environ["WORKER_CORES"] = str(cores)
    run(work(read_config()))


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port to listen on; the storage server uses the next one.",
)
@click.option(
    "--data-dir",
    default="data",
    show_default=True,
    type=click.Path(path_type=Path, readable=False),
    help="Folder for the database, the videos and the logs.",
)
def up(host: str, port: int, data_dir: Path) -> None:
    """Run a complete portal on this machine.

    Starts PostgreSQL, a storage server, the web server and one worker, and applies migrations.
    """
    from portal.bundled.up import up as run_up

    asyncio.run(run_up(host=host, port=port, data_dir=data_dir))
