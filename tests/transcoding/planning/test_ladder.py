"""The ladder: what every source gets, whatever its shape and rate."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import a_probe, a_track

from portal.transcoding.planning.ladder import Rung, capped_fps, plan_renditions
from portal.transcoding.probing.facts import Probe, Spans, Track


def plan_ladder(probe: Probe) -> tuple[Rung, ...]:
    return plan_renditions(probe).video


@pytest.mark.parametrize(
    ("width", "height", "names"),
    [
        (1080, 1920, "240p 360p 480p 720p 1080p"),
        (1920, 800, "240p 360p 480p 720p 1080p"),
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
        *((rate, rate) for rate in ("30000/1001", "60", "1/10")),
        *(("120000/1001", "60000/1001"), ("240", "60"), ("100", "50")),
    ],
)
def test_rates_are_exact_and_above_60_whole_frames_are_left_out(source: str, expected: str) -> None:
    rungs = plan_ladder(a_probe(1280, 720, Fraction(source)))
    assert {rung.fps for rung in rungs} == {Fraction(expected)}


@given(
    width=st.integers(2, 16_384),
    height=st.integers(2, 16_384),
    fps=st.fractions(Fraction(1, 10), Fraction(1_000)).map(
        lambda rate: rate.limit_denominator(1001)
    ),
    duration_s=st.floats(0.04, 1e6),
)
def test_every_picture_gets_a_ladder_that_rises(
    width: int, height: int, fps: Fraction, duration_s: float
) -> None:
    rungs = plan_ladder(a_probe(width, height, fps, duration_s=duration_s))
    assert 1 <= len(rungs) == len({rung.name for rung in rungs}) <= 10
    for rung in rungs:
        assert rung.width % 2 == rung.height % 2 == 0
        assert 2 <= rung.width <= max(width, 2)
        assert 2 <= rung.height <= max(height, 2)
        assert rung.fps == capped_fps(fps)
        assert 0 < rung.fps <= 60
        assert rung.max_bitrate_bps > 0
    for lower, higher in pairwise(rungs):
        assert lower.width * lower.height <= higher.width * higher.height
        assert lower.max_bitrate_bps <= higher.max_bitrate_bps
        assert not lower.copied


def test_tracks_have_names_languages_and_labels_of_their_own() -> None:
    tracks = [a_track("eng"), a_track("deu"), a_track("eng"), a_track(None), a_track("zz-q!")]
    texts = [
        Track(index=3, codec="mov_text", language="deu", title=None),
        Track(index=4, codec="mov_text", language=None, title="Comments"),
    ]
    plan = plan_renditions(a_probe(640, 360, audio=tracks, subtitles=texts))
    assert [rung.language for rung in plan.audio] == ["en", "de", "en", None, None]
    assert [rung.is_default for rung in plan.audio] == [True, False, False, False, False]
    assert [rung.label for rung in plan.audio[:2]] == ["English", "German"]
    assert len({rung.label for rung in plan.audio}) == len({rung.name for rung in plan.audio}) == 5
    assert [
        (rung.index, rung.language, rung.label, rung.is_default) for rung in plan.subtitles
    ] == [
        (3, "de", "German", False),
        (4, None, "Comments", False),
    ]


TITLES = [
    '"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://evil.example/x.m3u8',
    "\u2028#EXT-X-ENDLIST\u0085\x0b\x0c\x1c",
    "\u202eabc\u2066\ud800",
    "x" * 10_000,
]
LANGUAGES = ["eng", "und", "", "x-y", "q" * 300]


@given(
    st.lists(
        st.tuples(
            st.none() | st.text(max_size=200) | st.sampled_from(TITLES),
            st.none() | st.text() | st.sampled_from(LANGUAGES),
        ),
        max_size=6,
    )
)
def test_no_name_of_a_track_leaves_its_attribute(
    tracks: list[tuple[str | None, str | None]],
) -> None:
    audio = [a_track(language, title=title) for title, language in tracks]
    texts = [
        Track(index=9, codec="x", language=language, title=title) for title, language in tracks
    ]
    plan = plan_renditions(a_probe(640, 360, audio=audio, subtitles=texts))
    for rungs in (plan.audio, plan.subtitles):
        assert len({rung.label for rung in rungs}) == len(rungs) == len(tracks)
        for rung in rungs:
            assert 1 <= len(rung.label.encode("utf-8")) <= 500
            assert '"' not in rung.label
            assert rung.label.splitlines() == [rung.label]
            assert re.fullmatch(r"[a-z0-9-]+", rung.name)
            assert re.fullmatch(r"[A-Za-z0-9-]+", rung.language or "none")


def test_only_the_top_rung_is_copied_and_none_below_costs_more() -> None:
    rungs = plan_ladder(a_probe(1920, 1080, bitrate_bps=900_000))
    assert [rung.copied for rung in rungs] == [False] * 4 + [True]
    # The share of the source's rate that goes with the share of its area.
    assert all(rung.max_bitrate_bps < 900_000 for rung in rungs[:-1])


@pytest.mark.parametrize(("codec", "worth"), [("h264", 1.0), ("vp9", 2.5)])
@pytest.mark.parametrize("duration_s", [0.5, 3600.0])
def test_no_rendition_takes_more_than_the_source_is_worth(
    codec: str, worth: float, duration_s: float
) -> None:
    facts = {"codec": codec, "profile": None, "bitrate_bps": 1_200_000, "duration_s": duration_s}
    rungs = plan_ladder(a_probe(1280, 720, **facts))
    for rung in rungs:
        # The cap also limits the bits that the encoder spends early.
        most_bits = rung.max_bitrate_bps * (duration_s + 0.4)
        share = rung.width * rung.height / (1280 * 720)
        assert most_bits <= 1.001 * worth * share**0.75 * 1_200_000 * duration_s
    assert rungs[-1].max_bitrate_bps > 100_000


@pytest.mark.parametrize(
    "doubt",
    [
        {"codec": "hevc"},
        {"profile": "High 10"},
        {"profile": None},
        {"pix_fmt": "yuv422p"},
        {"level": 51},
        {"level": None},
        {"interlaced": True},
        {"sar": Fraction(4, 3)},
        {"is_sar_certain": False},
        {"rotation": 180},
        {"mirrored": True},
        {"color_transfer": 16},
        {"coded_width": 1440},
        {"closed_gops": False},
        {"max_key_distance_s": None},
        {"max_key_distance_s": 10.6},
        {"bitrate_bps": None},
        {"bitrate_bps": 40_000_000},
        {"fps": Fraction(120)},
    ],
    ids=lambda fact: "-".join(f"{key}={value}" for key, value in fact.items()),
)
def test_each_doubt_alone_prevents_copying(doubt: dict[str, Any]) -> None:
    assert plan_ladder(a_probe(1920, 1080))[-1].copied
    assert not any(rung.copied for rung in plan_ladder(a_probe(1920, 1080, **doubt)))


@pytest.mark.parametrize(
    ("duration_s", "lead_s", "hidden", "is_copied"),
    [
        (10.0, 1.5, [], True),
        (10.0, 1.5, [(10, 1e6)], True),
        # At most a part of a segment is between the pieces.
        (4.1, 1.5, [(4.1, 1e6)], False),
        (4.1, None, [], True),
        # A gap within the film.
        (10.0, None, [(4, 5)], False),
        (10.0, 1.5, [(4, 5), (10, 1e6)], False),
    ],
)
def test_a_film_is_copied_if_edit_lists_hide_its_ends_alone(
    duration_s: float, lead_s: float | None, hidden: Spans, is_copied: bool
) -> None:
    trimmed = replace(a_probe(1920, 1080, duration_s=duration_s, hidden=hidden), lead_s=lead_s)
    assert plan_ladder(trimmed)[-1].copied == is_copied


@pytest.mark.parametrize(
    ("size", "duration_s", "is_copyable", "expected"),
    [
        ((1920, 1080), 3600, True, "1080p"),
        ((1080, 1920), 3600, False, "360p"),
        ((320, 180), 600, False, "180p"),
        ((1920, 1080), 10, False, "240p 360p 480p 720p 1080p"),
        ((1920, 1080), 15, False, "360p"),
        ((2160, 3840), 9, True, "2160p"),
        ((2160, 3840), 1, False, "240p 360p 480p 720p 1080p 1440p 2160p"),
    ],
)
def test_a_long_or_large_source_is_first_made_just_good_enough_to_watch(
    size: tuple[int, int], duration_s: float, is_copyable: bool, expected: str
) -> None:
    source = a_probe(*size, duration_s=duration_s, closed_gops=is_copyable)
    assert plan_renditions(source).first_pass() == tuple(expected.split())


@pytest.mark.parametrize("rate", [{"bitrate_bps": 10_000_000}, {"peak_bitrate_bps": 17_000_000}])
def test_beside_a_copy_for_fast_lines_comes_a_rendition_for_slow_ones(rate: dict[str, Any]) -> None:
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
    otherwise: dict[str, Any], is_copied: bool
) -> None:
    track = a_track(**otherwise)
    for codec, expected in (("h264", is_copied), ("hevc", False)):
        [audio] = plan_renditions(a_probe(640, 360, audio=[track], codec=codec)).audio
        assert audio.copied == expected


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
    # An index that shows each frame many times makes it cost that.
    assert first_pass_s(1920, 1080, duration_s=600, frame_count=10**6) > 10 * usual_s


def test_copies_are_expected_to_take_none_of_the_encoders_time() -> None:
    plan = plan_renditions(a_probe(1920, 1080))
    assert plan.encode_s(["1080p"]) == 0.0
    cautious = plan.first_pass(cautious=True)
    assert cautious == ("360p", "1080p"), "a cautious pass treats a short source as a long one"
    assert plan.encode_s(cautious) == plan.encode_s(["360p"]) > 0
    below = ["240p", "360p", "480p", "720p"]
    assert plan.ladder_s == plan.encode_s(below) > plan.encode_s(["360p"])
