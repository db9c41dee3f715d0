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
    lock_version,
    retry_outage,
    server_time,
    transaction,
)
from portal.database.models import (
    Attempt,
    Outcome,
    Publication,
    Rendition,
    RenditionState,
    Version,
    VideoStatus,
)
from portal.database.work_models import MadeSegment
from portal.events.log import EventType, record_outcome
from portal.films.jobs import enqueue_transcode
from portal.films.versions import delete_progress, record_version_outcome, withdraw
from portal.locale.messages import Message
from portal.queue.jobs import RunAgain
from portal.transcoding.errors import FailCode

logger = logging.getLogger(__name__)

LEASE_S = 20
MAX_ATTEMPTS = 3
# Failure code of a video whose attempts are used up.
TRANSCODE_FAILED = "transcode_failed"
EXHAUSTED_MESSAGE = Message(
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)
# Failure code of a video that was made of another one.
FILM_DELETED = "film_deleted"
FILM_DELETED_MESSAGE = Message(
    "The film from which this video is made was deleted. Upload its file again."
)
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


class HeldByAnother(RunAgain):
    """Another worker holds a live lease on the version."""

    pause_s = LEASE_S


class AttemptsExhausted(Exception):
    """All attempts at the version were used up without a result."""


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
    renditions to make for a ready version; it is empty in a first pass, which has yet to plan them,
    and in a pass that only writes the master playlist. `interruptions` counts the attempts that
    ended because storage didn't deliver the source, since the editor last requested processing.
    `percent` is the progress of earlier attempts at the same pass. `is_first` if no other
    attempt at the version came before.
    """

    id: int
    version: Version
    number: int
    is_cautious: bool = False
    targets: tuple[str, ...] = ()
    interruptions: int = 0
    percent: float = 0.0
    is_first: bool = False

    @property
    def version_id(self) -> UUID:
        """Return the id of the attempt's version."""
        return self.version.id

    @property
    def video_id(self) -> UUID:
        """Return the id of the attempt's video, below whose folder the output is stored."""
        return self.version.video_id


async def begin(version_id: UUID, *, worker: str) -> OpenAttempt | None:
    """Take the lease on a processing version; None if it is in another state.

    Raises:
        HeldByAnother: a live lease exists.
        AttemptsExhausted: `MAX_ATTEMPTS` failed since the editor last requested processing.
            Attempts that were released, or lost after they had stored segments, do not count.
    """
    async with opening() as opened:
        version = await lock_version(version_id)
        if version is None or version.status is not VideoStatus.PROCESSING:
            return None
        earlier = await close_abandoned(version_id)
        failed = [attempt for attempt in earlier if attempt.outcome is not Outcome.HANDED_BACK]
        if sum(attempt.number > version.forgiven_attempts for attempt in failed) < MAX_ATTEMPTS:
            # A single killed worker says nothing about the file; two may.
            was_killed = [attempt.error_code == ABANDONED.code for attempt in failed]
            is_cautious = not all(was_killed) or len(failed) > 1
            opened.append(await open_attempt(version, earlier, worker, is_cautious=is_cautious))
    # An error inside the transaction would undo the closing of abandoned attempts.
    if not opened:
        raise AttemptsExhausted
    return opened[0]


async def close_abandoned(version_id: UUID) -> list[Attempt]:
    """Close attempts of dead workers at a locked version, and return all attempts by their number.

    Raises `HeldByAnother` if a worker holds a live lease.
    """
    earlier = await Attempt.filter(version_id=version_id).order_by("number")
    if await Attempt.filter(LIVE, version_id=version_id, outcome=None).exists():
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
    version: Version,
    earlier: Sequence[Attempt],
    worker: str,
    *,
    is_cautious: bool = False,
    targets: tuple[str, ...] = (),
) -> OpenAttempt:
    """Open the next attempt at a locked version without an open one. Its lease lasts `LEASE_S`.

    `earlier` has all attempts at the version, by their number. The progress of the last one is kept
    if segments of the version are recorded. Add the result to the list of `opening`.
    """
    is_begun = earlier and await MadeSegment.exists(version_id=version.id)
    percent = earlier[-1].percent if is_begun else 0.0
    now = await server_time()
    row = await Attempt.create(
        version_id=version.id,
        video_id=version.video_id,
        number=await next_number(version.video_id),
        worker=worker,
        stage="probing",
        percent=percent,
        lease_expires_at=now + timedelta(seconds=LEASE_S),
        started_at=now,
    )
    interruptions = sum(
        attempt.outcome is Outcome.HANDED_BACK
        and attempt.error_code == FailCode.SOURCE_UNREACHABLE
        and attempt.number > version.forgiven_attempts
        for attempt in earlier
    )
    return OpenAttempt(
        id=row.id,
        version=version,
        number=row.number,
        is_cautious=is_cautious,
        targets=targets,
        interruptions=interruptions,
        percent=percent,
        is_first=not earlier,
    )


async def next_number(video_id: UUID) -> int:
    """Return the number for the next attempt at a version of a video, which the caller has locked.

    It is higher than all numbers of the video before, also of attempts that were removed. So a file
    in storage is never overwritten by another one.
    """
    publication = await Publication.get(id=video_id)
    last = await Attempt.filter(video_id=video_id).order_by("-number").first()
    highest: int = max(last.number if last else 0, publication.last_removed_attempt)
    return highest + 1


