"""Transcoding attempts: opened under a lease, renewed by a heartbeat, ended exactly once.

The lease is the portal's, because procrastinate can leave the job of a dead worker in
`doing` for ever. Every change requires that the attempt is still open; a worker that finds it
closed has lost the lease and discards its work. Transactions lock the video first, so that no two
deadlock.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import psycopg
from tortoise.expressions import F, Q, RawSQL

from portal.database.connection import (
    NOW,
    OUTAGE_TIMEOUT_S,
    execute,
    lock_video,
    retry_outage,
    server_time,
    transaction,
)
from portal.database.models import (
    Attempt,
    Outcome,
    Rendition,
    RenditionState,
    Video,
    VideoStatus,
)
from portal.database.work_models import MadeSegment, PassInProgress
from portal.events.log import EventType, note_outcome
from portal.queue.app import Queue
from portal.queue.enqueue import defer_transcode
from portal.transcoding.errors import FailCode

logger = logging.getLogger(__name__)

LEASE_S = 20
MAX_ATTEMPTS = 3
# Failure code of a video whose attempts are used up.
TRANSCODE_FAILED = "transcode_failed"
MAX_DETAIL_LENGTH = 4_000
# Time that an ending worker spends on closing its attempt.
ENDING_TIMEOUT_S = 4.0
LIVE = Q(lease_expires_at__gt=RawSQL("now()"))
LEASE_END = RawSQL(f"now() + make_interval(secs => {LEASE_S})")
# Running totals of ended attempts, which outlive the attempts, their videos and the workers. One
# row for each outcome, error code and range of durations, so that reading them takes the same time
# after ten attempts and after ten million.
COUNT = """
INSERT INTO attempt_totals (outcome, error_code, duration_range, attempts, duration_s, media_s)
SELECT outcome, coalesce(error_code, ''), width_bucket(took.seconds, %s::float8[]),
       1, took.seconds, %s
FROM attempts,
     LATERAL (SELECT extract(epoch FROM finished_at - started_at)::float8 AS seconds) AS took
WHERE id = %s
ON CONFLICT (outcome, error_code, duration_range) DO UPDATE
SET attempts = attempt_totals.attempts + 1,
    duration_s = attempt_totals.duration_s + excluded.duration_s,
    media_s = attempt_totals.media_s + excluded.media_s
"""
# Upper ends of the ranges, in seconds; the last range has none. Totals stay in the range in which
# they were counted, so other bounds need a migration.
DURATION_BOUNDS_S = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 10_800.0, 43_200.0)


class LeaseLost(Exception):
    """Another worker took over; nothing that was made under the lease may be published."""


class HeldByAnother(Exception):
    """Another worker holds a live lease on the video."""


class AttemptsExhausted(Exception):
    """All attempts at the video were used up without a result."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason of a failed attempt: a code for programs, and detail for the operator."""

    code: str
    detail: str = ""


