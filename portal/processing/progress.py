"""Progress of a pass, written to the database together with the renewal of its lease.

The progress includes the segments in storage, so that another attempt can resume after them, and
viewers can watch them before the pass ends. The recorded segments of a video are of one pass. They
are deleted when its renditions are complete or have failed, and when the pass restarts. Later
attempts at a pass write their segments into the folder of the first one, under other names; but
each attempt makes all sound, in its own folder.
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
    """Heartbeat that renews leases and records progress, at most once a second.

    The worker of a pass has the lease of its attempt, and of the run that it makes (`held`). A
    helper has only a run. `folders` has other attempts' numbers for renditions whose segments are
    in their folders.
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
        """Take the progress, which never falls, for the next beat."""
        self._progress = (stage, max(percent, self._progress[1]), eta_s)

    def note_stored(self, rendition: str, number: int, segment: MadeSegment) -> None:
        """Take a segment that is in storage, to be recorded with the next beat."""
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
            **{name: getattr(segment.facts, name) for name in FACTS},
        )
        if self.held and rendition == self.held.row.renditions[0]:
            self.held.next_segment = max(self.held.next_segment, number + 1)

    async def beat_forever(self) -> None:
        """Beat while there is news or a lease to renew. Raises `LeaseLost`."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            age_s = monotonic() - self._renewed_at
            has_news = self._stored or self._progress != self._written
            if not has_news and age_s < RENEWAL_S:
                continue
            try:
                await self.beat()
            except psycopg.OperationalError as exc:
                if not is_outage(exc):
                    raise
                # The length of the outage doesn't matter: afterwards the database tells whether
                # another worker took over, and until then nothing can be published.
                logger.warning("Lease not renewed, trying again", extra={"action": "lease_retry"})

    async def beat(self) -> None:
        """Write progress and segments, under the leases. Raises `LeaseLost`."""
        async with self._writing:
            progress = self._progress
            stage, percent, eta_s = progress
            stored = list(self._stored.items())
            async with transaction():
                if stored:
                    await lock_video(self._video_id)
                if self.held:
                    await self.held.renew(eta_s)
                    eta_s = eta_s and max(eta_s, self.held.eta_elsewhere_s)
                if self._attempt:
                    await attempts.hold(self._attempt, stage=stage, percent=percent, eta_s=eta_s)
                # Players may have loaded the recorded segments, so their rows stay as they are.
                await Row.bulk_create([row for _, row in stored], ignore_conflicts=True)
            # Segments that arrived during the transaction stay for the next beat.
            for key, row in stored:
                if self._stored[key] is row:
                    del self._stored[key]
            self._written = progress
        self._renewed_at = monotonic()

    async def restart(self) -> None:
        """Delete all progress of the pass, and drop its run. Raises `LeaseLost`."""
        async with self._writing:
            self._stored.clear()
            self.held = None
            if self._attempt:
                await runs.forget(self._attempt)

    async def beat_once_more(self) -> None:
        """Write the progress of work that ended early, and release its run, within 2 s."""
        with suppress(attempts.LeaseLost, psycopg.Error, TimeoutError):
            async with asyncio.timeout(LAST_BEAT_TIMEOUT_S):
                await self.beat()
                if self.held:
                    await self.held.release()


async def under_lease(heartbeat: Heartbeat, work: Awaitable[Result]) -> Result:
    """Await work while its leases are renewed; if it ends early, its segments are recorded."""
    try:
        async with task_group() as tasks:
            beating = tasks.create_task(heartbeat.beat_forever())
            result = await work
            beating.cancel()
    except BaseException:
        await heartbeat.beat_once_more()
        raise
    return result