async def close_lost(attempts: Sequence[Attempt]) -> None:
    """Close a locked version's open attempts; a worker that wakes up has lost its lease.

    An attempt that stored segments is released, not failed: the source did not kill its worker.
    """
    for attempt in attempts:
        if attempt.outcome is None:
            segments = MadeSegment.filter(version_id=attempt.version_id, made_by=attempt.number)
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


async def discard(attempt: OpenAttempt) -> None:
    """Delete an attempt that made no rendition, in the caller's transaction. Raises `LeaseLost`."""
    if not await Attempt.filter(id=attempt.id, outcome=None).delete():
        raise LeaseLost


async def reject(attempt: OpenAttempt, failure: Failure, *, message: str) -> None:
    """Close the attempt and fail its version, which can't be processed. Raises `LeaseLost`."""
    async with transaction():
        await fail_version(attempt.version_id, code=failure.code, message=message)
        await fail(attempt, failure)


async def fail_version(version_id: UUID, *, code: str, message: str) -> None:
    """Lock a version and mark it failed if it is processing, in the caller's transaction.

    `code` is the reason for programs, `message` for people.
    """
    version = await lock_version(version_id)
    if version is None or version.status is not VideoStatus.PROCESSING:
        return
    await Version.filter(id=version_id).update(
        status=VideoStatus.FAILED, failure_code=code, failure_message=message
    )
    is_cut = version.base_id is not None
    otherwise = EventType.CUTS_FAILED if is_cut else EventType.REPLACEMENT_FAILED
    await record_version_outcome(version, EventType.FAILED, otherwise=otherwise)


async def start_again(version: Version, *, since: datetime | None = None) -> None:
    """Restart the processing of a locked version; earlier attempts no longer count.

    The job's priority counts from `since`, or from the version's creation.
    """
    last = await Attempt.filter(version_id=version.id).order_by("-number").first()
    await delete_progress(version.id)
    await Version.filter(id=version.id).update(
        status=VideoStatus.PROCESSING,
        failure_code=None,
        failure_message=None,
        published_attempt=None,
        complete_job_id=None,
        probe_answer=None,
        has_storyboard=False,
        storyboard_job_id=None,
        notes=[],
        transcode_job_id=await enqueue_transcode(version, since=since),
        encode_job_id=None,
        forgiven_attempts=last.number if last else 0,
    )
    await Publication.filter(id=version.video_id).update(
        poster_version=0, poster_path=None, poster_time_s=None
    )
    await record_outcome(EventType.UPDATED, version.video_id)


async def fail(attempt: OpenAttempt, failure: Failure) -> None:
    """Close the attempt as failed, in the caller's transaction. Raises `LeaseLost`."""
    if not await _close_attempt(attempt, Outcome.FAILED, failure):
        raise LeaseLost


async def release(attempt: OpenAttempt, outcome: Outcome, failure: Failure | None) -> bool:
    """Close the attempt if it is still open, and return whether its version still exists.

    Another attempt can then begin at once. In an outage of the database, wait up to
    `OUTAGE_TIMEOUT_S`, then raise its error. The wait is at most `ENDING_TIMEOUT_S` while the
    caller handles a `CancelledError`.
    """

    async def close() -> bool:
        async with transaction():
            version = await lock_version(attempt.version_id)
            await _close_attempt(attempt, outcome, failure)
        return version is not None

    is_ending = isinstance(sys.exception(), asyncio.CancelledError)
    timeout_s = ENDING_TIMEOUT_S if is_ending else OUTAGE_TIMEOUT_S
    return await retry_outage(close, timeout_s=timeout_s)


async def _close_attempt(
    attempt: Attempt | OpenAttempt, outcome: Outcome, failure: Failure | None
) -> bool:
    """Close an attempt, and record an error at its unfinished renditions.

    Returns False, and changes nothing, if the attempt was closed before.
    """
    code = failure and failure.code
    detail = failure and failure.detail[-MAX_DETAIL_LENGTH:]
    changed = await Attempt.filter(id=attempt.id, outcome=None).update(
        outcome=outcome, finished_at=NOW, error_code=code, error_detail=detail
    )
    if not changed:
        return False
    await execute(COUNT, list(DURATION_BOUNDS_S), 0.0, attempt.id)
    unfinished = Rendition.filter(
        version_id=attempt.version_id, attempt_number=attempt.number, state=RenditionState.PLANNED
    )
    if outcome is Outcome.HANDED_BACK:
        await unfinished.update(tries=F("tries") - 1)
    else:
        await unfinished.update(error_code=code, error_detail=detail)
    if outcome is Outcome.FAILED and failure is not ABANDONED:
        # The segments may be the reason.
        await delete_progress(attempt.version_id)
    return True


async def stop(version: Version) -> None:
    """Stop the work on a version that never became current; the caller has locked its video.

    Its jobs are cancelled, and its open attempts closed. The version stays, as withdrawn.
    """
    await withdraw(version)
    # Workers that are making it lose their leases.
    await close_lost(await Attempt.filter(version_id=version.id))
    await delete_progress(version.id)
