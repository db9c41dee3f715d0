"""Where a copied stream is cut, by the times of its IDR pictures."""

import pytest

from portal.transcoding.probing.cuts import Cutter, peak_bitrate_bps

TICKS_PER_S = 10


def cuts(*keys: int) -> list[int]:
    """The cuts among IDR pictures at these tenths of a second, the last one being the end."""
    cutter = Cutter(0, TICKS_PER_S)
    return [cut for key in keys for cut in cutter.push(key)]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param((20, 40, 60, 80, 100), [40, 80], id="at the first after four seconds"),
        pytest.param((30, 60, 90), [60], id="a little later when there is none"),
        pytest.param((25, 75, 110), [25, 75], id="at one before rather than much later"),
        pytest.param((25, 35, 75), [35, 75], id="at the last one before"),
        pytest.param((15, 75), [75], id="not so early that the segment is short"),
        pytest.param((39, 70, 95, 100, 110, 140), [39, 95, 140], id="irregular"),
        pytest.param((30, 70), [30, 70], id="before an end that comes late"),
        pytest.param((30, 50), [50], id="not before an end that comes soon"),
        pytest.param(tuple(range(1, 101)), [40, 80], id="every picture is one"),
        pytest.param((5,), [], id="one short segment"),
    ],
)
def test_segments_end_at_idr_pictures(keys: tuple[int, ...], expected: list[int]) -> None:
    assert cuts(*keys) == expected


def test_the_peak_is_that_of_one_segment() -> None:
    # Segments of 4, 4 and 0.5 s, of 1000, 3000 and 100 bytes.
    keys, sizes = [0, 20, 40, 80, 85], [0, 500, 1000, 4000, 4100]
    assert peak_bitrate_bps(keys, sizes, ticks_per_s=TICKS_PER_S) == 6000


def test_a_last_segment_of_a_few_frames_is_no_peak() -> None:
    assert peak_bitrate_bps([0, 40, 41], [0, 1000, 1400], ticks_per_s=TICKS_PER_S) == 2000


def test_a_short_stream_has_its_own_rate_and_an_empty_one_has_none() -> None:
    assert peak_bitrate_bps([0, 10], [0, 1000], ticks_per_s=TICKS_PER_S) == 8000
    assert peak_bitrate_bps([0, 0], [0, 1000], ticks_per_s=TICKS_PER_S) is None
