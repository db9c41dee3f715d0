"""The ladder: what every source gets, whatever its shape and rate."""

from fractions import Fraction
from typing import Any

import pytest
from examples import a_probe

from portal.transcoding.planning.ladder import Rung, plan_renditions
from portal.transcoding.probing.facts import AudioTrack, Probe, Track


def a_track(language: str | None = None, **facts: Any) -> AudioTrack:
    heard = {"codec": "aac", "profile": "LC", "channels": 6, "sample_rate_hz": 44_100}
    return AudioTrack(**{"index": 1, "language": language, "title": None, **heard, **facts})


def plan_ladder(probe: Probe) -> tuple[Rung, ...]:
    return plan_renditions(probe).video


@pytest.mark.parametrize(
    ("width", "height", "names"),
    [
        (1920, 1080, "240p 360p 480p 720p 1080p"),
        (1080, 1920, "240p 360p 480p 720p 1080p"),
        (1920, 800, "240p 360p 480p 720p 1080p"),
        (1280, 720, "240p 360p 480p 720p"),
        (960, 540, "240p 360p 540p"),
        (320, 180, "180p"),
        (7680, 4320, "240p 360p 480p 720p 1080p 1440p 2160p"),
    ],
)
def test_standard_sizes_below_the_source_and_its_own_on_top(
    width: int, height: int, names: str
) -> None:
    assert [rung.name for rung in plan_ladder(a_probe(width, height))] == names.split()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        *((rate, rate) for rate in ("30000/1001", "24000/1001", "60", "60000/1001", "1/10")),
        *(("120", "60"), ("120000/1001", "60000/1001"), ("240", "60"), ("100", "50")),
    ],
)
def test_rates_are_exact_and_above_60_whole_frames_are_left_out(source: str, expected: str) -> None:
    rungs = plan_ladder(a_probe(1280, 720, Fraction(source)))
    assert {rung.fps for rung in rungs} == {Fraction(expected)}


def test_tracks_have_names_languages_and_labels_of_their_own() -> None:
    tracks = [a_track("eng"), a_track("deu"), a_track("eng"), a_track(None), a_track("zz-q!")]
    audio = plan_renditions(a_probe(640, 360, audio=tracks)).audio
    assert [rung.language for rung in audio] == ["en", "de", "en", None, None]
    assert [rung.is_default for rung in audio] == [True, False, False, False, False]
    assert audio[0].label == "English"
    assert audio[1].label == "German"
    assert len({rung.label for rung in audio}) == len({rung.name for rung in audio}) == 5


def test_subtitles_keep_the_sources_order_and_none_is_forced_on_anyone() -> None:
    tracks = [
        Track(index=3, codec="mov_text", language="deu", title=None),
        Track(index=4, codec="mov_text", language=None, title="Comments"),
    ]
    subtitles = plan_renditions(a_probe(640, 360, subtitles=tracks)).subtitles
    assert [(rung.index, rung.language, rung.label) for rung in subtitles] == [
        (3, "de", "German"),
        (4, None, "Comments"),
    ]
    assert not any(rung.is_default for rung in subtitles)


def test_only_the_top_rung_is_copied_and_none_below_costs_more() -> None:
    rungs = plan_ladder(a_probe(1920, 1080, bitrate_bps=900_000))
    assert [rung.copied for rung in rungs] == [False] * 4 + [True]
    # The share of the source's rate that goes with the share of its area.
    assert all(rung.max_bitrate_bps < 900_000 for rung in rungs[:-1])


@pytest.mark.parametrize(
    ("codec", "worth"), [("h264", 1.0), ("hevc", 2.0), ("vp9", 2.5), ("av1", 2.25)]
)
@pytest.mark.parametrize("duration_s", [0.5, 9.0, 3600.0])
def test_no_rendition_takes_more_than_the_source_is_worth(
    codec: str, worth: float, duration_s: float
) -> None:
    source = a_probe(
        1280, 720, codec=codec, profile=None, bitrate_bps=1_200_000, duration_s=duration_s
    )
    rungs = plan_ladder(source)
    for rung in rungs:
        # What is spent early is made up for.
        most_bits = rung.max_bitrate_bps * (duration_s + 0.4)
        share = rung.width * rung.height / (1280 * 720)
        assert most_bits <= 1.001 * worth * share**0.75 * 1_200_000 * duration_s
    assert rungs[-1].max_bitrate_bps > 100_000


@pytest.mark.parametrize(
    "otherwise",
    [
        {"codec": "hevc"},
        {"profile": "High 10"},
        {"profile": None},
        {"level": 51},
        {"level": None},
        {"pix_fmt": "yuv422p"},
        {"interlaced": True},
        {"rotation": 90},
        {"rotation": 180},
        {"color_transfer": 16},
        {"color_transfer": 18},
        {"sar": Fraction(4, 3)},
        {"closed_gops": False},
        {"max_key_distance_s": None},
        {"max_key_distance_s": 10.6},
        {"bitrate_bps": None},
        {"bitrate_bps": 40_000_000},
        {"fps": Fraction(120)},
        {"coded_width": 1440},
    ],
    ids=lambda fact: "-".join(f"{key}={value}" for key, value in fact.items()),
)
def test_each_doubt_alone_prevents_copying(otherwise: dict[str, object]) -> None:
    assert plan_ladder(a_probe(1920, 1080))[-1].copied
    assert not any(rung.copied for rung in plan_ladder(a_probe(1920, 1080, **otherwise)))


