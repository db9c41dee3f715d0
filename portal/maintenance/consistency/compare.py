"""Runs every comparison and prints what they found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from portal.cli.common import print_json
from portal.database.connection import server_time
from portal.maintenance.consistency.findings import Report
from portal.maintenance.consistency.jobs import examine_multiparts, examine_work
from portal.maintenance.consistency.merging import OutOfOrder
from portal.maintenance.consistency.outputs import compare_outputs
from portal.maintenance.consistency.sources import compare_sources
from portal.maintenance.janitor import DAY_S, PERIOD_S, Limits

if TYPE_CHECKING:
    from portal.storage.bucket import Storage
    from portal.storage.objects import StoredObject
    from portal.web.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What every comparison needs to know; `accepts_sources` takes restored files for the same."""

    resources: Resources
    report: Report
    limits: Limits
    now: datetime
    accepts_sources: bool = False

    @property
    def storage(self) -> Storage:
        return self.resources.storage

    @property
    def overdue_since(self) -> datetime:
        """An upload idle since then should have been seen by the janitor, even a late one."""
        return self.limits.idle_since - timedelta(seconds=2 * PERIOD_S)

    @property
    def unused_since(self) -> datetime:
        """Likewise for the output of superseded attempts."""
        return self.limits.settled_since - timedelta(seconds=2 * PERIOD_S)

    @property
    def too_young(self) -> str:
        return "not yet: it is younger than a day, and may be someone's work in progress"

    def is_old(self, stored: StoredObject) -> bool:
        """Whether nobody can still be writing what belongs to this object."""
        return stored.written_at < self.now - timedelta(seconds=DAY_S)


async def compare(
    resources: Resources,
    *,
    fix: bool = False,
    accepts_sources: bool = False,
    as_json: bool = False,
    now: datetime | None = None,
) -> Report:
    """Compare, repair if wanted, and print; `now` is the database's time unless a test says so."""
    now = now or await server_time()
    report = Report(fix=fix)
    run = Comparison(
        resources=resources,
        report=report,
        limits=Limits.at(now, resources.config),
        now=now,
        accepts_sources=accepts_sources,
    )
    try:
        async with resources.queue.open_async():
            await examine_work(run)
            await compare_sources(run)
            await compare_outputs(run)
            await examine_multiparts(run)
    except OutOfOrder as exc:
        raise click.ClickException(f"Storage lists keys out of order: {exc}") from exc
    if as_json:
        print_json(report.document())
    else:
        report.print()
    return report
