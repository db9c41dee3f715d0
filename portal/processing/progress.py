"""What a pass has done, written while it goes on with the renewal of its lease.

That is its progress, and the segments that are in storage, so that another attempt can go on after
them, and viewers can watch them meanwhile. The segments recorded of a video are of one pass. They
go when its renditions are complete or have failed, and when they are begun anew. All but the first
attempt at a pass write their segments, under names of their own, into the folder of the first; but
each makes all sound, in its own.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from time import monotonic
from uuid import UUID

import psycopg
from tortoise.expressions import Q

from portal.database.connection import lock_video, transaction
from portal.database.models import MadeSegment as Row
from portal.processing import attempts
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.continuation import MadeRendition, MadeSegment
from portal.transcoding.packaging.cmaf import SegmentFacts
from portal.transcoding.packaging.hls import INIT_NAME

logger = logging.getLogger(__name__)

RENEWAL_S = 5
HEARTBEAT_S = 1
LAST_BEAT_TIMEOUT_S = 2.0

_FACTS = tuple(it.name for it in fields(SegmentFacts) if it.name != "is_closed")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPart:
    """What earlier attempts made of a pass, in the folder of the attempt of that number."""

    folder: int
    renditions: Mapping[str, MadeRendition]

    @property
    def made_s(self) -> float:
        """How much of the film that is."""
        rendition = next(iter(self.renditions.values()))
        return float(rendition.time_s(rendition.segments[-1].facts.until_ticks))


async def find_stored(
    video_id: UUID, names: Collection[str], storage: Storage
) -> StoredPart | None:
    """What is made of a pass that makes these renditions; None when that is nothing of use."""
    rows = await Row.filter(video_id=video_id, rendition__in=list(names)).order_by("number")
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        made = by_name.setdefault(row.rendition, [])
        if row.number == len(made):
            made.append(row)
    count = min(map(len, by_name.values()), default=0)
    if not count or by_name.keys() != set(names):
        return None
    folder = rows[0].folder
    try:
        renditions = {
            name: MadeRendition(
                init=await storage.get(f"{output_prefix(video_id, folder)}{name}/{INIT_NAME}"),
                segments=tuple(map(_segment, made[:count])),
            )
            for name, made in by_name.items()
        }
    except ObjectMissing:
        return None
    return StoredPart(folder=folder, renditions=renditions)


def _segment(row: Row) -> MadeSegment:
    facts = {name: getattr(row, name) for name in _FACTS}
    return MadeSegment(
        uri=row.uri,
        size_bytes=row.size_bytes,
        duration_s=row.duration_s,
        facts=SegmentFacts(is_closed=True, **facts),
    )


class Heartbeat:
    """Renews the lease of an attempt and writes what it has done, at most once a second."""

    def __init__(self, attempt: attempts.OpenAttempt) -> None:
        self._attempt = attempt
        self._stored: list[Row] = []
        self._writing = asyncio.Lock()
        self._folders: dict[str, int] = {}
        self._written: tuple[str, float, float | None] = ("probing", attempt.percent, None)
        self._progress: tuple[str, float, float | None] = self._written
        self._renewed_at = monotonic()

    async def report(self, stage: str, percent: float, eta_s: float | None) -> None:
        """Note the progress, which never falls; it is written with the next beat."""
        self._progress = (stage, max(percent, self._attempt.percent), eta_s)

    async def begin_pass(self, part: StoredPart | None, *, sounds: Collection[str]) -> None:
        """Segments that are stored from now on follow those, or are the first of a pass.

        What earlier attempts made of sound can be heard until it is made again.
        """
        attempt, stale = self._attempt, Row.filter(video_id=self._attempt.video_id)
        if part:
            count = len(next(iter(part.renditions.values())).segments)
            made = Q(rendition__in=list(part.renditions), number__lt=count)
            stale = stale.exclude(made | Q(rendition__in=list(sounds), made_by__lt=attempt.number))
        async with self._writing:
            async with transaction():
                await lock_video(attempt.video_id)
                await attempts.hold(attempt)
                await stale.delete()
            self._stored = []
            self._folders = dict.fromkeys(part.renditions, part.folder) if part else {}

    def note_stored(self, rendition: str, number: int, segment: MadeSegment) -> None:
        """Note a segment that is in storage; it is recorded with the next beat."""
        row = Row(
            video_id=self._attempt.video_id,
            rendition=rendition,
            number=number,
            folder=self._folders.get(rendition, self._attempt.number),
            made_by=self._attempt.number,
            uri=segment.uri,
            size_bytes=segment.size_bytes,
            duration_s=segment.duration_s,
            **{it: getattr(segment.facts, it) for it in _FACTS},
        )
        self._stored.append(row)

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
            stored = list(self._stored)
            async with transaction():
                if stored:
                    await lock_video(self._attempt.video_id)
                await attempts.hold(self._attempt, stage=stage, percent=percent, eta_s=eta_s)
                await Row.bulk_create(stored, ignore_conflicts=True)
            # What was noted meanwhile is left.
            del self._stored[: len(stored)]
            self._written = progress
        self._renewed_at = monotonic()

    async def beat_once_more(self) -> None:
        """Write what was noted of a pass that ended early, unless that takes long."""
        with suppress(attempts.LeaseLost, psycopg.Error, TimeoutError):
            async with asyncio.timeout(LAST_BEAT_TIMEOUT_S):
                await self.beat()
