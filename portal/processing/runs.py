"""Runs of a pass in the database: which worker makes which segments of a film.

A long pass has a row for each of its runs. The worker of the pass makes them one after another. An
idle worker takes the later half of the unmade part of the longest run (`split`). Each worker holds
one run, under a lease like that of an attempt. If it ends early, its segments are kept, and the
worker that takes the run next makes the others; in the end, that is the worker of the pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Any
from uuid import UUID

from tortoise.expressions import F, Q, RawSQL

from portal.database.connection import IS_LIVE, fetch_rows, lock_video, transaction
from portal.database.work_models import MadeSegment as SegmentRow
from portal.database.work_models import PassRun
from portal.processing import attempts
from portal.processing.attempts import LEASE_END, LEASE_S, LeaseLost, OpenAttempt
from portal.queue.app import Queue
from portal.queue.enqueue import defer_share
from portal.queue.rows import NOTHING_WAITS
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.continuation import MadeRendition, MadeSegment, Run
from portal.transcoding.packaging.cmaf import SegmentFacts
from portal.transcoding.packaging.hls import INIT_NAME

# Least work of each of the two workers that share a run.
PART_S = 30.0
# Expected length of passes that may be shared: less than two parts, as the estimate may be low.
SHARED_FROM_S = 15.0
# Failures of helpers after which a run is left to the worker of the pass.
MAX_FAILURES = 2
MAX_NUMBER = 2**31 - 1
FACTS = ("sample_count", "key_size_bytes", "from_ticks", "last_ticks", "until_ticks")

FREE = Q(is_done=False) & (
    Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lte=RawSQL("now()"))
)
# Runs that can be shared: helpers need the first segment of the film, whose encoding they match.
LONGEST = f"""
SELECT id, video_id FROM pass_runs run
WHERE NOT is_done AND failures < {MAX_FAILURES} AND eta_s >= %s AND EXISTS (
  SELECT FROM made_segments
  WHERE video_id = run.video_id AND rendition = run.renditions->>0 AND number = 0
)
"""  # noqa: S608 - put together from constants
LONGEST_OF_VIDEO = f"{LONGEST} AND video_id = %s ORDER BY eta_s DESC, id LIMIT 1"
LONGEST_OF_ALL = f"{LONGEST} AND {NOTHING_WAITS} ORDER BY eta_s DESC, id LIMIT 1"
RENEW = f"""
WITH held AS (
  UPDATE pass_runs SET lease_expires_at = now() + make_interval(secs => {LEASE_S}),
         made = %s, eta_s = coalesce(%s, eta_s)
  WHERE id = %s AND claims = %s AND NOT is_done
  RETURNING id, video_id, until
)
SELECT until, elsewhere.* FROM held CROSS JOIN LATERAL (
  SELECT coalesce(sum(made - start), 0) AS made,
         max(eta_s) FILTER (WHERE NOT is_done AND {IS_LIVE}) AS eta_s
  FROM pass_runs other WHERE other.video_id = held.video_id AND other.id <> held.id
) elsewhere
"""  # noqa: S608


@dataclass(slots=True)
class HeldRun:
    """Run whose lease this process holds: its row, and the run as the engine takes it.

    `next_segment` is the number of the next segment to make. `eta_elsewhere_s` is the time until
    other workers have made their runs of the pass.
    """

    row: PassRun
    run: Run
    next_segment: int
    eta_elsewhere_s: float = 0.0

    async def renew(self, eta_s: float | None) -> None:
        """Renew the lease, and read the run's end and others' progress. Raises `LeaseLost`."""
        rows = await fetch_rows(RENEW, self.next_segment, eta_s, self.row.id, self.row.claims)
        if not rows:
            raise LeaseLost
        self.run.end = rows[0]["until"]
        self.run.elsewhere = rows[0]["made"] / len(self.row.starts_s)
        self.eta_elsewhere_s = rows[0]["eta_s"] or 0.0

    async def finish(self, *, faults: int, network_faults: int) -> None:
        """Record that all segments of the run are made. Raises `LeaseLost`."""
        counts = {"faults": faults, "network_faults": network_faults}
        if not await self._end_lease(is_done=True, made=F("until"), eta_s=None, **counts):
            raise LeaseLost

    async def release(self, *, failures: int = 0) -> None:
        """Leave the unmade part of the run to another worker, if the lease is still held."""
        await self._end_lease(failures=F("failures") + failures)

    async def _end_lease(self, **values: Any) -> int:
        held = PassRun.filter(id=self.row.id, claims=self.row.claims)
        return await held.update(worker=None, lease_expires_at=None, **values)


async def prepare(attempt: OpenAttempt, names: list[str], starts_s: list[float] | None) -> int:
    """Delete recorded segments that a pass over these renditions can't resume from.

    With `starts_s`, the times of all segments, the pass is shared: in the present runs, or in a
    first one. Returns the number of the attempt in whose folder the segments are.
    """
    video_id = attempt.video_id
    async with transaction():
        await lock_video(video_id)
        await attempts.hold(attempt)
        segments = SegmentRow.filter(video_id=video_id)
        await segments.exclude(Q(rendition__startswith="audio") | Q(rendition__in=names)).delete()
        first = await segments.filter(rendition__in=names).first()
        folder = first.folder if first else attempt.number
        runs = PassRun.filter(video_id=video_id)
        is_same_pass = [run.renditions == names and run.starts_s == starts_s for run in await runs]
        if first is None or not all(is_same_pass):
            await runs.delete()
        if starts_s and not await runs.exists():
            await PassRun.create(
                video_id=video_id,
                renditions=names,
                folder=folder,
                starts_s=starts_s,
                start=0,
                until=len(starts_s),
                made=0,
            )
    return folder


async def forget(attempt: OpenAttempt) -> None:
    """Delete the records of a video's segments and runs. Raises `LeaseLost`."""
    async with transaction():
        await lock_video(attempt.video_id)
        await attempts.hold(attempt)
        await attempts.delete_progress(attempt.video_id)


