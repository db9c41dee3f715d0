"""Frame timing: what counts as a constant rate, by the times of all frames."""

from array import array
from collections.abc import Iterable
from fractions import Fraction

import pytest

from portal.transcoding.probing.sample_index import Grid, frame_grid

NTSC = Fraction(30_000, 1001)


def find_grid(times: Iterable[int], ticks_per_s: int = 1_000_000) -> Grid | None:
    return frame_grid(array("q", times), Fraction(1, ticks_per_s), None)


def at_rate(fps: Fraction, frames: int = 300, *, ticks_per_s: int = 1_000_000) -> list[int]:
    return [round(number * ticks_per_s / fps) for number in range(frames)]


@pytest.mark.parametrize("fps", ["24000/1001", "25", "60000/1001", "240", "12"])
@pytest.mark.parametrize("ticks_per_s", [1000, 90_000])
def test_rounded_times_are_of_a_nominal_rate(fps: str, ticks_per_s: int) -> None:
    grid = find_grid(at_rate(Fraction(fps), ticks_per_s=ticks_per_s), ticks_per_s)
    assert grid is not None
    assert grid.fps == Fraction(fps)
    assert abs(grid.lead) < 0.25


@pytest.mark.parametrize(("by_us", "expected"), [(5000, NTSC), (25_000, None)])
def test_jitter_is_allowed_up_to_a_third_of_a_frame(by_us: int, expected: Fraction | None) -> None:
    times = [at + number * 7919 % (by_us + 1) for number, at in enumerate(at_rate(NTSC, 9000))]
    grid = find_grid(times)
    assert (grid.fps if grid else None) == expected


def test_a_claimed_rate_comes_first_but_has_to_fit_and_a_drifting_one_is_taken_as_it_is() -> None:
    odd = Fraction(23_040_000, 767_849)
    times = array("q", (number * 767_849 for number in range(30)))
    assert frame_grid(times, Fraction(1, 23_040_000), odd) == Grid(fps=odd, lead=0.0)
    grid = frame_grid(times, Fraction(1, 23_040_000), Fraction(25))
    assert grid is not None
    assert grid.fps == 30
    drifting = find_grid(at_rate(Fraction(3001, 100), 30_000))
    assert drifting is not None
    assert float(drifting.fps) == pytest.approx(30.01, rel=1e-6)


@pytest.mark.parametrize(
    "times",
    [
        [*at_rate(Fraction(30))[:100], *at_rate(Fraction(30))[101:]],
        [*at_rate(Fraction(30), 100), *(at + 3_333_333 for at in at_rate(Fraction(15), 100))],
        [5, 5, 5],
    ],
    ids=["one missing", "slower", "all at once"],
)
def test_anything_else_is_variable(times: list[int]) -> None:
    assert find_grid(times) is None
