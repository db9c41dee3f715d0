"""Edit lists are interpreted where FFmpeg doesn't follow them."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from portal.transcoding.probing.edits import Edit, TimeLine, are_followed, are_open

PICTURE = SimpleNamespace(id=1, average_rate=Fraction(10))
SOUND = SimpleNamespace(id=1)


def plays(duration_s: float, rate: float = 1) -> Edit:
    return Edit(duration_s=duration_s, rate=rate, is_empty=False)


def gap(duration_s: float) -> Edit:
    return Edit(duration_s=duration_s, rate=1, is_empty=True)


@pytest.mark.parametrize(
    ("edits", "picture", "sound"),
    [
        ([plays(5)], [], []),
        ([gap(2), plays(5)], [], []),
        ([gap(2), plays(5), gap(1), plays(3)], [(5, 6)], [(5, 6)]),
        ([plays(5), gap(1)], [(5, 6)], [(5, 6)]),
        ([plays(2), plays(3, 0), plays(1)], [(2.1, 5)], [(2, 5)]),
        ([plays(2), plays(4, 0.5), plays(1)], [(4, 6)], [(4, 6)]),
        ([plays(2), plays(4, -1), plays(1)], [(2.1, 6)], [(2, 6)]),
        ([plays(2), plays(4, 2)], [], []),
        ([plays(5, 0)], [], []),
        ([], [], []),
    ],
)
def test_gaps_and_what_follows_slow_or_still_media_are_hidden(
    edits: list[Edit], picture: list[tuple[float, float]], sound: list[tuple[float, float]]
) -> None:
    # The film begins with the track.
    first_s = 2.0 if edits and edits[0].is_empty else 0.0
    line = TimeLine(edits={1: edits}, first_s=first_s, is_open=False)
    assert line.hidden_spans(PICTURE) == [pytest.approx(span) for span in picture]
    assert line.hidden_spans(SOUND) == [pytest.approx(span) for span in sound]


def test_rest_of_a_track_after_its_edit_is_hidden_in_a_file_of_fragments() -> None:
    line = TimeLine(edits={1: [gap(1), plays(5)]}, first_s=-2.0, is_open=True)
    assert (line.start_s, line.ends_s(SOUND)) == (1, 5)
    assert [from_s for from_s, _ in line.hidden_spans(SOUND)] == [5]
    to_the_end = TimeLine(edits={1: [plays(0)]}, first_s=-2.0, is_open=True)
    assert (to_the_end.start_s, to_the_end.ends_s(SOUND)) == (0, None)


def test_very_many_gaps_are_refused() -> None:
    line = TimeLine(edits={1: [plays(1), gap(1)] * 300}, first_s=0.0, is_open=False)
    with pytest.raises(ValueError, match="gaps"):
        line.hidden_spans(SOUND)


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([[plays(0)], [gap(1), plays(0)]], True),
        ([[plays(0)], []], True),
        ([[plays(0)], [plays(3)]], False),
        ([[plays(2), plays(0)]], False),
        ([[gap(1)]], False),
        ([], False),
    ],
)
def test_lists_are_open_if_each_has_one_edit_without_a_duration(
    lists: list[list[Edit]], expected: bool
) -> None:
    assert are_open(lists) == expected


def test_changes_of_speed_and_an_open_end_after_others_are_not_followed() -> None:
    assert are_followed([gap(1), plays(2), plays(3, 0), plays(4)])
    assert are_followed([plays(0)])
    assert not are_followed([plays(2, 0.5)])
    assert not are_followed([plays(2), plays(0)])
