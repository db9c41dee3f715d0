"""The films that people watch, and their places in the whole films from which they are cut.

What viewers saw is counted for hundredths of the whole film, so that it survives a cut and the way
back. The curve of a cut film therefore has only as many steps as hundredths that it keeps in part.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from portal.database.connection import Row, fetch_rows
from portal.transcoding.planning.kept import Kept

HUNDREDTHS = 100
FILMS = """
SELECT publications.id, version.duration_s, version.keep, whole.duration_s AS whole_s
FROM publications JOIN versions version ON version.id = version_id
LEFT JOIN versions whole ON whole.id = version.base_id
WHERE publications.id = ANY(%s)
"""
# Keeps the videos from being deleted until the transaction ends.
LOCKED_FILMS = f"{FILMS} FOR KEY SHARE OF publications"


@dataclass(frozen=True, slots=True)
class Film:
    """Film that people watch, of a length in milliseconds, 0 if it is unknown.

    `numbers` are the hundredths of the whole film that it shows at least in part. Each is counted
    as played with the middle of that part, `moments_ms` in the film. `sources` has the number of
    the hundredth of the whole film that is in the middle of each hundredth of this film.
    """

    duration_ms: int
    numbers: Sequence[int]
    moments_ms: Sequence[float]
    sources: Sequence[int]

    @classmethod
    def whole(cls, duration_ms: int) -> Self:
        """Return a film that is not cut."""
        numbers = range(HUNDREDTHS)
        moments_ms = [(number + 0.5) * duration_ms / HUNDREDTHS for number in numbers]
        return cls(duration_ms, numbers, moments_ms, numbers)

    @classmethod
    def cut(cls, intervals: Kept, *, whole_s: float) -> Self:
        """Return the kept intervals of a film of this length."""
        moments_ms = {}
        for number in range(HUNDREDTHS):
            bounds_s = (number * whole_s / HUNDREDTHS, (number + 1) * whole_s / HUNDREDTHS)
            if parts := list(intervals.overlapping(*bounds_s)):
                half_s = sum(part.end_s - part.start_s for part in parts) / 2
                moments_ms[number] = (intervals.next_cut_time_s(parts[0].start_s) + half_s) * 1000
        sources = []
        for place in range(HUNDREDTHS):
            at_s = intervals.whole_time_s((place + 0.5) * intervals.duration_s / HUNDREDTHS)
            sources.append(min(int(at_s / whole_s * HUNDREDTHS), HUNDREDTHS - 1))
        duration_ms = round(intervals.duration_s * 1000)
        return cls(duration_ms, [*moments_ms], [*moments_ms.values()], sources)

    def share_seen(self, plays: bytes) -> int:
        """Return the share of the film that was played, in hundredths.

        `plays` has the number of plays of each hundredth of the whole film.
        """
        played_count = sum(plays[number] > 0 for number in self.numbers)
        return round(HUNDREDTHS * played_count / len(self.numbers))

    def curve(self, counts: Sequence[int]) -> list[int]:
        """Return the counts of this film's hundredths, from those of the whole film."""
        return [counts[number] for number in self.sources]


async def fetch_films(video_ids: Collection[UUID], *, query: str = FILMS) -> dict[UUID, Film]:
    """Return the films of the existing videos, by id."""
    return {row["id"]: _film(row) for row in await fetch_rows(query, list(video_ids))}


def _film(row: Row) -> Film:
    if row["keep"] is None:
        return Film.whole(round((row["duration_s"] or 0) * 1000))
    intervals = Kept.of(row["keep"])
    return Film.cut(intervals, whole_s=row["whole_s"] or intervals.intervals[-1].end_s)
