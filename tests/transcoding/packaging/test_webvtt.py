"""Subtitles of sources: the same text at the same time in every player."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from media_recipes import COPYABLE, CORNERS, MakeMedia, card, make_card
from published import FolderSink, Published, Studio, transcode
from published_checks import check_published

from portal.transcoding.encoding import command
from portal.transcoding.encoding.assembly import put_captions
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import Cue, parse_webvtt, segment_webvtt, subrip, webvtt

ENGLISH = (
    (0.5, 1.5, 'Fish & <Küsse>, "100 %"'),
    (2.0, 3.25, "<b>Two</b> lines,\nthe <i>second</i> one"),
    (3.9, 4.4, "across a cut"),
)
GERMAN = ((0.25, 1.0, "Grüße aus Zürich — „schön“ 🎬"), (2.5, 6.5, "Übergröße"))
_TIMES = re.compile(r"^(\d\d):(\d\d):(\d\d\.\d{3}) --> (\d\d):(\d\d):(\d\d\.\d{3})$")


def with_subtitles(
    make_media: MakeMedia, name: str, *tracks: Sequence[tuple[float, float, str]]
) -> Path:
    """Return a copyable film with a subtitle track for each list of cues."""
    plain = make_card(make_media, "to be copied.mp4", *COPYABLE, picture=card(size="320x180"))
    inputs = ["-i", str(plain)]
    maps = ["-map", "0"]
    for number, cues in enumerate(tracks, start=1):
        file = plain.with_name(f"{name} {number}.srt")
        blocks = (
            f"{n}\n{clock(a)} --> {clock(b)}\n{text}\n" for n, (a, b, text) in enumerate(cues)
        )
        file.write_text("\n".join(blocks), encoding="utf-8")
        inputs += ["-i", str(file)]
        maps += ["-map", str(number)]
    return make_media(name, *inputs, *maps, "-c", "copy", "-c:s", "mov_text")


def clock(seconds: float) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"00:00:{whole:02},{milliseconds:03}"


def read(text: str) -> list[tuple[float, float, str]]:
    """Return the cues of a WebVTT file, by an independent parser."""
    cues: list[tuple[float, float, str]] = []
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if times := _TIMES.match(lines[0]):
            h1, m1, s1, h2, m2, s2 = (float(part) for part in times.groups())
            span_s = (h1 * 3600 + m1 * 60 + s1, h2 * 3600 + m2 * 60 + s2)
            cues.append((*span_s, "\n".join(lines[1:])))
    return cues


async def test_each_cue_has_its_time_and_text(studio: Studio) -> None:
    published = await studio.publish(with_subtitles(studio.make, "subtitled.mp4", ENGLISH, GERMAN))
    assert published.result.renditions[0].copied
    for name, cues in (("subtitles-1", ENGLISH), ("subtitles-2", GERMAN)):
        written = read((published.folder / name / "00000.vtt").read_text("utf-8"))
        escaped = {ENGLISH[0][2]: 'Fish &amp; &lt;Küsse&gt;, "100 %"'}
        assert [cue[2] for cue in written] == [escaped.get(cue[2], cue[2]) for cue in cues]
        for part in (0, 1):
            times_s = [cue[part] for cue in written]
            assert times_s == pytest.approx([cue[part] for cue in cues], abs=0.002)
    check_published(published, corners=CORNERS, in_sync=True)


@pytest.mark.parametrize("text", ["word " * 200, "< " * 100], ids=["words", "escapes"])
async def test_a_track_that_is_too_large_is_left_out_and_noted(
    text: str,
    make_media: MakeMedia,
    sink: FolderSink,
    work_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = [(at / 10, at / 10 + 0.1, text) for at in range(60)]
    source = with_subtitles(make_media, f"large {len(text)}.mp4", large, GERMAN)
    monkeypatch.setattr(command, "MAX_SUBTITLE_BYTES", 20_000)

    result = await transcode(source, sink=sink, work_dir=work_dir)

    assert [each.name for each in result.of(Kind.SUBTITLES)] == ["subtitles-2"]
    assert Note.SUBTITLES_LEFT_OUT in result.output.notes
    check_published(Published(source, result, sink))


async def test_telemetry_is_left_out_and_noted(studio: Studio) -> None:
    readings = [(at / 2, at / 2 + 0.5, f"GPS({at}.1234, 20.5, 19) H {at}.0m") for at in range(8)]
    by_text = await studio.publish(with_subtitles(studio.make, "flight.mp4", readings, ENGLISH))
    assert [each.name for each in by_text.result.of(Kind.SUBTITLES)] == ["subtitles-2"]
    assert by_text.result.output.notes == (Note.TELEMETRY_LEFT_OUT,)
    files = [path for path in by_text.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"GPS" in path.read_bytes()]

    speech = with_subtitles(studio.make, "speech.mp4", ENGLISH)
    name = ("-metadata:s:s:0", "handler_name=FC Telemetry")
    by_name = await studio.publish(
        studio.make("named.mp4", "-i", str(speech), "-map", "0", "-c", "copy", *name)
    )
    assert by_name.result.of(Kind.SUBTITLES) == []
    assert by_name.result.output.notes == (Note.TELEMETRY_LEFT_OUT,)


def test_a_cue_on_a_boundary_is_in_both_segments() -> None:
    cues = (
        Cue(start_s=1.0, end_s=2.5, text="one"),
        Cue(start_s=59.0, end_s=61.0, text="across\ntwo lines"),
        Cue(start_s=3600.5, end_s=3601.0, text="late"),
    )
    assert tuple(parse_webvtt(webvtt(cues))) == cues
    segments = list(segment_webvtt(cues[:2], intervals=[(0.0, 100.0)]))
    assert [cue[2] for cue in read(segments[0])] == ["one", "across\ntwo lines"]
    assert read(segments[1]) == [(59.0, 61.0, "across\ntwo lines")]
    assert list(segment_webvtt(cues[:2], intervals=[(0.0, 100.0)], first=1)) == segments[1:]
    # A cue ends with the film.
    assert read(next(segment_webvtt(cues, intervals=[(0.0, 2.0)]))) == [(1.0, 2.0, "one")]


async def test_segments_of_a_cut_film_begin_with_its_intervals() -> None:
    files: dict[str, str] = {}

    async def put(name: str, data: bytes) -> None:
        files[name] = data.decode()

    cues = [
        Cue(start_s=5.0, end_s=15.0, text="begins before"),
        Cue(start_s=69.0, end_s=71.0, text="across"),
        Cue(start_s=99.0, end_s=301.0, text="over the removed part"),
        Cue(start_s=200.0, end_s=201.0, text="removed"),
    ]
    # The length of the second interval is 60 s but for the last digit.
    intervals = [(10.0, 100.0), (300.1, 360.1)]
    segments = await put_captions(cues, put, intervals=intervals)
    assert [segment.duration_s for segment in segments] == pytest.approx([60.0, 30.0, 60.0])
    assert [segment.is_discontinuous for segment in segments] == [False, False, True]
    assert files["playlist.m3u8"].index("DISCONTINUITY") > files["playlist.m3u8"].index("00001")
    begins, across = (10.0, 15.0, "begins before"), (69.0, 71.0, "across")
    assert read(files["00000.vtt"]) == [begins, across]
    assert read(files["00001.vtt"]) == [across, (99.0, 100.0, "over the removed part")]
    assert read(files["00002.vtt"]) == [(300.1, 301.0, "over the removed part")]


@given(st.text() | st.text(alphabet="0123456789:.-> \n<b>&"))
def test_any_subtitles_are_read_and_cut(text: str) -> None:
    cues = parse_webvtt("WEBVTT\n\n" + text)
    for cue in cues:
        assert "-->" not in cue.text
        assert not re.search(r"<(?!/?[biu]>)", cue.text)
    pieces = list(segment_webvtt(cues, intervals=[(0.0, 150.5)]))
    assert len(pieces) == 3
    assert all(piece.startswith("WEBVTT\n") for piece in pieces)


def test_subrip_has_plain_text() -> None:
    first = "00:01.500 --> 01:00:02.000\n<i>A</i> & B\nC"
    cues = parse_webvtt(f"WEBVTT\n\n{first}\n\n00:03.000 --> 00:04.000\nD")
    assert subrip(cues) == (
        "1\n00:00:01,500 --> 01:00:02,000\nA & B\nC\n\n2\n00:00:03,000 --> 00:00:04,000\nD\n"
    )
