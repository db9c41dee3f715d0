"""`portal web`: serve pages and API."""

import os
import sys

import click

from portal.cli.common import read_config
from portal.web.serve import serve


@click.command()
@click.option("--host", help="Address to listen on; HOST by default.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on; PORT by default.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes; WEB_WORKERS by default.")
def web(host: str | None, port: int | None, workers: int | None) -> None:
    """Serve the pages, the JSON API and the playlists."""
    # The app, in this process or in several, reads the same settings again.
    given = {"HOST": host, "PORT": port, "WEB_WORKERS": workers}
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    sys.exit(serve(read_config()))
