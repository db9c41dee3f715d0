"""What is in storage of the renditions that a pass makes, so that another can go on after it.

The rows of a video are of one pass. They go when its renditions are complete or have failed, and
when they are begun anew. All but the first attempt at a pass write their segments, under names of
their own, into the folder of the first.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from uuid import UUID

from portal.database.models import MadeSegment as Row
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.continuation import MadeRendition, MadeSegment
from portal.transcoding.packaging.cmaf import SegmentFacts
from portal.transcoding.packaging.hls import INIT_NAME

_KEPT_FACTS = tuple(it.name for it in fields(SegmentFacts) if it.name != "is_closed")

# A rendition, the number of a segment, and the segment.
Stored = tuple[str, int, MadeSegment]


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """What earlier attempts made of a pass, in the folder of the attempt of that number."""

    folder: int
    renditions: Mapping[str, MadeRendition]

    @property
    def made_s(self) -> float:
        """How much of the film that is."""
        rendition = next(iter(self.renditions.values()))
        return float(rendition.time_s(rendition.segments[-1].facts.until_ticks))


async def find(video_id: UUID, names: Collection[str], storage: Storage) -> Begun | None:
    """What is made of a pass that makes these renditions; None when that is nothing of use."""
    rows = await Row.filter(video_id=video_id).order_by("number")
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
    return Begun(folder=folder, renditions=renditions)


def _segment(row: Row) -> MadeSegment:
    facts = {name: getattr(row, name) for name in _KEPT_FACTS}
    return MadeSegment(
        uri=row.uri, size_bytes=row.size_bytes, facts=SegmentFacts(is_closed=True, **facts)
    )


async def keep(video_id: UUID, begun: Begun | None) -> None:
    """Forget all but these segments; part of a caller's transaction."""
    unused = Row.filter(video_id=video_id)
    if begun:
        rendition = next(iter(begun.renditions.values()))
        unused = unused.filter(number__gte=len(rendition.segments))
    await unused.delete()


async def add(video_id: UUID, stored: Sequence[Stored], *, folder: int, made_by: int) -> None:
    """Record segments that an attempt has stored; part of a caller's transaction, repeatable."""
    await Row.bulk_create(
        [
            Row(
                video_id=video_id,
                rendition=name,
                number=number,
                folder=folder,
                made_by=made_by,
                uri=segment.uri,
                size_bytes=segment.size_bytes,
                **{it: getattr(segment.facts, it) for it in _KEPT_FACTS},
            )
            for name, number, segment in stored
        ],
        ignore_conflicts=True,
    )


async def is_any(video_id: UUID) -> bool:
    """Whether a pass that ended early has left segments."""
    return await Row.exists(video_id=video_id)


async def is_any_by(video_id: UUID, made_by: int) -> bool:
    """Whether an attempt has added segments that count."""
    return await Row.exists(video_id=video_id, made_by=made_by)