ABANDONED = Failure("worker_lost", "The worker ended without releasing its work.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAttempt:
    """Attempt whose lease this process holds.

    `is_cautious` if the file may be the reason why an earlier attempt failed. `targets` names the
    renditions to make for a ready video; it is empty in a first pass, which has yet to plan them,
    and in a pass that `makes_storyboard`. `interruptions` counts the attempts that ended because
    storage didn't deliver the source, since the editor last requested processing. `percent` is the
    progress of earlier attempts at the same pass.
    """

    id: int
    video: Video
    number: int
    is_cautious: bool = False
    targets: tuple[str, ...] = ()
    makes_storyboard: bool = False
    interruptions: int = 0
    percent: float = 0.0

    @property
    def video_id(self) -> UUID:
        """Return the id of the attempt's video."""
        return self.video.id


async def begin(video_id: UUID, *, worker: str) -> OpenAttempt | None:
    """Take the lease on a processing video; None if the video is in another state.

    Raises:
        HeldByAnother: a live lease exists.
        AttemptsExhausted: `MAX_ATTEMPTS` failed since the editor last requested processing.
            Attempts that were released, or lost after they had stored segments, do not count.
    """
    async with opening() as opened:
        video = await lock_video(video_id)
        if video is None or video.status is not VideoStatus.PROCESSING:
            return None
        earlier = await close_abandoned(video_id)
        failed = [attempt for attempt in earlier if attempt.outcome is not Outcome.HANDED_BACK]
        if sum(attempt.number > video.forgiven_attempts for attempt in failed) < MAX_ATTEMPTS:
            # A single killed worker says nothing about the file; two may.
            was_killed = [attempt.error_code == ABANDONED.code for attempt in failed]
            is_cautious = not all(was_killed) or len(failed) > 1
            opened.append(await open_attempt(video, earlier, worker, is_cautious=is_cautious))
    # An error inside the transaction would undo the closing of abandoned attempts.
    if not opened:
        raise AttemptsExhausted
    return opened[0]


async def close_abandoned(video_id: UUID) -> list[Attempt]:
    """Close attempts of dead workers at a locked video, and return all attempts by their number.

    Raises `HeldByAnother` if a worker holds a live lease.
    """
    earlier = await Attempt.filter(video_id=video_id).order_by("number")
    if await Attempt.filter(LIVE, video_id=video_id, outcome=None).exists():
        raise HeldByAnother
    await close_lost(earlier)
    return earlier


@asynccontextmanager
async def opening() -> AsyncIterator[list[OpenAttempt]]:
    """Run a transaction that opens attempts, which the block adds to the list.

    If no answer to the commit arrives, the attempts may be open without a worker, so they are
    released.
    """
    opened: list[OpenAttempt] = []
    try:
        async with transaction():
            yield opened
    except (psycopg.OperationalError, asyncio.CancelledError):
        for attempt in opened:
            await release(attempt, Outcome.HANDED_BACK, None)
        raise


async def open_attempt(
    video: Video,
    earlier: Sequence[Attempt],
    worker: str,
    *,
    is_cautious: bool = False,
    targets: tuple[str, ...] = (),
    makes_storyboard: bool = False,
) -> OpenAttempt:
    """Open the next attempt at a locked video without an open one."""
    is_begun = earlier and await MadeSegment.exists(video_id=video.id)
    percent = earlier[-1].percent if is_begun else 0.0
    now = await server_time()
    row = await Attempt.create(
        video_id=video.id,
        number=earlier[-1].number + 1 if earlier else 1,
        worker=worker,
        stage="probing",
        percent=percent,
        lease_expires_at=now + timedelta(seconds=LEASE_S),
        started_at=now,
    )
    interruptions = sum(
        attempt.outcome is Outcome.HANDED_BACK
        and attempt.error_code == FailCode.SOURCE_UNREACHABLE
        and attempt.number > video.forgiven_attempts
        for attempt in earlier
    )
    return OpenAttempt(
        id=row.id,
        video=video,
        number=row.number,
        is_cautious=is_cautious,
        targets=targets,
        makes_storyboard=makes_storyboard,
        interruptions=interruptions,
        percent=percent,
    )


async def close_lost(attempts: Sequence[Attempt]) -> None:
    """Close a locked video's open attempts; a worker that wakes up has lost its lease.

    An attempt that stored segments is released, not failed: the source did not kill its worker.
    """
    for attempt in attempts:
        if attempt.outcome is None:
            segments = MadeSegment.filter(video_id=attempt.video_id, made_by=attempt.number)
            has_progress = await segments.exists()
            attempt.outcome = Outcome.HANDED_BACK if has_progress else Outcome.FAILED
            attempt.error_code = ABANDONED.code
            await _close_attempt(attempt, attempt.outcome, ABANDONED)


async def hold(attempt: OpenAttempt, **values: object) -> None:
    """Renew the lease of an attempt, and set columns of its row. Raises `LeaseLost`."""
    still_open = Attempt.filter(id=attempt.id, outcome=None)
    if not await still_open.update(lease_expires_at=LEASE_END, **values):
        raise LeaseLost


async def publish(attempt: OpenAttempt, *, media_s: float) -> None:
    """Close the attempt as successful, in the caller's transaction. Raises `LeaseLost`.

    `media_s` is the duration of the film if the attempt encoded or copied it.
    """
    changed = await Attempt.filter(id=attempt.id, outcome=None).update(
        outcome=Outcome.PUBLISHED, finished_at=NOW, percent=100.0
    )
    if not changed:
        raise LeaseLost
    await execute(COUNT, list(DURATION_BOUNDS_S), media_s, attempt.id)


async def withdraw(attempt: OpenAttempt) -> None:
    """Delete an attempt that made no rendition, in the caller's transaction. Raises `LeaseLost`."""
    if not await Attempt.filter(id=attempt.id, outcome=None).delete():
        raise LeaseLost


async def reject(attempt: OpenAttempt, failure: Failure, *, message: str) -> None:
    """Close the attempt and fail its video, which can't be processed. Raises `LeaseLost`."""
    async with transaction():
        await lock_video(attempt.video_id)
        await fail(attempt, failure)
        await fail_video(attempt.video_id, code=failure.code, message=message)


async def fail_video(video_id: UUID, *, code: str, message: str) -> None:
    """Mark a processing video failed, in the caller's transaction.

    `code` is the reason for programs, `message` for people.
    """
    changed = await Video.filter(id=video_id, status=VideoStatus.PROCESSING).update(
        status=VideoStatus.FAILED, failure_code=code, failure_message=message
    )
    if changed:
        await note_outcome(EventType.FAILED, video_id)


async def start_again(video: Video, queue: Queue, *, since: datetime | None = None) -> None:
    """Restart the processing of a locked video; earlier attempts no longer count.

    The job's priority counts from `since`, or from the video's creation.
    """
    last = await Attempt.filter(video_id=video.id).order_by("-number").first()
    await delete_progress(video.id)
    await Video.filter(id=video.id).update(
        status=VideoStatus.PROCESSING,
        failure_code=None,
        failure_message=None,
        published_attempt=None,
        complete_job_id=None,
        probe_answer=None,
        poster_version=0,
        has_storyboard=False,
        storyboard_tries=None,
        notes=[],
        transcode_job_id=await defer_transcode(video, queue, since=since),
        encode_job_id=None,
        forgiven_attempts=last.number if last else 0,
    )
    await note_outcome(EventType.UPDATED, video.id)


async def fail(attempt: OpenAttempt, failure: Failure) -> None:
    """Close the attempt as failed, in the caller's transaction. Raises `LeaseLost`."""
    if not await _close_attempt(attempt, Outcome.FAILED, failure):
        raise LeaseLost


async def release(attempt: OpenAttempt, outcome: Outcome, failure: Failure | None) -> bool:
    """Close the attempt if it is still open, and return whether its video still exists.

    Another attempt can then begin at once. An outage of the database is waited for, but only for
    `ENDING_TIMEOUT_S` by an ending worker.
    """

    async def close() -> bool:
        async with transaction():
            video = await lock_video(attempt.video_id)
            is_ended = await _close_attempt(attempt, outcome, failure)
            if is_ended and attempt.makes_storyboard and outcome is Outcome.HANDED_BACK:
                begun = Video.filter(id=attempt.video_id, storyboard_tries__gt=0)
                await begun.update(storyboard_tries=F("storyboard_tries") - 1)
        return video is not None

    is_ending = isinstance(sys.exception(), asyncio.CancelledError)
    timeout_s = ENDING_TIMEOUT_S if is_ending else OUTAGE_TIMEOUT_S
    return await retry_outage(close, timeout_s=timeout_s)


async def _close_attempt(
    attempt: Attempt | OpenAttempt, outcome: Outcome, failure: Failure | None
) -> bool:
    """Close an attempt and record the failure of its renditions; return whether it was open."""
    code = failure and failure.code
    detail = failure and failure.detail[-MAX_DETAIL_LENGTH:]
    changed = await Attempt.filter(id=attempt.id, outcome=None).update(
        outcome=outcome, finished_at=NOW, error_code=code, error_detail=detail
    )
    if not changed:
        return False
    await execute(COUNT, list(DURATION_BOUNDS_S), 0.0, attempt.id)
    unfinished = Rendition.filter(
        video_id=attempt.video_id, attempt_number=attempt.number, state=RenditionState.PLANNED
    )
    if outcome is Outcome.HANDED_BACK:
        await unfinished.update(tries=F("tries") - 1)
    else:
        await unfinished.update(error_code=code, error_detail=detail)
    if outcome is Outcome.FAILED and failure is not ABANDONED:
        # The segments may be the reason.
        await delete_progress(attempt.video_id)
    return True


async def delete_progress(video_id: UUID) -> None:
    """Delete the records of a video's pass and its segments; helpers lose their leases."""
    await MadeSegment.filter(video_id=video_id).delete()
    await PassInProgress.filter(video_id=video_id).delete()
