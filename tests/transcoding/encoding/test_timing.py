"""Frames of a constant rate get exact times, and others keep their times."""

import pytest
from decoded_media import packets
from media_recipes import EXACT_TIMES, IRREGULAR, jittering, lavfi
from published import Published, Studio, check_durations, joined, playlist
from published_checks import source_times_s

TICK_S = 0.001
QUICK = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv422p")
# Bursts of motion, and seconds in which nothing changes, one of them before the end.
STILL = "select='lt(mod(t,4),0.7)+eq(n,359)'"


def check_joins(published: Published, name: str) -> None:
    """Check that each segment, read alone, lasts until the next one begins."""
    written = playlist(published.folder, name)
    ends_s = [*written.starts_s[1:], written.duration_s]
    for number, (start_s, end_s) in enumerate(zip(written.starts_s, ends_s, strict=True)):
        alone = packets(joined(published.folder, name, number))
        assert alone[0].is_key
        assert min(each.shown_s for each in alone) == pytest.approx(start_s, abs=TICK_S)
        last_s = max(each.shown_s + each.length_s for each in alone)
        assert last_s == pytest.approx(end_s, abs=TICK_S)


@pytest.mark.parametrize(
    ("filters", "rate", "b_frames"),
    [
        pytest.param(jittering("null", 6000), "30000/1001", 2, id="jittering"),
        pytest.param(IRREGULAR, "240", 2, id="irregular"),
        # The duration of the last frame of a source with B-frames and pauses is unknown.
        pytest.param(STILL, "30", 0, id="still"),
    ],
)
async def test_every_frame_is_shown_at_its_time(
    filters: str, rate: str, b_frames: int, studio: Studio
) -> None:
    inputs = lavfi(f"testsrc2=s=96x64:r={rate}:d=13")
    options = ("-vf", filters, *QUICK, "-bf", str(b_frames), *EXACT_TIMES)
    source = studio.make("timing.mp4", *inputs, *options)

    published = await studio.publish(source)

    expected_s = source_times_s(published)
    within_s = TICK_S
    if published.result.source.video.constant_rate:
        assert rate == "30000/1001"
        expected_s = [n * 1001 / 30_000 for n in range(len(expected_s))]
        within_s = 1e-6
    ends_s = max(each.shown_s + each.length_s for each in packets(source))
    for name in published.pictures:
        frames = packets(joined(published.folder, name))
        times_s = sorted(frame.shown_s for frame in frames)
        assert times_s == pytest.approx(expected_s, abs=within_s)
        check_durations(published.folder, name)
        check_joins(published, name)
        length_s = playlist(published.folder, name).duration_s
        assert length_s == pytest.approx(ends_s, abs=0.05)
