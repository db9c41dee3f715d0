"""What a pass has done, written while it goes on with the renewal of its lease.

That is its progress, and the segments that are in storage, so that another attempt can go on after
them, and viewers can watch them meanwhile. The segments recorded of a video are of one pass. They
go when its renditions are complete or have failed, and when they are begun anew. All but the first
attempt at a pass write their segments, under names of their own, into the folder of the first; but
each makes all sound, in its own.
"""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from time import monotonic
from typing import TypeVar
from uuid import UUID

import psycopg

from portal.concurrency import task_group
from portal.database.connection import lock_video, transaction
from portal.database.outages import is_outage
from portal.database.work_models import MadeSegment as Row
from portal.processing import attempts, runs
from portal.processing.runs import FACTS, HeldRun
from portal.transcoding.encoding.continuation import MadeSegment

logger = logging.getLogger(__name__)

RENEWAL_S = 5
HEARTBEAT_S = 1
LAST_BEAT_TIMEOUT_S = 2.0

Result = TypeVar("Result")


class Heartbeat:
    """Renews leases and writes what was done under them, at most once a second.

    Those are the attempt's of a worker that carries out a pass, and that of the run it makes
    (`held`), which is all that a helper has. Renditions of `folders` lie in those of the attempts
    of these numbers, others in the attempt's own.
    """

    def __init__(self, video_id: UUID, attempt: attempts.OpenAttempt | None) -> None:
        self.held: HeldRun | None = None
        self.folders: dict[str, int] = {}
        self._video_id = video_id
        self._attempt = attempt
        self._stored: dict[tuple[str, int], Row] = {}
        self._writing = asyncio.Lock()
        percent = attempt.percent if attempt else 0.0
        self._written: tuple[str, float, float | None] = ("probing", percent, None)
        self._progress: tuple[str, float, float | None] = self._written
        self._renewed_at = monotonic()

    async def report(self, stage: str, percent: float, eta_s: float | None) -> None:
        """Note the progress, which never falls; it is written with the next beat."""
        self._progress = (stage, max(percent, self._progress[1]), eta_s)

    def note_stored(self, rendition: str, number: int, segment: MadeSegment) -> None:
        """Note a segment that is in storage; it is recorded with the next beat."""
        made_by = self._attempt.number if self._attempt else 0
        self._stored[rendition, number] = Row(
            video_id=self._video_id,
            rendition=rendition,
            number=number,
            folder=self.folders.get(rendition, made_by),
            made_by=made_by,
            uri=segment.uri,
            size_bytes=segment.size_bytes,
            duration_s=segment.duration_s,
            **{it: getattr(segment.facts, it) for it in FACTS},
        )
        if self.held and rendition == self.held.row.renditions[0]:
            self.held.made = max(self.held.made, number + 1)

    async def beat_forever(self) -> None:
        """Run beside the work. Raises `LeaseLost` when the attempt is no longer ours."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            age_s = monotonic() - self._renewed_at
            is_news = self._stored or self._progress != self._written
            if not is_news and age_s < RENEWAL_S:
                continue
            try:
                await self.beat()
            except psycopg.OperationalError as exc:
                if not is_outage(exc):
                    raise
                # However long the outage lasts: the database says afterwards whether another
                # worker took over, and until then nothing can be published.
                logger.warning("Lease not renewed, trying again", extra={"action": "lease_retry"})

    async def beat(self) -> None:
        """Write what was noted, under the leases; raises `LeaseLost`."""
        async with self._writing:
            stage, percent, eta_s = progress = self._progress
            stored = list(self._stored.items())
            async with transaction():
                if stored:
                    await lock_video(self._video_id)
                if self.held:
                    await self.held.renew(eta_s)
                    eta_s = eta_s and max(eta_s, self.held.eta_elsewhere_s)
                if self._attempt:
                    await attempts.hold(self._attempt, stage=stage, percent=percent, eta_s=eta_s)
                # Viewers were told of what is recorded already.
                await Row.bulk_create([row for _, row in stored], ignore_conflicts=True)
            # What was noted meanwhile is left.
            for key, row in stored:
                if self._stored[key] is row:
                    del self._stored[key]
            self._written = progress
        self._renewed_at = monotonic()

    async def begin_anew(self) -> None:
        """Drop all that is noted and recorded of segments, with the run; raises `LeaseLost`."""
        async with self._writing:
            self._stored.clear()
            self.held = None
            if self._attempt:
                await runs.forget(self._attempt)

    async def beat_once_more(self) -> None:
        """Write what was noted of work that ended early, and leave its run, unless that is long."""
        with suppress(attempts.LeaseLost, psycopg.Error, TimeoutError):
            async with asyncio.timeout(LAST_BEAT_TIMEOUT_S):
                await self.beat()
                if self.held:
                    await self.held.release()


async def under_lease(heartbeat: Heartbeat, work: Awaitable[Result]) -> Result:
    """Do work while leases are renewed; what it stored before it is broken off is recorded."""
    try:
        async with task_group() as tasks:
            beating = tasks.create_task(heartbeat.beat_forever())
            result = await work
            beating.cancel()
    except BaseException:
        await heartbeat.beat_once_more()
        raise
    return result
