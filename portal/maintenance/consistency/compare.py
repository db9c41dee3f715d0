"""Runs every comparison."""

from datetime import datetime

from portal.config import Config
from portal.database.connection import server_time
from portal.maintenance.consistency.comparison import Comparison
from portal.maintenance.consistency.findings import Report
from portal.maintenance.consistency.jobs import examine_multiparts, examine_work
from portal.maintenance.consistency.outputs import compare_outputs
from portal.maintenance.consistency.sources import compare_sources
from portal.maintenance.janitor import Cutoffs
from portal.queue.app import Queue
from portal.storage.bucket import Storage


async def compare(
    config: Config,
    *,
    storage: Storage,
    queue: Queue,
    fix: bool = False,
    accepts_sources: bool = False,
    now: datetime | None = None,
) -> Report:
    """Compare, and repair if wanted, with a queue that is open.

    `now` is the database's time unless a test says so. Raises `OutOfOrder`.
    """
    now = now or await server_time()
    run = Comparison(
        storage=storage,
        queue=queue,
        report=Report(fix=fix),
        cutoffs=Cutoffs.at(now, config),
        now=now,
        accepts_sources=accepts_sources,
    )
    await examine_work(run)
    await compare_sources(run)
    await compare_outputs(run)
    await examine_multiparts(run)
    return run.report
