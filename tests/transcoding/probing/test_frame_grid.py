"""Frame timing: what counts as a constant rate, by the times of all frames."""

from array import array
from collections.abc import Iterable
from fractions import Fraction

import pytest

from portal.transcoding.probing.sample_index import Grid, frame_grid

MICROSECONDS, MILLISECONDS = Fraction(1, 1_000_000), Fraction(1, 1000)
NTSC = Fraction(30_000, 1001)


def grid(times: Iterable[int], time_base: Fraction = MICROSECONDS) -> Grid | None:
    return frame_grid(array("q", times), time_base, None)


def at_rate(fps: Fraction, frames: int = 300, *, ticks_per_s: int = 1_000_000) -> list[int]:
    return [round(number * ticks_per_s / fps) for number in range(frames)]


@pytest.mark.parametrize("fps", ["24000/1001", "25", "30000/1001", "30", "60000/1001", "240", "12"])
def test_rounded_times_are_of_a_nominal_rate(fps: str) -> None:
    for ticks_per_s in (1000, 90_000, 1_000_000):
        found = grid(at_rate(Fraction(fps), ticks_per_s=ticks_per_s), Fraction(1, ticks_per_s))
        assert found is not None
        assert found.fps == Fraction(fps)
        assert abs(found.lead) < 0.25


@pytest.mark.parametrize(("by_us", "is_constant"), [(1, True), (5000, True), (25_000, False)])
def test_jitter_is_allowed_up_to_a_third_of_a_frame(by_us: int, is_constant: bool) -> None:
    times = [at + number * 7919 % (by_us + 1) for number, at in enumerate(at_rate(NTSC, 9000))]
    found = grid(times)
    assert (found is not None) == is_constant
    assert found is None or found.fps == NTSC


def test_a_rate_that_drifts_from_the_nominal_one_is_taken_as_it_is() -> None:
    found = grid(at_rate(Fraction(3001, 100), 30_000))
    assert found is not None
    assert float(found.fps) == pytest.approx(30.01, rel=1e-6)


def test_a_claimed_rate_comes_first_but_has_to_fit() -> None:
    odd = Fraction(23_040_000, 767_849)
    times = array("q", (number * 767_849 for number in range(30)))
    found = frame_grid(times, Fraction(1, 23_040_000), odd)
    assert found == Grid(fps=odd, lead=0.0)
    found = frame_grid(times, Fraction(1, 23_040_000), Fraction(25))
    assert found is not None
    assert found.fps == 30


@pytest.mark.parametrize(
    "times",
    [
        [*at_rate(Fraction(30))[:100], *at_rate(Fraction(30))[101:]],
        [*at_rate(Fraction(30)), 10_000_000 + 5_000_000],
        [*at_rate(Fraction(30), 100), *(at + 3_333_333 for at in at_rate(Fraction(15), 100))],
        [*at_rate(Fraction(30), 2), *at_rate(Fraction(30), 300)],
        [5, 5, 5],
    ],
    ids=["one missing", "a pause", "slower", "doubled", "all at once"],
)
def test_anything_else_is_variable(times: list[int]) -> None:
    assert grid(times) is None
