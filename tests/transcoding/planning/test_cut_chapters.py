"""Chapters of cut films: nothing of removed parts is shown, and nothing of them is lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.transcoding.planning.chapters import Chapter, cut_chapters, whole_chapters
from portal.transcoding.planning.kept import LEAST_REST_S, Interval, Kept

FILM_S = 100
# Bounds of intervals are those of frames, and have more digits than times of chapters.
FRAMES = FILM_S * 30


@st.composite
def cuts(draw: st.DrawFn) -> Kept:
    bounds = draw(st.lists(st.integers(0, FRAMES // 17), min_size=2, max_size=12, unique=True))
    frames = [bound * 17 for bound in sorted(bounds[: len(bounds) // 2 * 2])]
    return Kept(
        tuple(
            Interval(start / 30, end / 30)
            for start, end in zip(frames[::2], frames[1::2], strict=True)
        )
    )


@st.composite
def chapters(draw: st.DrawFn) -> list[Chapter]:
    times = draw(st.lists(st.integers(1, FILM_S * 2 - 1), max_size=10, unique=True))
    return [Chapter(at / 2, str(at)) for at in (0, *sorted(times))]


def rounded(rows: list[Chapter] | tuple[Chapter, ...]) -> list[tuple[str, object]]:
    # A shorter rest of a chapter at a cut belongs to the one before or after it.
    return [(row.title, pytest.approx(row.start_s, abs=LEAST_REST_S)) for row in rows]


@given(chapters(), cuts())
def test_unchanged_chapters_of_a_cut_film_are_those_of_the_whole_film(
    rows: list[Chapter], cut: Kept
) -> None:
    cut_rows = cut_chapters(rows, cut)
    assert cut_rows[0].start_s == 0
    assert all(chapter.start_s < following.start_s for chapter, following in pairwise(cut_rows))
    whole = whole_chapters(cut_rows, rows, cut)
    assert [(row.title, row.start_s) for row in whole] == rounded(rows)


@given(chapters(), chapters(), cuts())
def test_saved_chapters_of_a_cut_film_are_shown_as_they_are(
    rows: list[Chapter], saved: list[Chapter], cut: Kept
) -> None:
    saved = [Chapter(row.start_s, f"saved {row.title}") for row in saved]
    cut_rows = cut_chapters(whole_chapters(saved, rows, cut), cut)
    within = [row for row in saved if row.start_s < cut.duration_s - LEAST_REST_S]
    assert [(row.title, row.start_s) for row in cut_rows[: len(within)]] == rounded(within)


def test_rest_of_a_chapter_that_was_cut_is_not_listed() -> None:
    rows = [Chapter(0, "A"), Chapter(8, "Secret"), Chapter(20, "B")]
    cut = Kept((Interval(0, 8.008), Interval(19.953, 30)))
    assert [row.title for row in cut_chapters(rows, cut)] == ["A", "B"]
    assert cut_chapters(rows, Kept((Interval(19.953, 30),))) == (Chapter(0, "B"),)
