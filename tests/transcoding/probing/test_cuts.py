"""A copied stream is cut by the times of its IDR pictures."""

import pytest

from portal.transcoding.probing.segment_bounds import Segmenter, peak_bitrate_bps

TICKS_PER_S = 10


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param((20, 40, 60, 80, 100), [40, 80], id="at the first after four seconds"),
        pytest.param((30, 60, 90), [60], id="a little later when there is none"),
        pytest.param((25, 75, 110), [25, 75], id="at one before rather than much later"),
        pytest.param((25, 35, 75), [35, 75], id="at the last one before"),
        pytest.param((15, 75), [75], id="not so early that the segment is short"),
        pytest.param((30, 70), [30, 70], id="before an end that comes late"),
        pytest.param((5,), [], id="one short segment"),
    ],
)
def test_segments_end_at_idr_pictures(keys: tuple[int, ...], expected: list[int]) -> None:
    """IDR pictures come at these tenths of a second, the last one being the end."""
    cutter = Segmenter(0, TICKS_PER_S)
    assert [cut for key in keys for cut in cutter.push(key)] == expected


@pytest.mark.parametrize(
    ("keys", "bytes_before", "expected_bps"),
    [
        pytest.param([0, 20, 40, 80, 85], [0, 500, 1000, 4000, 4100], 6000, id="of one segment"),
        pytest.param([0, 40, 41], [0, 1000, 1400], 2000, id="a few last frames are no peak"),
        pytest.param([0, 10], [0, 1000], 8000, id="a short stream"),
        pytest.param([0, 0], [0, 1000], None, id="an empty one"),
    ],
)
def test_the_peak_is_that_of_any_segment(
    keys: list[int], bytes_before: list[int], expected_bps: int | None
) -> None:
    assert peak_bitrate_bps(keys, bytes_before, ticks_per_s=TICKS_PER_S) == expected_bps
