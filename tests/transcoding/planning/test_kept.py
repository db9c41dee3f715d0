"""Kept intervals: what is accepted, and times of the whole film and of the cut one."""

from dataclasses import replace
from math import inf, nan

import pytest

from portal.transcoding.packaging.webvtt import Cue, read_webvtt, webvtt
from portal.transcoding.planning.kept import (
    MAX_INTERVALS,
    Interval,
    InvalidIntervals,
    Kept,
    check_intervals,
)

FILM_S = 100.0
KEPT = Kept((Interval(10, 20), Interval(50, 55), Interval(90, 100)))


@pytest.mark.parametrize(
    ("rows", "number"),
    [
        ([], None),
        ([(0, nan)], 0),
        ([(0, 10), (inf, 20)], 1),
        ([(-1, 10)], 0),
        ([(0, 10), (100, 110)], 1),
        ([(10, 10.2)], 0),
        ([(20, 10)], 0),
        ([(0, 10), (9.5, 20)], 1),
        ([(50, 60), (0, 10)], 1),
        ([(at, at + 0.6) for at in range(MAX_INTERVALS + 1)], MAX_INTERVALS),
    ],
)
def test_wrong_intervals_are_refused_with_their_place(
    rows: list[tuple[float, float]], number: int | None
) -> None:
    with pytest.raises(InvalidIntervals) as refusal:
        check_intervals([Interval(*row) for row in rows], film_s=FILM_S)
    assert refusal.value.number == number


def test_intervals_that_touch_become_one_and_the_whole_film_is_no_cut() -> None:
    rows = [Interval(0, 10), Interval(10, 20), Interval(30, 140)]
    assert check_intervals(rows, film_s=FILM_S) == Kept((Interval(0, 20), Interval(30, 100)))
    assert check_intervals([Interval(0, 40), Interval(40, 100)], film_s=FILM_S) is None


def test_times_of_the_whole_film_and_of_the_cut_one() -> None:
    assert KEPT.duration_s == 25
    assert KEPT.joins_s == (0, 10, 15)
    moved = {9.9: None, 10.0: 0.0, 19.9: 9.9, 20.0: None, 52.0: 12.0, 90.0: 15.0, 100.0: None}
    assert {at_s: KEPT.cut_time_s(at_s) for at_s in moved} == pytest.approx(moved)
    following = {0.0: 0.0, 20.0: 10.0, 30.0: 10.0, 52.0: 12.0, 60.0: 15.0, 101.0: 25.0}
    assert {at_s: KEPT.next_cut_time_s(at_s) for at_s in following} == following
    back = {0.0: 10.0, 9.9: 19.9, 10.0: 50.0, 14.0: 54.0, 15.0: 90.0, 25.0: 100.0, 99.0: 100.0}
    assert {at_s: KEPT.whole_time_s(at_s) for at_s in back} == pytest.approx(back)


def test_captions_are_shortened_moved_or_removed() -> None:
    cues = [(5, 9, "gone"), (8, 12, "begins"), (19, 51, "over a cut"), (95, 99, "moved")]
    cut = KEPT.cut_cues(
        Cue(start_s=start_s, end_s=end_s, text=text) for start_s, end_s, text in cues
    )
    assert [(cue.start_s, cue.end_s, cue.text) for cue in cut] == [
        (0, 2, "begins"),
        (9, 11, "over a cut"),
        (20, 24, "moved"),
    ]


def test_saved_captions_of_a_cut_film_keep_those_of_removed_parts() -> None:
    whole = [
        Cue(start_s=start_s, end_s=end_s, text=text)
        for start_s, end_s, text in [(5, 9, "gone"), (8, 12, "begins"), (19.0004, 51, "over a cut")]
    ]
    # WebVTT has times of three digits.
    cut = read_webvtt(webvtt(KEPT.cut_cues(whole)))
    assert KEPT.whole_cues(cut, whole) == whole
    saved = [
        replace(cut[1], text="changed"),
        Cue(start_s=5, end_s=10, text="until a join"),
        Cue(start_s=9.9995, end_s=12, text="from a join"),
        Cue(start_s=30, end_s=31, text="after the film"),
    ]
    times = [(cue.start_s, cue.end_s, cue.text) for cue in KEPT.whole_cues(saved, whole)]
    assert times == [
        (5, 9, "gone"),
        (15, 20, "until a join"),
        (19, 51, "changed"),
        (50, 52, "from a join"),
    ]
