"""Parts of a pass in the database: which worker encodes which segments of a film, under leases.

A pass is a row with the times of its segments. A worker takes a part of the segments that are
neither stored nor taken, encodes it, and takes the next one, so that resuming a pass and sharing it
among workers are the same: encode what is missing. A worker that ends leaves its stored segments;
the others of its part are then missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, takewhile
from uuid import UUID

from tortoise.expressions import RawSQL

from portal.database.connection import IS_LIVE, fetch_rows, lock_version, server_time, transaction
from portal.database.work_models import MadeSegment as SegmentRow
from portal.database.work_models import PassInProgress, PassPart
from portal.films import attempts
from portal.films.attempts import LEASE_S, LeaseLost, OpenAttempt
from portal.films.jobs import enqueue_share
from portal.films.versions import delete_progress
from portal.queue.rows import NOTHING_WAITS, WORKER_PROCESSES
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.parts import Part, PartsDontJoin, Rendition, Segment
from portal.transcoding.packaging.cmaf import SegmentFacts
from portal.transcoding.packaging.hls import INIT_NAME

# Expected time to encode a part, with two processors. Each part costs a start of ffmpeg, and the
# decoding of the frames since the key frame before it: up to 1.5 s of processor time.
LONGEST_PART_S = 60.0
SHORTEST_PART_S = 3.0
# Work after which several workers finish together, even if it takes longer than expected.
SURE_S = 6.0
# Failures of helpers after which a pass is left to its own worker.
MAX_FAILURES = 2
FACTS = ("sample_count", "key_size_bytes", "from_ticks", "last_ticks", "until_ticks")

# Numbers of the segments of a pass that are neither stored nor in a part that is taken or done.
UNCLAIMED = f"""
SELECT number FROM generate_series(0, pass.segment_count - 1) number
WHERE NOT EXISTS (
  SELECT FROM pass_parts part WHERE part.version_id = pass.version_id
  AND number >= start AND number < until AND (is_done OR {IS_LIVE})
)
EXCEPT
SELECT number FROM made_segments made
WHERE made.version_id = pass.version_id AND pass.renditions ? rendition
GROUP BY number HAVING count(*) = jsonb_array_length(pass.renditions)
"""  # noqa: S608 - put together from constants
STATE = f"""
SELECT array(SELECT number FROM ({UNCLAIMED}) unclaimed ORDER BY number) AS unclaimed,
       (SELECT count(*) FROM pass_parts part
        WHERE part.version_id = pass.version_id AND {IS_LIVE}) AS live_parts,
       (SELECT count(*) FROM pass_parts part
        CROSS JOIN generate_series(start, least(until, pass.segment_count) - 1) claimed
        WHERE part.version_id = pass.version_id AND {IS_LIVE} AND NOT EXISTS (
          SELECT FROM made_segments made WHERE made.version_id = pass.version_id
          AND made.rendition = pass.renditions->>0 AND made.number = claimed
        )) AS claimed_count,
       (SELECT count(*) FROM pass_parts part
        WHERE part.version_id = pass.version_id AND has_failed) AS helper_failures,
       (SELECT count(*) FROM made_segments made WHERE made.version_id = pass.version_id
        AND rendition = pass.renditions->>0)::float / pass.segment_count AS share_stored,
       {WORKER_PROCESSES} AS worker_processes
FROM passes pass WHERE pass.version_id = %s
"""  # noqa: S608
# The pass with the most unclaimed work. Helpers need the first segment of the film, whose encoding
# theirs has to match.
SHAREABLE = f"""
SELECT pass.version_id, unclaimed.left_s FROM passes pass CROSS JOIN LATERAL (
  SELECT pass.segment_s * count(*) AS left_s FROM ({UNCLAIMED}) numbers
) unclaimed
WHERE unclaimed.left_s >= %s AND {NOTHING_WAITS} AND EXISTS (
  SELECT FROM made_segments made WHERE made.version_id = pass.version_id
  AND rendition = pass.renditions->>0 AND number = 0
) AND (
  SELECT count(*) FROM pass_parts part WHERE part.version_id = pass.version_id AND has_failed
) < {MAX_FAILURES}
ORDER BY left_s DESC, pass.version_id LIMIT 1
"""  # noqa: S608
RENEW = f"""
UPDATE pass_parts SET lease_expires_at = now() + make_interval(secs => {LEASE_S})
WHERE id = %s AND NOT is_done RETURNING id
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Lease:
    """Lease of a worker on a part of a version's pass; `id` is that of the part's row."""

    id: int
    version_id: UUID
    part: Part


