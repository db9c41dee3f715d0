"""The life of a transcoding attempt: begun under a lease, kept alive, ended exactly once.

The lease is the portal's own, since procrastinate can leave the job of a dead worker in `doing`
for ever. Times are the database's, so that the clocks of worker machines do not matter. Every
change is conditional on the attempt still being open; whoever finds it closed has lost it and
discards its work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
from tortoise.expressions import RawSQL

from portal.database import server_time, transaction
from portal.models import Attempt, Outcome, Rendition, Video, VideoStatus

if TYPE_CHECKING:
    from portal.transcoding import Output

logger = logging.getLogger(__name__)

LEASE_S = 20
RENEWAL_S = 5
HEARTBEAT_S = 1
MAX_ATTEMPTS = 3

NOW = RawSQL("now()")
LEASE_END = RawSQL(f"now() + interval '{LEASE_S} seconds'")


class LeaseLost(Exception):
    """The attempt was closed or taken over; what it made must not be published."""


class HeldByAnother(Exception):
    """Another worker holds a live lease on the video."""


class AttemptsExhausted(Exception):
    """The video was tried as often as is allowed, without a result."""


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt this process holds the lease of."""

    id: int
    video: Video
    number: int


async def begin(video_id: UUID, *, worker: str) -> OpenAttempt | None:
    """Take the lease on a video; None when there is nothing left to do for it.

    Raises:
        HeldByAnother: a live lease exists.
        AttemptsExhausted: `MAX_ATTEMPTS` were made; handed-back ones do not count.
    """
    async with transaction():
        video = await Video.filter(id=video_id).select_for_update().get_or_none()
        if video is None or video.status is not VideoStatus.PROCESSING:
            return None
        now = await server_time()
        earlier = await Attempt.filter(video_id=video_id).order_by("number")
        if any(attempt.outcome is None and attempt.lease_expires_at > now for attempt in earlier):
            raise HeldByAnother
        if sum(attempt.outcome is not Outcome.HANDED_BACK for attempt in earlier) >= MAX_ATTEMPTS:
            raise AttemptsExhausted
        # An abandoned attempt is closed, so that a worker that wakes up finds it lost.
        await Attempt.filter(video_id=video_id, outcome=None).update(
            outcome=Outcome.FAILED, finished_at=now
        )
        number = earlier[-1].number + 1 if earlier else 1
        attempt = await Attempt.create(
            video_id=video_id,
            number=number,
            worker=worker,
            stage="probing",
            lease_expires_at=now + timedelta(seconds=LEASE_S),
            started_at=now,
        )
    return OpenAttempt(id=attempt.id, video=video, number=number)


class Heartbeat:
    """Renews the lease of an attempt and writes its progress, at most once a second."""

    def __init__(self, attempt: OpenAttempt) -> None:
        self._attempt_id = attempt.id
        self._progress: tuple[str, float, float | None] = ("probing", 0.0, None)
        self._written: tuple[str, float, float | None] = self._progress
        self._renewed_at = monotonic()

    async def report(self, stage: str, percent: float, eta_s: float | None) -> None:
        """Note the progress; it is written with the next beat."""
        self._progress = (stage, percent, eta_s)

    async def beat_forever(self) -> None:
        """Run beside the work. Raises `LeaseLost` when the attempt is no longer ours."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            age_s = monotonic() - self._renewed_at
            if self._progress == self._written and age_s < RENEWAL_S:
                continue
            try:
                await self._beat()
            except psycopg.OperationalError:
                # A database that is away for less than the lease costs nothing.
                if age_s > LEASE_S:
                    raise LeaseLost from None
                logger.warning("Lease not renewed, trying again", extra={"action": "lease_retry"})

    async def _beat(self) -> None:
        stage, percent, eta_s = progress = self._progress
        changed = await Attempt.filter(id=self._attempt_id, outcome=None).update(
            stage=stage, percent=percent, eta_s=eta_s, lease_expires_at=LEASE_END
        )
        if not changed:
            raise LeaseLost
        self._written = progress
        self._renewed_at = monotonic()


async def publish_output(attempt: OpenAttempt, output: Output) -> None:
    """Make the video ready with this attempt's output, or raise `LeaseLost`."""
    async with transaction():
        await _close(attempt, Outcome.PUBLISHED)
        await Rendition.bulk_create(_renditions(attempt, output))
        changed = await Video.filter(id=attempt.video.id, status=VideoStatus.PROCESSING).update(
            status=VideoStatus.READY,
            published_attempt=attempt.number,
            duration_s=output.duration_s,
            width=output.width,
            height=output.height,
            updated_at=NOW,
        )
        if not changed:
            raise LeaseLost


async def fail_video(video_id: UUID, *, code: str, message: str) -> None:
    """Mark a processing video failed, with a reason for programs and one for people."""
    await Video.filter(id=video_id, status=VideoStatus.PROCESSING).update(
        status=VideoStatus.FAILED, failure_code=code, failure_message=message, updated_at=NOW
    )


async def reject(attempt: OpenAttempt, *, code: str, message: str) -> None:
    """Close the attempt and fail its video for good, or raise `LeaseLost`."""
    async with transaction():
        await _close(attempt, Outcome.FAILED)
        await fail_video(attempt.video.id, code=code, message=message)


async def release(attempt: OpenAttempt, outcome: Outcome) -> None:
    """Close the attempt if it is still open, so that another can begin at once."""
    await Attempt.filter(id=attempt.id, outcome=None).update(outcome=outcome, finished_at=NOW)


async def _close(attempt: OpenAttempt, outcome: Outcome) -> None:
    changed = await Attempt.filter(id=attempt.id, outcome=None).update(
        outcome=outcome, finished_at=NOW, percent=100.0 if outcome is Outcome.PUBLISHED else 0.0
    )
    if not changed:
        raise LeaseLost


def _renditions(attempt: OpenAttempt, output: Output) -> Sequence[Rendition]:
    return [
        Rendition(
            attempt_id=attempt.id,
            name=rendition.name,
            width=rendition.width,
            height=rendition.height,
            frame_rate=str(rendition.fps),
            codecs=rendition.codecs,
            bandwidth_bps=rendition.bandwidth_bps,
            average_bandwidth_bps=rendition.average_bandwidth_bps,
            size_bytes=rendition.size_bytes,
            segment_count=rendition.segment_count,
        )
        for rendition in output.renditions
    ]
