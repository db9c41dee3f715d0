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

from portal.database.connection import IS_LIVE, fetch_rows, lock_video, server_time, transaction
from portal.database.work_models import MadeSegment as SegmentRow
from portal.database.work_models import PassInProgress, PassPart
from portal.processing import attempts
from portal.processing.attempts import LEASE_S, LeaseLost, OpenAttempt
from portal.queue.app import Queue
from portal.queue.enqueue import defer_share
from portal.queue.rows import NOTHING_WAITS
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.parts import Part, PartsDontJoin, Rendition, Segment
from portal.transcoding.packaging.cmaf import SegmentFacts
from portal.transcoding.packaging.hls import INIT_NAME

# Expected time to encode a part, with two processors. Each part costs a start of ffmpeg, and the
# decoding of the frames since the key frame before it: about 1.5 s of processor time. Shorter parts
# at the end let workers finish together.
LONGEST_PART_S = 60.0
SHORTEST_PART_S = 6.0
# Failures of helpers after which a pass is left to its own worker.
MAX_FAILURES = 2
FACTS = ("sample_count", "key_size_bytes", "from_ticks", "last_ticks", "until_ticks")

# Numbers of the segments of a pass that are neither stored nor in a part that is taken or done.
UNCLAIMED = f"""
SELECT number FROM generate_series(0, pass.segment_count - 1) number
WHERE NOT EXISTS (
  SELECT FROM pass_parts part WHERE part.video_id = pass.video_id
  AND number >= start AND number < until AND (is_done OR {IS_LIVE})
)
EXCEPT
SELECT number FROM made_segments made
WHERE made.video_id = pass.video_id AND pass.renditions ? rendition
GROUP BY number HAVING count(*) = jsonb_array_length(pass.renditions)
"""  # noqa: S608 - put together from constants
# Unclaimed segments of a pass, its workers, and the failures of helpers.
STATE = f"""
SELECT array(SELECT number FROM ({UNCLAIMED}) unclaimed ORDER BY number) AS unclaimed,
       (SELECT count(*) FROM pass_parts part
        WHERE part.video_id = pass.video_id AND {IS_LIVE}) AS workers,
       (SELECT count(*) FROM pass_parts part
        WHERE part.video_id = pass.video_id AND has_failed) AS failures,
       (SELECT count(*) FROM made_segments made WHERE made.video_id = pass.video_id
        AND rendition = pass.renditions->>0)::float / pass.segment_count AS share_stored
FROM passes pass WHERE pass.video_id = %s
"""  # noqa: S608
# The pass with the most unclaimed work. Helpers need the first segment of the film, whose encoding
# theirs has to match.
SHAREABLE = f"""
SELECT pass.video_id, unclaimed.left_s FROM passes pass CROSS JOIN LATERAL (
  SELECT pass.segment_s * count(*) AS left_s FROM ({UNCLAIMED}) numbers
) unclaimed
WHERE unclaimed.left_s >= %s AND {NOTHING_WAITS} AND EXISTS (
  SELECT FROM made_segments made WHERE made.video_id = pass.video_id
  AND rendition = pass.renditions->>0 AND number = 0
) AND (
  SELECT count(*) FROM pass_parts part WHERE part.video_id = pass.video_id AND has_failed
) < {MAX_FAILURES}
ORDER BY left_s DESC, pass.video_id LIMIT 1
"""  # noqa: S608
RENEW = f"""
UPDATE pass_parts SET lease_expires_at = now() + make_interval(secs => {LEASE_S})
WHERE id = %s AND NOT is_done RETURNING id
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Lease:
    """Lease of a worker on a part of a video's pass; `id` is that of the part's row."""

    id: int
    video_id: UUID
    part: Part


@dataclass(frozen=True, slots=True)
class PassState:
    """Unclaimed segments of a pass, and the number of workers that make others.

    `share_stored` is the share of the film's segments that are stored, 0 to 1.
    """

    unclaimed: Sequence[int]
    workers: int
    failures: int
    share_stored: float


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
    video_id = attempt.video_id
    count_all = len(starts_s) if starts_s else 1
    async with transaction():
        await lock_video(video_id)
        await attempts.hold(attempt)
        segments = SegmentRow.filter(video_id=video_id)
        present = await PassInProgress.get_or_none(video_id=video_id)
        is_same = present is not None and present.renditions == list(names)
        if present and is_same and starts_s and present.starts_s == list(starts_s):
            return present
        await segments.exclude(rendition__startswith="audio").delete()
        await PassInProgress.filter(video_id=video_id).delete()
        return await PassInProgress.create(
            video_id=video_id,
            folder=attempt.number,
            renditions=list(names),
            starts_s=starts_s and list(starts_s),
            segment_count=count_all,
            segment_s=expected_s / count_all,
        )


async def forget(attempt: OpenAttempt) -> None:
    """Delete the records of a video's pass and its segments. Raises `LeaseLost`."""
    async with transaction():
        await lock_video(attempt.video_id)
        await attempts.hold(attempt)
        await attempts.delete_progress(attempt.video_id)


