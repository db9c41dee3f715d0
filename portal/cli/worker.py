"""`portal worker`: run the queue's jobs."""

import click

from portal.cli.common import read_config, run
from portal.worker.run import work


@click.command()
def worker() -> None:
    """Transcode videos from the queue until stopped."""
    run(work(read_config()))