async def claim(run_id: int, *, worker: str, storage: Storage) -> HeldRun | None:
    """Take the lease on a run that helpers may make; None if it is taken, done or gone."""
    free = PassRun.filter(FREE, id=run_id, failures__lt=MAX_FAILURES)
    return await _claim_row(await free.first(), worker, storage)


async def claim_first(video_id: UUID, *, worker: str, storage: Storage) -> HeldRun | None:
    """Take the lease on the first free run of a video's pass, if there is one."""
    free = PassRun.filter(FREE, video_id=video_id).order_by("start")
    return await _claim_row(await free.first(), worker, storage)


async def _claim_row(row: PassRun | None, worker: str, storage: Storage) -> HeldRun | None:
    if row is None:
        return None
    free = PassRun.filter(FREE, id=row.id, claims=row.claims)
    claims = row.claims + 1
    if not await free.update(worker=worker, lease_expires_at=LEASE_END, claims=claims):
        return None
    await row.refresh_from_db()
    recorded = await find_made(
        row.video_id, row.renditions, storage, first=row.start, until=row.until
    )
    # Names of segments have a prefix, unless no other worker can have written them.
    prefix = f"{row.id}.{row.claims}-" if row.start or recorded else ""
    run = Run(starts_s=row.starts_s, first=row.start, end=row.until, made=recorded, prefix=prefix)
    kept_count = await keep(
        row.video_id, row.renditions, recorded, first=row.start, until=row.until
    )
    return HeldRun(row, run, next_segment=row.start + kept_count)


async def keep(
    video_id: UUID,
    names: list[str],
    recorded: Mapping[str, MadeRendition],
    *,
    first: int = 0,
    until: int = MAX_NUMBER,
) -> int:
    """Delete recorded segments of a run beyond those that all renditions have.

    Returns how many segments of each rendition are kept.
    """
    kept_count = min((len(rendition.segments) for rendition in recorded.values()), default=0)
    beyond = SegmentRow.filter(video_id=video_id, rendition__in=names)
    await beyond.filter(number__gte=first + kept_count, number__lt=until).delete()
    return kept_count


