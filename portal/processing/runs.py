"""The runs of a pass in the database: which worker makes which segments of a film.

A pass that takes long has a row for each of its runs. The worker that carries it out makes them one
after another. One that has nothing else to do takes the later half of what is left of the longest
(`split`). Each holds one run, under a lease like that of an attempt. Whatever it made when it ends
early counts; the rest is made by who takes the run next, in the end by the worker of the pass.
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

# What each of two workers has to do at least of a run that they share.
PART_S = 30.0
# A pass that is expected to take so long may be worth it, on a machine slower than that.
SHARED_FROM_S = 15.0
# A run that helpers failed at so often is left to the worker of the pass.
MAX_FAILURES = 2
MAX_NUMBER = 2**31 - 1
FACTS = ("sample_count", "key_size_bytes", "from_ticks", "last_ticks", "until_ticks")

FREE = Q(is_done=False) & (
    Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lte=RawSQL("now()"))
)
# What remains of the film's beginning says how the others are to be encoded.
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
    """A run that this process makes: its row, and the same for the engine.

    `eta_elsewhere_s` is when the last of the others' runs is done.
    """

    row: PassRun
    run: Run
    made: int
    eta_elsewhere_s: float = 0.0

    async def renew(self, eta_s: float | None) -> None:
        """Renew the lease, and hear of the others; or raise `LeaseLost`."""
        row = self.row
        found = await fetch_rows(RENEW, self.made, eta_s, row.id, row.claims)
        if not found:
            raise LeaseLost
        self.run.end = found[0]["until"]
        self.run.elsewhere = found[0]["made"] / len(row.starts_s)
        self.eta_elsewhere_s = found[0]["eta_s"] or 0.0

    async def finish(self, *, faults: int, network_faults: int) -> None:
        """The run is made; or raise `LeaseLost`."""
        values = {"faults": faults, "network_faults": network_faults}
        if not await self._end(is_done=True, made=F("until"), eta_s=None, **values):
            raise LeaseLost

    async def release(self, *, failures: int = 0) -> None:
        """Leave what is left of the run to another, if it is still held."""
        await self._end(failures=F("failures") + failures)

    async def _end(self, **values: Any) -> int:
        held = PassRun.filter(id=self.row.id, claims=self.row.claims)
        return await held.update(worker=None, lease_expires_at=None, **values)


async def prepare(attempt: OpenAttempt, names: list[str], starts_s: list[float] | None) -> int:
    """Keep of what is recorded of a video what a pass that makes these renditions goes on after.

    With `starts_s` it is shared, in the runs there are, or one to begin with. Answers the number of
    the attempt in whose folder the segments lie.
    """
    video_id = attempt.video_id
    async with transaction():
        await lock_video(video_id)
        await attempts.hold(attempt)
        sounds = Q(rendition__startswith="audio")
        recorded, known = SegmentRow.filter(video_id=video_id), PassRun.filter(video_id=video_id)
        await recorded.exclude(sounds | Q(rendition__in=names)).delete()
        first = await recorded.filter(rendition__in=names).first()
        folder = first.folder if first else attempt.number
        runs = await known
        if (
            any(
                (it.renditions, it.starts_s) != (list(names), starts_s and list(starts_s))
                for it in runs
            )
            or not first
        ):
            await known.delete()
            runs = []
        if starts_s and not runs:
            await PassRun.create(
                video_id=video_id,
                renditions=list(names),
                folder=folder,
                starts_s=list(starts_s),
                start=0,
                until=len(starts_s),
                made=0,
            )
    return folder


async def forget(attempt: OpenAttempt) -> None:
    """Drop all that is recorded of a video's segments, or raise `LeaseLost`."""
    async with transaction():
        await lock_video(attempt.video_id)
        await attempts.hold(attempt)
        await attempts.forget_made(attempt.video_id)


async def claim(run_id: int, *, worker: str, storage: Storage) -> HeldRun | None:
    """Take the lease on a run that helpers may make; None when it is taken, done or gone."""
    found = PassRun.filter(FREE, id=run_id, failures__lt=MAX_FAILURES)
    return await _claimed(await found.first(), worker, storage)


async def claim_first(video_id: UUID, *, worker: str, storage: Storage) -> HeldRun | None:
    """Take the lease on the first run of a video's pass that nobody makes, if there is one."""
    found = PassRun.filter(FREE, video_id=video_id).order_by("start")
    return await _claimed(await found.first(), worker, storage)


