"""The films that people watch, and their places in the whole films from which they are cut.

What viewers saw is counted for hundredths of the whole film, so that it survives a cut and the way
back. The curve of a cut film therefore has only as many steps as hundredths that it keeps in part.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID

from portal.database.connection import Row, fetch_rows
from portal.transcoding.planning.kept import Kept

HUNDREDTHS = 100
FILMS = """
SELECT publications.id, version.duration_s, version.keep, whole.duration_s AS whole_s,
       ARRAY(SELECT DISTINCT least(width, height) FROM renditions
             WHERE version_id IN (version.id, whole.id) AND state = 'complete' AND width > 0
       ) AS heights
FROM publications JOIN versions version ON version.id = version_id
LEFT JOIN versions whole ON whole.id = version.base_id
WHERE publications.id = ANY(%s)
"""
LOCK = "FOR KEY SHARE OF publications"


@dataclass(frozen=True, slots=True)
class Film:
    """Film that people watch, of a length in milliseconds, 0 if it is unknown.

    `kept_hundredths` are the hundredths of the whole film that are kept at least in part. Each
    counts as played when playback passes the middle of its kept part, `middles_ms`.
    `whole_hundredths` maps each hundredth of this film to the one of the whole film in its middle.
    `heights` are the shorter sides of its renditions' pictures in pixels.
    """

    duration_ms: int
    kept_hundredths: Sequence[int]
    middles_ms: Sequence[float]
    whole_hundredths: Sequence[int]
    heights: Collection[int] = ()

    @classmethod
    def whole(cls, duration_ms: int) -> Self:
        """Return a film that is not cut."""
        hundredths = range(HUNDREDTHS)
        middles_ms = [(number + 0.5) * duration_ms / HUNDREDTHS for number in hundredths]
        return cls(duration_ms, hundredths, middles_ms, hundredths)

    @classmethod
    def cut(cls, intervals: Kept, *, whole_s: float) -> Self:
        """Return the film that consists of these intervals of a film of `whole_s` seconds."""
        middles_ms = {}
        for number in range(HUNDREDTHS):
            bounds_s = (number * whole_s / HUNDREDTHS, (number + 1) * whole_s / HUNDREDTHS)
            if parts := list(intervals.overlapping(*bounds_s)):
                half_s = sum(part.end_s - part.start_s for part in parts) / 2
                middles_ms[number] = (intervals.next_cut_time_s(parts[0].start_s) + half_s) * 1000
        whole_hundredths = []
        for number in range(HUNDREDTHS):
            at_s = intervals.whole_time_s((number + 0.5) * intervals.duration_s / HUNDREDTHS)
            whole_hundredths.append(min(int(at_s / whole_s * HUNDREDTHS), HUNDREDTHS - 1))
        duration_ms = round(intervals.duration_s * 1000)
        return cls(duration_ms, [*middles_ms], [*middles_ms.values()], whole_hundredths)

    def share_seen(self, plays: bytes) -> int:
        """Return the share of the film that was played, in hundredths.

        `plays` has the number of plays of each hundredth of the whole film.
        """
        played_count = sum(plays[number] > 0 for number in self.kept_hundredths)
        return round(HUNDREDTHS * played_count / len(self.kept_hundredths))

    def curve(self, counts: Sequence[int]) -> list[int]:
        """Return the counts of this film's hundredths, from those of the whole film."""
        return [counts[number] for number in self.whole_hundredths]


async def fetch_films(video_ids: Collection[UUID], *, is_locked: bool = False) -> dict[UUID, Film]:
    """Return the films of videos by id, also of deleted videos that can be restored.

    Ids without a video are left out. With `is_locked` the rows of the videos can't be removed until
    the transaction ends.
    """
    rows = await fetch_rows(f"{FILMS} {LOCK if is_locked else ''}", list(video_ids))
    return {row["id"]: _film(row) for row in rows}


def _film(row: Row) -> Film:
    if row["keep"] is None:
        film = Film.whole(round((row["duration_s"] or 0) * 1000))
    else:
        intervals = Kept.of(row["keep"])
        film = Film.cut(intervals, whole_s=row["whole_s"] or intervals.intervals[-1].end_s)
    return replace(film, heights=row["heights"])
