"""`portal up`: everything on one machine."""

import asyncio
from pathlib import Path

import click

from portal.bundled.up import up as run_up


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
    asyncio.run(run_up(host=host, port=port, data_dir=data_dir))
