"""Progress of a pass, and the leases under which it and its segments are recorded.

Recorded segments let another worker resume the pass, and viewers watch them before it ends. Those
of a version are of one pass. They are deleted when its renditions are complete or have failed.
Parts of later attempts are stored in the folder of the first attempt, under other names; but each
attempt makes all sound, in its own folder.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import monotonic
from uuid import UUID

import psycopg

from portal.concurrency import running
from portal.database.connection import lock_version, transaction
from portal.database.outages import is_temporary
from portal.database.work_models import MadeSegment as Row
from portal.films.attempts import LeaseLost, OpenAttempt, hold
from portal.films.parts import FACTS
from portal.transcoding.encoding.parts import Segment
from portal.transcoding.encoding.sink import OnStored

logger = logging.getLogger(__name__)

RENEWAL_S = 5
HEARTBEAT_S = 1
LAST_BEAT_TIMEOUT_S = 2.0
PROBED_PERCENT = 1.0
ENCODED_PERCENT = 97.0
# Time after which the speed of an encode is known well enough for an estimate.
ESTIMATE_AFTER_S = 3.0


class Stage(StrEnum):
    """Stage of an attempt."""

    PROBING = "probing"
    TRANSCODING = "transcoding"
    FINISHING = "finishing"


@dataclass(slots=True)
class Progress:
    """Progress of an attempt: its stage, a percentage that never falls, and the time left."""

    percent: float = 0.0
    stage: Stage = Stage.PROBING
    eta_s: float | None = None

    def reach(self, stage: Stage, share: float = 0.0, eta_s: float | None = None) -> None:
        """Set the stage, the share of the encoding that is done (0 to 1), and the seconds left."""
        at_percent = PROBED_PERCENT + share * (ENCODED_PERCENT - PROBED_PERCENT)
        self.stage = stage
        self.percent = max(self.percent, min(at_percent, ENCODED_PERCENT))
        self.eta_s = eta_s

    def finish(self) -> None:
        """Set the percentage of finished work."""
        self.stage = Stage.FINISHING
        self.percent = 100.0
        self.eta_s = None


@dataclass(slots=True)
class Heartbeat:
    """Renewal of a lease every few seconds, with a record in the database of new segments.

    `renew` extends the lease, or raises `LeaseLost`. `has_news` returns whether it also has
    progress to record, and so is due within a second. The segments are in the folder of the attempt
    `folder_attempt` and made by `own_attempt`, which are numbers; None for a helper's.
    """

    version_id: UUID
    folder_attempt: int
    own_attempt: int | None
    renew: Callable[[], Awaitable[None]]
    has_news: Callable[[], bool] = lambda: False
    _stored: asyncio.Queue[Row] = field(default_factory=asyncio.Queue)
    _is_urgent: asyncio.Event = field(default_factory=asyncio.Event)

    def report_stored(self, rendition: str, segment: Segment) -> None:
        """Take a segment that is in storage, to be recorded with the next beat.

        The next beat is due at once if the segment is the first of the film, for which viewers
        wait.
        """
        row = Row(
            version_id=self.version_id,
            rendition=rendition,
            number=segment.number,
            folder=self.folder_attempt,
            made_by=self.own_attempt or 0,
            uri=segment.uri,
            size_bytes=segment.size_bytes,
            duration_s=segment.duration_s,
            **{name: getattr(segment.facts, name) for name in FACTS},
        )
        self._stored.put_nowait(row)
        if segment.number == 0:
            self._is_urgent.set()

    async def beat_forever(self) -> None:
        """Beat while there is news or the lease has to be renewed. Raises `LeaseLost`."""
        renewed_at = monotonic()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._is_urgent.wait()
            self._is_urgent.clear()
            is_due = monotonic() - renewed_at >= RENEWAL_S
            if self._stored.empty() and not self.has_news() and not is_due:
                continue
            try:
                await self.beat()
                renewed_at = monotonic()
            except psycopg.OperationalError as exc:
                if not is_temporary(exc):
                    raise
                # The length of the outage doesn't matter: afterwards the database tells whether
                # another worker took over, and until then nothing can be published.
                logger.warning("Lease not renewed, trying again", extra={"action": "lease_retry"})

    async def beat(self) -> None:
        """Renew the lease and record the stored segments. Raises `LeaseLost`.

        After an error, the segments are kept for the next beat.
        """
        rows = [self._stored.get_nowait() for _ in range(self._stored.qsize())]
        try:
            async with transaction():
                if rows:
                    await lock_version(self.version_id)
                await self.renew()
                # Players may have loaded the recorded segments, so their rows stay as they are.
                await Row.bulk_create(rows, ignore_conflicts=True)
        except BaseException:
            for row in rows:
                self._stored.put_nowait(row)
            raise

    async def beat_once_more(self) -> None:
        """Record the segments of work that ended early, within 2 s."""
        with suppress(LeaseLost, psycopg.Error, TimeoutError):
            async with asyncio.timeout(LAST_BEAT_TIMEOUT_S):
                await self.beat()


def attempt_heartbeat(attempt: OpenAttempt, progress: Progress) -> Heartbeat:
    """Return the heartbeat of an attempt, which also records its progress."""
    recorded = [replace(progress)]

    async def renew() -> None:
        reached = replace(progress)
        await hold(attempt, stage=reached.stage, percent=reached.percent, eta_s=reached.eta_s)
        recorded[0] = reached

    return Heartbeat(
        attempt.version_id,
        folder_attempt=attempt.number,
        own_attempt=attempt.number,
        renew=renew,
        has_news=lambda: recorded[0] != progress,
    )


@asynccontextmanager
async def beating(heartbeat: Heartbeat) -> AsyncIterator[None]:
    """Beat while the block runs; if it ends early, its segments are recorded.

    Ends the block with `LeaseLost` if the lease is lost.
    """
    try:
        async with running(heartbeat.beat_forever()):
            yield
    except BaseException:
        await heartbeat.beat_once_more()
        raise


@dataclass(frozen=True, slots=True)
class Reports:
    """Progress of a pass, and a function that takes its stored segments; a beat records both."""

    progress: Progress
    report_stored: OnStored


@asynccontextmanager
async def held(attempt: OpenAttempt) -> AsyncIterator[Reports]:
    """Renew the lease of an attempt while the block runs, as `beating`."""
    progress = Progress(attempt.percent)
    heartbeat = attempt_heartbeat(attempt, progress)
    async with beating(heartbeat):
        yield Reports(progress, heartbeat.report_stored)