@dataclass(frozen=True, slots=True)
class PassState:
    """Progress of a pass.

    `unclaimed` has the numbers of segments that no worker has stored or taken. `live_parts` counts
    the parts under a live lease, `claimed_count` their segments that are not stored yet, and
    `helper_failures` the parts that failed at helpers. `share_stored` is the share of the film's
    segments that are stored, 0 to 1. `worker_processes` counts the processes of all machines.
    """

    unclaimed: Sequence[int]
    live_parts: int
    claimed_count: int
    helper_failures: int
    share_stored: float
    worker_processes: int


async def prepare(
    attempt: OpenAttempt,
    names: Sequence[str],
    starts_s: Sequence[float] | None,
    *,
    expected_s: float,
) -> PassInProgress:
    """Record the pass of an attempt, or take over the pass of an earlier attempt.

    A pass with the same renditions (`names`) and times of segments (`starts_s`) is resumed; the
    records of any other one, and of its segments, are deleted. Without times, a pass is one part
    and is not resumed. One worker is expected to encode all of it in `expected_s`. Raises
    `LeaseLost`.
    """
    version_id = attempt.version_id
    segment_count = len(starts_s) if starts_s else 1
    async with transaction():
        await lock_version(version_id)
        await attempts.hold(attempt)
        segments = SegmentRow.filter(version_id=version_id)
        present = await PassInProgress.get_or_none(version_id=version_id)
        is_same = present is not None and present.renditions == list(names)
        if present and is_same and starts_s and present.starts_s == list(starts_s):
            return present
        await segments.exclude(rendition__startswith="audio").delete()
        await PassInProgress.filter(version_id=version_id).delete()
        return await PassInProgress.create(
            version_id=version_id,
            folder=attempt.number,
            renditions=list(names),
            starts_s=starts_s and list(starts_s),
            segment_count=segment_count,
            segment_s=expected_s / segment_count,
        )


async def forget(attempt: OpenAttempt) -> None:
    """Delete the records of a version's pass and its segments. Raises `LeaseLost`."""
    async with transaction():
        await lock_version(attempt.version_id)
        await attempts.hold(attempt)
        await delete_progress(attempt.version_id)


async def claim(
    version_id: UUID, *, worker: str, is_helper: bool = False
) -> tuple[Lease | None, PassState]:
    """Take a lease on the next part of a version's pass, if a segment is unclaimed.

    The lease has to be renewed every few seconds. A helper (`is_helper`), which does not carry out
    the pass, gets no part before the film's first segment is stored, or after failures of helpers.
    The state is that before the claim. Raises `LeaseLost` if the pass has ended.
    """
    async with transaction():
        await lock_version(version_id)
        row = await PassInProgress.get_or_none(version_id=version_id)
        if row is None:
            raise LeaseLost
        # Workers that find no row have lost their leases.
        unfinished = PassPart.filter(version_id=version_id, is_done=False, has_failed=False)
        await unfinished.filter(lease_expires_at__lte=RawSQL("now()")).delete()
        [values] = await fetch_rows(STATE, version_id)
        state = PassState(**values)
        may_help = state.helper_failures < MAX_FAILURES and 0 not in state.unclaimed
        if not state.unclaimed or (is_helper and not may_help):
            return None, state
        first = state.unclaimed[0]
        until = first + part_length(state, row.segment_s)
        part = await PassPart.create(
            version_id=version_id,
            start=first,
            until=until,
            worker=worker,
            lease_expires_at=await server_time() + timedelta(seconds=LEASE_S),
        )
    return Lease(
        part.id, version_id, Part(first=first, until=until, prefix=_prefix(part.id))
    ), state


def _prefix(part_id: int) -> str:
    """Return what the names of a part's segments begin with."""
    return f"{part_id}-"


def part_length(state: PassState, segment_s: float) -> int:
    """Return the number of segments of the next part, which begins at the first unclaimed one.

    Encoding a segment is expected to take `segment_s`. A part is what one worker gets if all divide
    the unclaimed segments, and takes between `SHORTEST_PART_S` and `LONGEST_PART_S` to encode. Near
    the end of a pass the segments that others are still encoding are divided, too, so that all end
    together. A part is shorter if a segment in it is claimed already.
    """
    numbers = state.unclaimed
    consecutive_count = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(numbers, count(numbers[0])))
    )
    left_s = len(numbers) * segment_s
    if left_s < SHORTEST_PART_S:
        return consecutive_count
    workers = max(state.worker_processes, state.live_parts + 1)
    share_s = left_s / workers
    share_of_all_s = (len(numbers) + state.claimed_count) * segment_s / workers
    wanted_s = max(share_s, min(share_of_all_s, SURE_S), SHORTEST_PART_S)
    length = round(min(wanted_s, LONGEST_PART_S) / segment_s)
    return min(consecutive_count, max(1, length))


