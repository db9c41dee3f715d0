"""What a pass does is written while it goes on, with the renewal of its lease."""

import asyncio
import logging
from contextlib import suppress
from time import monotonic

import psycopg

from portal.database.connection import transaction
from portal.database.rows import lock_video
from portal.processing import attempts, made_segments
from portal.processing.attempts import LeaseLost, OpenAttempt
from portal.processing.made_segments import Begun, Stored
from portal.transcoding.encoding import continuation

logger = logging.getLogger(__name__)

RENEWAL_S = 5
HEARTBEAT_S = 1
LAST_BEAT_TIMEOUT_S = 2.0


class Heartbeat:
    """Renews the lease of an attempt and writes what it has done, at most once a second."""

    def __init__(self, attempt: OpenAttempt) -> None:
        self._attempt = attempt
        self._stored: list[Stored] = []
        self._writing = asyncio.Lock()
        self._folder = attempt.number
        self._written: tuple[str, float, float | None] = ("probing", attempt.percent, None)
        self._progress: tuple[str, float, float | None] = self._written
        self._renewed_at = monotonic()

    async def report(self, stage: str, percent: float, eta_s: float | None) -> None:
        """Note the progress, which never falls; it is written with the next beat."""
        self._progress = (stage, max(percent, self._attempt.percent), eta_s)

    async def begin_pass(self, begun: Begun | None) -> None:
        """Segments that are stored from now on follow those, or are the first of a pass."""
        attempt = self._attempt
        async with self._writing:
            async with transaction():
                await lock_video(attempt.video_id)
                await attempts.hold(attempt)
                await made_segments.keep(attempt.video_id, begun)
            self._stored, self._folder = [], begun.folder if begun else attempt.number

    def stored(self, name: str, number: int, segment: continuation.MadeSegment) -> None:
        """Note a segment that is in storage; likewise."""
        self._stored.append((name, number, segment))

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
            except psycopg.OperationalError:
                # However long the database is away: it says then whether another worker took
                # over, and until then nothing can be published.
                logger.warning("Lease not renewed, trying again", extra={"action": "lease_retry"})

    async def beat(self) -> None:
        """Write what was noted, under the lease; raises `LeaseLost`."""
        async with self._writing:
            stage, percent, eta_s = progress = self._progress
            stored, attempt = list(self._stored), self._attempt
            async with transaction():
                if stored:
                    await lock_video(attempt.video_id)
                await attempts.hold(attempt, stage=stage, percent=percent, eta_s=eta_s)
                await made_segments.add(
                    attempt.video_id, stored, folder=self._folder, made_by=attempt.number
                )
            # What was noted meanwhile is left.
            del self._stored[: len(stored)]
            self._written = progress
        self._renewed_at = monotonic()

    async def beat_once_more(self) -> None:
        """Write what was noted of a pass that ended early, unless that takes long."""
        with suppress(LeaseLost, psycopg.Error, TimeoutError):
            async with asyncio.timeout(LAST_BEAT_TIMEOUT_S):
                await self.beat()
