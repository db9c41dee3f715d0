"""What every comparison needs to know."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.maintenance.consistency.findings import Report
from portal.maintenance.janitor import DAY_S, PERIOD_S, Cutoffs
from portal.queue.app import Queue
from portal.storage.bucket import Storage
from portal.storage.objects import StoredObject

TOO_YOUNG = "not yet: it is younger than a day, and may be someone's work in progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A run of all comparisons; with `accepts_sources` restored files are taken for the same."""

    storage: Storage
    queue: Queue
    report: Report
    cutoffs: Cutoffs
    now: datetime
    accepts_sources: bool = False

    @property
    def overdue_since(self) -> datetime:
        """An upload idle since then should have been seen by the janitor, even a late one."""
        return self.cutoffs.idle_since - timedelta(seconds=2 * PERIOD_S)

    @property
    def unused_since(self) -> datetime:
        """Likewise for the output of superseded attempts."""
        return self.cutoffs.settled_since - timedelta(seconds=2 * PERIOD_S)

    def is_old(self, stored: StoredObject) -> bool:
        """Whether nobody can still be writing what belongs to this object."""
        return stored.written_at < self.now - timedelta(seconds=DAY_S)