@pytest.mark.parametrize(
    ("size", "duration_s", "is_copyable", "expected"),
    [
        ((1920, 1080), 10, True, ("1080p",)),
        ((1920, 1080), 3600, True, ("1080p",)),
        ((1920, 1080), 60, False, ("360p",)),
        ((320, 180), 600, False, ("180p",)),
        ((320, 180), 600, True, ("180p",)),
        ((1080, 1920), 3600, False, ("360p",)),
        ((1920, 1080), 10, False, ("240p", "360p", "480p", "720p", "1080p")),
        ((1920, 1080), 15, False, ("360p",)),
        ((2160, 3840), 9, False, ("360p",)),
        ((2160, 3840), 9, True, ("2160p",)),
        ((2160, 3840), 1, False, ("240p", "360p", "480p", "720p", "1080p", "1440p", "2160p")),
    ],
)
def test_a_long_or_large_source_is_first_made_just_good_enough_to_watch(
    size: tuple[int, int], duration_s: float, is_copyable: bool, expected: tuple[str, ...]
) -> None:
    source = a_probe(*size, duration_s=duration_s, closed_gops=is_copyable)
    assert plan_renditions(source).first_pass() == expected


@pytest.mark.parametrize("rate", [{"bitrate_bps": 10_000_000}, {"peak_bitrate_bps": 17_000_000}])
def test_beside_a_copy_for_fast_lines_comes_a_rendition_for_slow_ones(
    rate: dict[str, object],
) -> None:
    plan = plan_renditions(a_probe(1920, 1080, duration_s=100, **rate))
    assert plan.video[-1].copied
    assert plan.first_pass() == ("360p", "1080p")


@pytest.mark.parametrize(
    ("otherwise", "is_copied"),
    [
        ({}, True),
        ({"channels": 1, "sample_rate_hz": 44_100}, True),
        ({"profile": "HE-AAC"}, False),
        ({"codec": "mp3"}, False),
        ({"channels": 6}, False),
        ({"sample_rate_hz": 22_050}, False),
    ],
)
def test_sound_that_every_player_takes_is_copied_with_the_video(
    otherwise: dict[str, object], is_copied: bool
) -> None:
    track = a_track(**{"channels": 2, "sample_rate_hz": 48_000, **otherwise})
    assert [it.copied for it in plan_renditions(a_probe(640, 360, audio=[track])).audio] == [
        is_copied
    ]
    encoded = plan_renditions(a_probe(640, 360, audio=[track], codec="hevc"))
    assert not any(it.copied for it in encoded.audio)


def test_a_cautious_first_pass_treats_a_short_source_as_a_long_one() -> None:
    plan = plan_renditions(a_probe(1920, 1080))
    assert plan.first_pass(cautious=True) == ("360p", "1080p")


def test_expected_time_grows_with_pixels_frames_and_the_cost_of_the_codec() -> None:
    def first_pass_s(width: int, height: int, **facts: Any) -> float:
        plan = plan_renditions(a_probe(width, height, closed_gops=False, **facts))
        return plan.encode_s(plan.first_pass())

    usual_s = first_pass_s(1920, 1080, duration_s=600)
    assert usual_s == pytest.approx(89, rel=0.1)  # measured: a minute takes 8.9 s
    assert first_pass_s(3840, 2160, duration_s=600) > 2 * usual_s
    assert first_pass_s(1920, 1080, duration_s=1200) == pytest.approx(2 * usual_s)
    assert first_pass_s(1920, 1080, duration_s=600, fps=Fraction(60)) > 1.9 * usual_s
    assert first_pass_s(1920, 1080, duration_s=600, codec="hevc") > usual_s
    assert first_pass_s(1920, 1080, duration_s=600, codec="png") > 2 * usual_s
    # An index that shows each frame many times makes it cost that.
    assert first_pass_s(1920, 1080, duration_s=600, frame_count=10**6) > 10 * usual_s


def test_copies_need_no_encoder_and_are_expected_to_take_none_of_its_time() -> None:
    plan = plan_renditions(a_probe(1920, 1080))
    assert not plan.needs_encoder(["1080p"])
    assert plan.encode_s(["1080p"]) == 0.0
    assert plan.needs_encoder(["360p", "1080p"])
    assert plan.encode_s(["360p", "1080p"]) == plan.encode_s(["360p"])
    below = ["240p", "360p", "480p", "720p"]
    assert plan.ladder_s == plan.encode_s(below) > plan.encode_s(["360p"])