async def _claimed(row: PassRun | None, worker: str, storage: Storage) -> HeldRun | None:
    if row is None:
        return None
    free = PassRun.filter(FREE, id=row.id, claims=row.claims)
    claims = row.claims + 1
    if not await free.update(worker=worker, lease_expires_at=LEASE_END, claims=claims):
        return None
    await row.refresh_from_db()
    made = await find_made(row.video_id, row.renditions, storage, first=row.start, until=row.until)
    # The first names of all are plain.
    prefix = f"{row.id}.{row.claims}-" if row.start or made else ""
    run = Run(starts_s=row.starts_s, first=row.start, end=row.until, made=made, prefix=prefix)
    count = await keep(row.video_id, row.renditions, made, first=row.start, until=row.until)
    return HeldRun(row, run, made=row.start + count)


async def keep(
    video_id: UUID,
    names: list[str],
    made: Mapping[str, MadeRendition],
    *,
    first: int = 0,
    until: int = MAX_NUMBER,
) -> int:
    """Drop what is recorded of renditions beyond what a run that goes on after these keeps.

    Answers how many segments of each rendition are kept.
    """
    kept = min((len(it.segments) for it in made.values()), default=0)
    beyond = SegmentRow.filter(video_id=video_id, rendition__in=names)
    await beyond.filter(number__gte=first + kept, number__lt=until).delete()
    return kept


async def split(*, video_id: UUID | None = None, queue: Queue | None = None) -> PassRun | None:
    """Make two of the longest run, of a video or of all; None when none is worth it.

    Of all, one is made two for a helper, whose job is put into the `queue`, while no job waits.
    """
    longest = LONGEST_OF_VIDEO if video_id else LONGEST_OF_ALL
    rows = await fetch_rows(longest, 2 * PART_S, *([video_id] if video_id else []))
    if not rows:
        return None
    [found] = rows
    async with transaction():
        video = await lock_video(found["video_id"])
        row = await PassRun.get_or_none(id=found["id"], is_done=False, eta_s__gte=2 * PART_S)
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
    """How far a pass is: which share of the film is made, and when its last run is done."""

    share: float
    eta_s: float | None


async def left(video_id: UUID) -> Left | None:
    """How far a video's pass is; None when all of its runs are done."""
    rows = await PassRun.filter(video_id=video_id)
    etas_s = [row.eta_s or 0.0 for row in rows if not row.is_done]
    made = sum(row.made - row.start for row in rows)
    return Left(made / len(rows[0].starts_s), max(etas_s) or None) if etas_s else None


async def faults(video_id: UUID) -> tuple[int, int]:
    """How many faults decoding and the network had in all runs of a video's pass."""
    rows = await PassRun.filter(video_id=video_id)
    return sum(it.faults for it in rows), sum(it.network_faults for it in rows)


async def make_again_from(attempt: OpenAttempt, number: int) -> None:
    """A segment does not fit the one before: both, and what follows, are made again, unshared."""
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
        names = last.renditions
        made = SegmentRow.filter(video_id=attempt.video_id, rendition__in=names)
        await made.filter(number__gte=number).delete()


async def find_made(
    video_id: UUID,
    names: list[str],
    storage: Storage,
    *,
    first: int = 0,
    until: int | None = None,
) -> Mapping[str, MadeRendition]:
    """What is made of renditions from a segment on, up to where one is missing, with init segments.

    Nothing where that begins the film and is of no use.
    """
    rows = SegmentRow.filter(video_id=video_id, rendition__in=names).order_by("number")
    wanted = rows.filter(Q(number=0) | Q(number__gte=first))
    by_name: dict[str, list[SegmentRow]] = {name: [] for name in names}
    for row in await (wanted if until is None else wanted.filter(number__lt=until)):
        by_name[row.rendition].append(row)
    if not all(made and made[0].number == 0 for made in by_name.values()):
        return {}
    folder = next(iter(by_name.values()))[0].folder
    try:
        return {
            name: MadeRendition(
                init=await storage.get(f"{output_prefix(video_id, folder)}{name}/{INIT_NAME}"),
                segments=_in_a_row(made, first),
                origin_ticks=made[0].from_ticks,
            )
            for name, made in by_name.items()
        }
    except ObjectMissing:
        return {}


def _in_a_row(rows: Sequence[SegmentRow], first: int) -> tuple[MadeSegment, ...]:
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