async def renew(lease: Lease) -> None:
    """Renew a lease. Raises `LeaseLost`."""
    if not await fetch_rows(RENEW, lease.id):
        raise LeaseLost


async def finish(lease: Lease, report: RunReport) -> None:
    """Record that all segments of a part are stored, and ffmpeg's figures. Raises `LeaseLost`."""
    changed = await PassPart.filter(id=lease.id, is_done=False).update(
        is_done=True,
        lease_expires_at=None,
        frames=report.frames_decoded or 0,
        faults=report.faults,
        network_faults=report.network_faults,
    )
    if not changed:
        raise LeaseLost


async def release(lease: Lease) -> None:
    """End a lease early, so that any worker can take the segments that are not stored yet.

    Does nothing if the part is done or has failed, or if the lease is lost.
    """
    await PassPart.filter(id=lease.id, is_done=False, has_failed=False).delete()


async def fail(lease: Lease, *, is_helper: bool) -> None:
    """Discard the segments of a part that failed, and count the failure of a helper."""
    async with transaction():
        await lock_version(lease.version_id)
        await _delete_segments(lease.version_id, lease.id)
        failed = PassPart.filter(id=lease.id, is_done=False)
        if is_helper:
            await failed.update(has_failed=True, lease_expires_at=None)
        else:
            await failed.delete()


async def discard_doubtful(attempt: OpenAttempt) -> None:
    """Discard the parts during which the network had faults, so that they are made again.

    Raises `LeaseLost`.
    """
    version_id = attempt.version_id
    async with transaction():
        await lock_version(version_id)
        await attempts.hold(attempt)
        doubtful = PassPart.filter(version_id=version_id, is_done=True, network_faults__gt=0)
        for part in await doubtful:
            await _delete_segments(version_id, part.id)
        await doubtful.delete()


async def _delete_segments(version_id: UUID, part_id: int) -> None:
    """Delete the records of a part's segments."""
    await SegmentRow.filter(version_id=version_id, uri__startswith=_prefix(part_id)).delete()


async def offer_help() -> UUID | None:
    """Enqueue a job for the pass with the most unclaimed work, and return its version's id.

    None if a job waits, or no pass has enough work for another worker.
    """
    rows = await fetch_rows(SHAREABLE, SHORTEST_PART_S)
    if not rows:
        return None
    version_id: UUID = rows[0]["version_id"]
    async with transaction():
        await enqueue_share(version_id)
    return version_id


async def whole_report(
    version_id: UUID, renditions: Mapping[str, Rendition], *, step: int
) -> RunReport:
    """Return ffmpeg's report about the whole film, added up from the parts of its pass.

    A part that was left unfinished leaves segments without figures. The number of decoded frames is
    then at least that of the encoded ones in `renditions` times `step`, because every `step`-th
    frame of the source is encoded.
    """
    parts = await PassPart.filter(version_id=version_id, is_done=True)
    decoded = sum(part.frames for part in parts)
    segment_count = max(len(rendition.segments) for rendition in renditions.values())
    if sum(part.until - part.start for part in parts) < segment_count:
        encoded = max(rendition.frame_count for rendition in renditions.values())
        decoded = max(decoded, encoded * step)
    return RunReport(
        frames_decoded=decoded,
        corrupt_frames=sum(part.faults for part in parts),
        network_faults=sum(part.network_faults for part in parts),
    )


async def stored_inits(row: PassInProgress, video_id: UUID, storage: Storage) -> dict[str, bytes]:
    """Return the init segments of a pass's renditions. Raises PartsDontJoin if one is missing."""
    folder = output_prefix(video_id, row.folder)
    try:
        return {name: await storage.get(f"{folder}{name}/{INIT_NAME}") for name in row.renditions}
    except ObjectMissing as exc:
        raise PartsDontJoin("an init segment is missing") from exc


async def stored_renditions(
    row: PassInProgress, video_id: UUID, storage: Storage
) -> dict[str, Rendition]:
    """Return by name the renditions of a pass, with all stored segments, as `stored_inits`."""
    inits = await stored_inits(row, video_id, storage)
    segments: dict[str, list[Segment]] = {name: [] for name in row.renditions}
    stored = SegmentRow.filter(version_id=row.version_id, rendition__in=row.renditions)
    for segment in await stored.order_by("number"):
        segments[segment.rendition].append(_segment(segment))
    return {
        name: Rendition(init=init, segments=tuple(segments[name])) for name, init in inits.items()
    }


def _segment(row: SegmentRow) -> Segment:
    return Segment(
        number=row.number,
        uri=row.uri,
        size_bytes=row.size_bytes,
        duration_s=row.duration_s,
        facts=SegmentFacts(is_closed=True, **{name: getattr(row, name) for name in FACTS}),
    )
