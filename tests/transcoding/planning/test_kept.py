"""Kept intervals: what is accepted, and times of the whole film and of the cut one."""

from collections.abc import Iterable
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


def cue(start_s: float, end_s: float, text: str) -> Cue:
    return Cue(start_s=start_s, end_s=end_s, text=text)


def rows(cues: Iterable[Cue]) -> list[tuple[float, float, str]]:
    return [(cue.start_s, cue.end_s, cue.text) for cue in cues]


def test_captions_are_shortened_moved_or_removed() -> None:
    cut = KEPT.cut_cues(
        [
            cue(5, 9, "gone"),
            cue(8, 12, "gone begins"),
            cue(15, 54, "before, a name that was removed, and after"),
            cue(95, 99, "moved"),
        ]
    )
    expected = [(0, 2, "begins"), (5, 14, "before, after"), (20, 24, "moved")]
    assert rows(cut) == expected


@pytest.mark.parametrize(
    ("start_s", "end_s"),
    [
        (19.978, 21.0),  # 22 ms of a sentence, because bounds are those of frames.
        (19.75, 21.0),
        (19.5, 29.0),  # 0.5 of 9.5 s.
        (9.0, 10.04),
    ],
)
def test_rest_of_a_cue_that_nobody_could_read_is_removed(start_s: float, end_s: float) -> None:
    assert KEPT.cut_cues([cue(start_s, end_s, "one two three four five six seven")]) == []


def test_short_cues_that_are_kept_stay() -> None:
    assert rows(KEPT.cut_cues([cue(10.0, 10.1, "Oh!")])) == [(0, pytest.approx(0.1), "Oh!")]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("First line.\nSecond line.", "Second line."),
        ("<v Ann>First line.</v>\n<v Bob>Second line.</v>", "<v Bob>Second line.</v>"),
        ("<v Ann>First line.\n<v Bob>Second line.", "<v Bob>Second line."),
        ("<i>First line.\nSecond <b>line</b>.</i>", "<i>Second <b>line</b>.</i>"),
        ("A &amp; B &lt;C&gt;. D &amp; E.", "D &amp; E."),
        ("<00:00:08.000>One two <00:00:11.000>three four", "three four"),
        ("\u4eca\u5929\u3002\u660e\u5929\u3002", "\u660e\u5929\u3002"),
    ],
)
def test_words_on_both_sides_of_a_bound_are_divided_by_their_times(text: str, kept: str) -> None:
    assert rows(KEPT.cut_cues([cue(8, 12, text)])) == [(0, 2, kept)]


def test_saved_captions_of_a_cut_film_keep_those_of_removed_parts() -> None:
    words = "before, a name that was removed, and after"
    whole = [cue(5, 9, "gone"), cue(8, 12, "gone begins"), cue(15.0004, 54, words)]
    # WebVTT has times of three digits.
    cut = read_webvtt(webvtt(KEPT.cut_cues(whole)))
    assert KEPT.whole_cues(cut, whole) == whole
    saved = [
        replace(cut[1], text="earlier, later"),
        cue(5, 10, "until a join"),
        cue(9.9995, 12, "from a join"),
        cue(30, 31, "after the film"),
    ]
    again = KEPT.whole_cues(saved, whole)
    assert rows(again) == [
        (5, 9, "gone"),
        (8, 10, "gone"),
        (15, 20, "earlier,"),
        (15, 20, "until a join"),
        (20, 50, "a name that was removed, and"),
        (50, 54, "later"),
        (50, 52, "from a join"),
    ]
    assert "removed" not in str(KEPT.cut_cues(again))