async def state(video_id: UUID) -> PassState | None:
    """Return the state of a video's pass; None if there is no pass."""
    rows = await fetch_rows(STATE, video_id)
    return PassState(**rows[0]) if rows else None


async def claim(video_id: UUID, *, worker: str, is_helper: bool = False) -> Lease | None:
    """Take a lease on the next part of a video's pass; None if no segment is unclaimed.

    The lease has to be renewed every few seconds. A helper (`is_helper`), which does not carry out
    the pass, gets no part before the film's first segment is stored, or after failures of helpers.
    """
    async with transaction():
        video = await lock_video(video_id)
        row = await PassInProgress.get_or_none(video_id=video_id)
        if video is None or row is None:
            return None
        # Workers that find no row have lost their leases.
        unfinished = PassPart.filter(video_id=video_id, is_done=False, has_failed=False)
        await unfinished.filter(lease_expires_at__lte=RawSQL("now()")).delete()
        present = await state(video_id)
        if present is None or not present.unclaimed:
            return None
        if is_helper and (present.failures >= MAX_FAILURES or 0 in present.unclaimed):
            return None
        first = present.unclaimed[0]
        length = part_length(present, row.segment_s)
        part = await PassPart.create(
            video_id=video_id,
            start=first,
            until=first + length,
            worker=worker,
            lease_expires_at=await server_time() + timedelta(seconds=LEASE_S),
        )
    return Lease(part.id, video_id, Part(first=first, until=first + length, prefix=f"{part.id}-"))


def part_length(present: PassState, segment_s: float) -> int:
    """Return the number of segments of the next part, which begins at the first unclaimed one.

    A segment is expected to take `segment_s` to encode. A part is this worker's share of the
    unclaimed segments, at most half, between `SHORTEST_PART_S` and `LONGEST_PART_S`. It ends before
    a claimed segment.
    """
    numbers = present.unclaimed
    gap = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(numbers, count(numbers[0])))
    )
    left_s = len(numbers) * segment_s
    if left_s < 2 * SHORTEST_PART_S:
        return gap
    share_s = left_s / max(2, present.workers + 1)
    length = round(min(max(share_s, SHORTEST_PART_S), LONGEST_PART_S) / segment_s)
    return min(gap, max(1, length))


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
    """Leave the segments of a part that are not stored to other workers."""
    await PassPart.filter(id=lease.id, is_done=False, has_failed=False).delete()


async def fail(lease: Lease, *, is_helper: bool) -> None:
    """Discard the segments of a part that failed, and count the failure of a helper."""
    async with transaction():
        await lock_video(lease.video_id)
        segments = SegmentRow.filter(video_id=lease.video_id, uri__startswith=lease.part.prefix)
        await segments.delete()
        failed = PassPart.filter(id=lease.id, is_done=False)
        if is_helper:
            await failed.update(has_failed=True, lease_expires_at=None)
        else:
            await failed.delete()


async def offer_help(queue: Queue) -> UUID | None:
    """Enqueue a job for the pass with the most unclaimed work, and return its video's id.

    None if a job waits, or no pass has enough work for another worker.
    """
    rows = await fetch_rows(SHAREABLE, SHORTEST_PART_S)
    if not rows:
        return None
    video_id: UUID = rows[0]["video_id"]
    async with transaction():
        await defer_share(video_id, queue)
    return video_id


async def whole_report(
    video_id: UUID, renditions: Mapping[str, Rendition], *, step: int
) -> RunReport:
    """Return ffmpeg's report about the whole film, added up from the parts of its pass.

    A part that was left unfinished leaves segments without figures. The number of decoded frames is
    then at least that of the encoded ones in `renditions` times `step`, because every `step`-th
    frame of the source is encoded.
    """
    parts = await PassPart.filter(video_id=video_id, is_done=True)
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


async def stored_inits(row: PassInProgress, storage: Storage) -> dict[str, bytes]:
    """Return the init segments of a pass's renditions. Raises PartsDontJoin if one is missing."""
    folder = output_prefix(row.video_id, row.folder)
    try:
        return {name: await storage.get(f"{folder}{name}/{INIT_NAME}") for name in row.renditions}
    except ObjectMissing as exc:
        raise PartsDontJoin("an init segment is missing") from exc


async def stored_renditions(row: PassInProgress, storage: Storage) -> dict[str, Rendition]:
    """Return by name the renditions of a pass, with all stored segments, as `stored_inits`."""
    inits = await stored_inits(row, storage)
    segments: dict[str, list[Segment]] = {name: [] for name in row.renditions}
    stored = SegmentRow.filter(video_id=row.video_id, rendition__in=row.renditions)
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
