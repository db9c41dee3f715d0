"""Numbers in words on pages."""

import pytest

from portal.http.formatting import clock, position, position_to_tenth, views_in_words


@pytest.mark.parametrize(
    ("views", "words"),
    [
        (0, "0 views"),
        (1, "1 view"),
        (999, "999 views"),
        (1_000, "1K views"),
        (1_999, "1.9K views"),
        (10_999, "10K views"),
        (999_999, "999K views"),
        (1_200_000, "1.2M views"),
    ],
)
def test_large_numbers_of_views_are_rounded_down(views: int, words: str) -> None:
    assert views_in_words(views) == words


@pytest.mark.parametrize(
    ("at_s", "to_second", "to_tenth"),
    [
        (0, "0:00", "0:00"),
        (0.96, "0:00", "0:01"),
        (6.8, "0:06", "0:06.8"),
        (12.25, "0:12", "0:12.3"),
        (3599.99, "59:59", "1:00:00"),
    ],
)
def test_positions_are_those_of_players(at_s: float, to_second: str, to_tenth: str) -> None:
    assert (position(at_s), position_to_tenth(at_s)) == (to_second, to_tenth)


def test_durations_are_rounded_to_a_second() -> None:
    assert [clock(duration_s) for duration_s in (0.2, 6.4, 6.5, 3661)] == [
        "0:01",
        "0:06",
        "0:07",
        "1:01:01",
    ]
