"""Chapters of a film, and of what is kept of it. Pure: chapters in, chapters out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from portal.transcoding.planning.kept import LEAST_REST_S, ROUNDING_S, Kept


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter, which lasts until the next one."""

    start_s: float
    title: str


def chapters_from(rows: Iterable[Mapping[str, Any]]) -> tuple[Chapter, ...]:
    """Return the chapters in a column of the database."""
    return tuple(Chapter(**row) for row in rows)


def cut_chapters(chapters: Sequence[Chapter], cut: Kept) -> tuple[Chapter, ...]:
    """Return the chapters of a cut film, from those of the whole film.

    A chapter whose beginning was removed begins at the join, and the first one with the film.
    """
    starts_s = [chapter.start_s for chapter in chapters]
    remaining: list[Chapter] = []
    for chapter, end_s in zip(chapters, [*starts_s[1:], inf], strict=False):
        parts = cut.overlapping(chapter.start_s, end_s)
        left_s = sum(part.end_s - part.start_s for part in parts)
        # Chapters of removed parts are saved with rounded times, which may reach into a kept one.
        if left_s > min(LEAST_REST_S, end_s - chapter.start_s - ROUNDING_S):
            start_s = cut.next_cut_time_s(chapter.start_s) if remaining else 0.0
            remaining.append(replace(chapter, start_s=round(start_s, 3)))
    return _continued(remaining, cut.joins_s)


def whole_chapters(
    saved: Sequence[Chapter], former: Sequence[Chapter], cut: Kept
) -> tuple[Chapter, ...]:
    """Return the chapters of the whole film: in kept parts those saved for the cut film.

    Removed parts have those that the whole film had in them.
    """
    whole: list[Chapter] = []
    bounds_s: list[float] = []
    for (start_s, end_s), join_s in zip(cut.intervals, cut.joins_s, strict=True):
        before_s = bounds_s[-1] if bounds_s else 0.0
        whole += _chapters_within(former, before_s, start_s, begins_s=before_s)
        whole += _chapters_within(saved, join_s, join_s + end_s - start_s, begins_s=start_s)
        bounds_s += [start_s, end_s]
    whole += _chapters_within(former, bounds_s[-1], inf, begins_s=bounds_s[-1])
    if not whole:
        return ()
    # The whole film may have had no chapter at its beginning.
    return _continued([replace(whole[0], start_s=0.0), *whole[1:]], bounds_s)


def _chapters_within(
    chapters: Sequence[Chapter], start_s: float, end_s: float, *, begins_s: float
) -> Iterator[Chapter]:
    """Yield the chapters of a part of a film, with times of a film in which it begins elsewhere."""
    starts_s = [chapter.start_s for chapter in chapters]
    for chapter, until_s in zip(chapters, [*starts_s[1:], inf], strict=False):
        # Chapters are saved with times of three digits.
        if chapter.start_s < end_s - ROUNDING_S and until_s > start_s + ROUNDING_S:
            after_s = chapter.start_s - start_s
            at_s = begins_s + (after_s if after_s > ROUNDING_S else 0.0)
            yield replace(chapter, start_s=round(at_s, 3))


def _continued(chapters: Sequence[Chapter], joins_s: Sequence[float]) -> tuple[Chapter, ...]:
    """Return chapters without those that only continue the one before after a join.

    If two begin together, the later one stays.
    """
    by_start = {chapter.start_s: chapter for chapter in chapters}
    continued: list[Chapter] = []
    for chapter in by_start.values():
        is_new = not continued or chapter.title != continued[-1].title
        if is_new or all(abs(chapter.start_s - join_s) > ROUNDING_S for join_s in joins_s):
            continued.append(chapter)
    return tuple(continued)
