"""The ladder: what every source gets, whatever its shape and rate."""

from fractions import Fraction

import pytest

from portal.transcoding import AudioTrack, Probe, VideoTrack, plan_audio, plan_ladder

SIZES = [
    (1920, 1080),
    (1080, 1920),
    (1920, 800),
    (3840, 2160),
    (7680, 4320),
    (960, 540),
    (1279, 719),
    (719, 1281),
    (1000, 1000),
    (176, 144),
    (3, 2),
    (8000, 10),
]


def a_probe(width: int, height: int, fps: Fraction = Fraction(30), *, audio: bool = True) -> Probe:
    video = VideoTrack(
        index=0,
        codec="h264",
        width=width,
        height=height,
        coded_width=width,
        coded_height=height,
        rotation=0,
        sar=Fraction(1),
        fps=fps,
        constant_rate=True,
        pix_fmt="yuv420p",
        interlaced=False,
        duration_s=10.0,
        color_space=1,
        color_transfer=1,
        color_primaries=1,
    )
    track = AudioTrack(index=1, codec="aac", channels=6, sample_rate_hz=44100)
    return Probe(duration_s=10.0, video=video, audio=track if audio else None)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_no_rung_is_larger_than_the_source_and_all_are_even(width: int, height: int) -> None:
    for rung in plan_ladder(a_probe(width, height)):
        assert rung.width <= max(2, width)
        assert rung.height <= max(2, height)
        assert rung.width % 2 == rung.height % 2 == 0
        assert rung.width > 0
        assert rung.height > 0


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_rungs_rise_in_size_and_rate_and_have_names_of_their_own(width: int, height: int) -> None:
    rungs = plan_ladder(a_probe(width, height))
    areas = [rung.width * rung.height for rung in rungs]
    rates = [rung.max_bitrate_bps for rung in rungs]
    assert areas == sorted(set(areas))
    assert rates == sorted(rates)
    assert len({rung.name for rung in rungs}) == len(rungs)


@pytest.mark.parametrize(("width", "height"), [s for s in SIZES if 240 <= min(s) <= 2160])
def test_the_shape_is_kept(width: int, height: int) -> None:
    for rung in plan_ladder(a_probe(width, height)):
        assert rung.width / rung.height == pytest.approx(width / height, rel=0.02)


@pytest.mark.parametrize(
    ("width", "height", "names"),
    [
        (1920, 1080, ["240p", "360p", "480p", "720p", "1080p"]),
        (1080, 1920, ["240p", "360p", "480p", "720p", "1080p"]),
        (1920, 800, ["240p", "360p", "480p", "720p", "1080p"]),
        (1280, 720, ["240p", "360p", "480p", "720p"]),
        (960, 540, ["240p", "360p", "540p"]),
        (320, 180, ["180p"]),
        (7680, 4320, ["240p", "360p", "480p", "720p", "1080p", "1440p", "2160p"]),
    ],
)
def test_standard_sizes_below_the_source_and_its_own_on_top(
    width: int, height: int, names: list[str]
) -> None:
    assert [rung.name for rung in plan_ladder(a_probe(width, height))] == names


def test_a_portrait_rung_is_the_landscape_rung_on_its_side() -> None:
    landscape, portrait = plan_ladder(a_probe(1920, 1080)), plan_ladder(a_probe(1080, 1920))
    assert [(r.width, r.height) for r in landscape] == [(r.height, r.width) for r in portrait]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("30000/1001", "30000/1001"),
        ("24000/1001", "24000/1001"),
        ("60", "60"),
        ("60000/1001", "60000/1001"),
        ("120", "60"),
        ("120000/1001", "60000/1001"),
        ("240", "60"),
        ("100", "50"),
        ("1/10", "1/10"),
    ],
)
def test_rates_are_exact_and_above_60_whole_frames_are_left_out(source: str, expected: str) -> None:
    rungs = plan_ladder(a_probe(1280, 720, Fraction(source)))
    assert {rung.fps for rung in rungs} == {Fraction(expected)}


def test_audio_is_planned_only_when_there_is_some() -> None:
    assert plan_audio(a_probe(640, 360, audio=False)) is None
    audio = plan_audio(a_probe(640, 360))
    assert audio is not None
    assert (audio.channels, audio.bitrate_bps) == (2, 128_000)