async def split(*, video_id: UUID | None = None, queue: Queue | None = None) -> PassRun | None:
    """Split the longest run of a video, or of all videos; None if no run is long enough.

    Returns the new run. With a `queue`, a job for a helper is queued. Runs of all videos are split
    only while no job waits.
    """
    longest = LONGEST_OF_VIDEO if video_id else LONGEST_OF_ALL
    rows = await fetch_rows(longest, 2 * PART_S, *([video_id] if video_id else []))
    if not rows:
        return None
    async with transaction():
        video = await lock_video(rows[0]["video_id"])
        row = await PassRun.get_or_none(id=rows[0]["id"], is_done=False, eta_s__gte=2 * PART_S)
        if video is None or row is None:
            return None
        middle = row.made + (row.until - row.made + 1) // 2
        if not row.made < middle < row.until:
            return None
        half_s = (row.eta_s or 0.0) / 2
        await PassRun.filter(id=row.id).update(until=middle, eta_s=half_s)
        other = await PassRun.create(
            video_id=row.video_id,
            renditions=row.renditions,
            folder=row.folder,
            starts_s=row.starts_s,
            start=middle,
            until=row.until,
            made=middle,
            eta_s=half_s,
        )
        if queue is not None:
            await defer_share(video, other.id, queue)
    return other


@dataclass(frozen=True, slots=True)
class Left:
    """Progress of a pass: the share of the film that is made, and the time until all is made."""

    share: float
    eta_s: float | None


async def left(video_id: UUID) -> Left | None:
    """Return the progress of a video's pass; None if all of its runs are done."""
    rows = await PassRun.filter(video_id=video_id)
    etas_s = [row.eta_s or 0.0 for row in rows if not row.is_done]
    if not etas_s:
        return None
    made_segments = sum(row.made - row.start for row in rows)
    return Left(made_segments / len(rows[0].starts_s), max(etas_s) or None)


async def faults(video_id: UUID) -> tuple[int, int]:
    """Return the numbers of decoding faults and network faults in all runs of a video's pass."""
    rows = await PassRun.filter(video_id=video_id)
    return sum(row.faults for row in rows), sum(row.network_faults for row in rows)


async def make_again_from(attempt: OpenAttempt, number: int) -> None:
    """Delete a segment that doesn't join, the one before it, and all later ones.

    They are made again by the worker of the pass alone. Raises `LeaseLost`.
    """
    number -= 1
    async with transaction():
        await lock_video(attempt.video_id)
        await attempts.hold(attempt)
        rows = PassRun.filter(video_id=attempt.video_id)
        await rows.filter(start__gte=number).delete()
        [last] = await rows.order_by("-start").limit(1)
        await rows.filter(id=last.id).update(
            until=len(last.starts_s), made=number, is_done=False, failures=MAX_FAILURES
        )
        segments = SegmentRow.filter(video_id=attempt.video_id, rendition__in=last.renditions)
        await segments.filter(number__gte=number).delete()


async def find_made(
    video_id: UUID,
    names: list[str],
    storage: Storage,
    *,
    first: int = 0,
    until: int | None = None,
) -> Mapping[str, MadeRendition]:
    """Return the recorded renditions, with their segments from `first` to the first missing one.

    Empty if a rendition lacks its first segment of the film or its init segment.
    """
    rows = SegmentRow.filter(video_id=video_id, rendition__in=names).order_by("number")
    rows = rows.filter(Q(number=0) | Q(number__gte=first))
    by_name: dict[str, list[SegmentRow]] = {name: [] for name in names}
    for row in await (rows if until is None else rows.filter(number__lt=until)):
        by_name[row.rendition].append(row)
    if not all(segments and segments[0].number == 0 for segments in by_name.values()):
        return {}
    folder = next(iter(by_name.values()))[0].folder
    try:
        return {
            name: MadeRendition(
                init=await storage.get(f"{output_prefix(video_id, folder)}{name}/{INIT_NAME}"),
                segments=_consecutive(segments, first),
                origin_ticks=segments[0].from_ticks,
            )
            for name, segments in by_name.items()
        }
    except ObjectMissing:
        return {}


def _consecutive(rows: Sequence[SegmentRow], first: int) -> tuple[MadeSegment, ...]:
    """Return the segments from `first` to the first missing one."""
    following = (row for row in rows if row.number >= first)
    numbered = takewhile(lambda pair: pair[0] == pair[1].number, zip(count(first), following))
    return tuple(
        MadeSegment(
            uri=row.uri,
            size_bytes=row.size_bytes,
            duration_s=row.duration_s,
            facts=SegmentFacts(is_closed=True, **{name: getattr(row, name) for name in FACTS}),
        )
        for _, row in numbered
    )
