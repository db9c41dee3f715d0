"""What holds of plans and playlists for whatever a source is like."""

import math
import re
from fractions import Fraction
from itertools import pairwise

import pytest
from examples import a_probe, a_sound, a_text, a_video, here
from hypothesis import given
from hypothesis import strategies as st
from published_checks import attributes

from portal.transcoding.packaging.cmaf import SegmentError, avc_codec, inspect_segment
from portal.transcoding.packaging.hls import (
    PlaylistError,
    Segment,
    media_playlist,
    parse_media_playlist,
    target_duration_s,
)
from portal.transcoding.packaging.webvtt import parse_webvtt, segment_webvtt
from portal.transcoding.planning.ladder import capped_fps, plan_renditions
from portal.transcoding.probing.facts import AudioTrack, Track

sides = st.integers(2, 16_384)
rates = st.fractions(Fraction(1, 10), Fraction(1_000)).map(lambda it: it.limit_denominator(1001))
# What a file may say of its tracks: whatever it likes.
words = (
    st.none()
    | st.text(max_size=200)
    | st.sampled_from(
        [
            '"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://evil.example/x.m3u8',
            'a",URI="http://evil.example/x',
            "a\r\n#EXTINF:4,\nfile:///etc/passwd",
            "\u2028#EXT-X-ENDLIST\u0085\x0b\x0c\x1c",
            "\u202eabc\u2066",
            "\ud800",
            "\x1b[2J\x00",
            "-->",
            "x" * 10_000,
            ",;=\\",
        ]
    )
)
languages = (
    st.none() | st.sampled_from(["eng", "deu", "und", "", "x-y", "mul", "q" * 300]) | st.text()
)


@given(
    width=sides, height=sides, fps=rates, duration_s=st.floats(0.04, 1e6), constant=st.booleans()
)
def test_every_picture_gets_a_ladder_that_rises(
    width: int, height: int, fps: Fraction, duration_s: float, *, constant: bool
) -> None:
    source = a_probe(width, height, fps, duration_s=duration_s, constant_rate=constant)
    rungs = plan_renditions(source).video
    assert 1 <= len(rungs) <= 10
    assert len({rung.name for rung in rungs}) == len(rungs)
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


@given(st.lists(st.tuples(words, languages), max_size=6))
def test_no_name_of_a_track_leaves_its_attribute(
    tracks: list[tuple[str | None, str | None]],
) -> None:
    named = [{"title": title, "language": language} for title, language in tracks]
    sound = {"codec": "aac", "profile": "LC", "channels": 2, "sample_rate_hz": 48_000}
    audio = [AudioTrack(index=n, **sound, **names) for n, names in enumerate(named)]
    subtitles = [
        Track(index=n, codec="mov_text", **names) for n, names in enumerate(named, start=10)
    ]
    plan = plan_renditions(a_probe(640, 360, audio=audio, subtitles=subtitles))
    sounds = [
        a_sound(it.name, label=it.label, language=it.language, is_default=it.is_default)
        for it in plan.audio
    ]
    texts = [a_text(it.name, it.language, it.label) for it in plan.subtitles]
    master = here(a_video(360, 1_000_000), *sounds, *texts)
    master.encode("utf-8")
    lines = master.split("\n")
    assert master.splitlines() == lines[:-1]
    media = [line for line in lines if line.startswith("#EXT-X-MEDIA:")]
    assert len(media) == 2 * len(tracks)
    assert [line for line in lines if line and not line.startswith("#EXT")] == [
        "360p/playlist.m3u8"
    ]
    for kind in ("AUDIO", "SUBTITLES"):
        of_kind = [attributes(line) for line in media if f"TYPE={kind}," in line]
        names = [it["NAME"] for it in of_kind]
        assert len(set(names)) == len(tracks)
        assert all(1 <= len(name) <= 120 for name in names)
        assert all(re.fullmatch(r"[a-z0-9-]+/playlist\.m3u8", it["URI"]) for it in of_kind)
    assert "evil.example" not in "".join(re.findall(r'URI="([^"]*)"', master))


segments = st.lists(
    st.builds(
        Segment,
        uri=st.from_regex(r"[a-z0-9]{1,8}\.m4s", fullmatch=True),
        duration_s=st.floats(0.001, 100).map(lambda it: round(it, 6)),
    ),
    min_size=1,
    max_size=20,
)


@given(segments, st.none() | st.just("init.mp4"))
def test_a_media_playlist_is_read_as_it_was_written(
    written: list[Segment], map_uri: str | None
) -> None:
    target_s = math.ceil(max(it.duration_s for it in written))
    read = parse_media_playlist(
        media_playlist(written, target_duration_s=target_s, map_uri=map_uri)
    )
    assert [it.uri for it in read.segments] == [it.uri for it in written]
    for one, other in zip(read.segments, written, strict=True):
        assert one.duration_s == pytest.approx(other.duration_s, abs=1e-6)
    assert (read.map_uri, read.target_duration_s, read.complete) == (map_uri, target_s, True)
    assert target_duration_s([read]) <= target_s + 1


@given(st.text() | st.text(alphabet='#EXTINF:,\n\r M3U-"0123456789.URI=').map("#EXTM3U\n".__add__))
def test_any_text_is_a_playlist_or_is_refused(text: str) -> None:
    try:
        parse_media_playlist(text)
    except PlaylistError:
        return


@given(st.text() | st.text(alphabet="0123456789:.-> \n<b>&"))
def test_any_subtitles_are_read_and_cut(text: str) -> None:
    cues = parse_webvtt("WEBVTT\n\n" + text)
    for cue in cues:
        assert "-->" not in cue.text
        assert not re.search(r"<(?!/?[biu]>)", cue.text)
    pieces = list(segment_webvtt(cues, duration_s=150.5))
    assert sum(length for length, _ in pieces) == pytest.approx(150.5)
    assert all(piece.startswith("WEBVTT\n") for _, piece in pieces)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_segment_or_are_refused(data: bytes) -> None:
    for read in (inspect_segment, avc_codec):
        try:
            read(data)
        except SegmentError:
            continue
