"""Subtitles of sources: the same text at the same time in every player."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from media_recipes import COPYABLE, CORNERS, MakeMedia, card, make_card
from published import FolderSink, Publish, Published, transcode
from published_checks import check_published

from portal.transcoding.encoding import command
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import (
    Cue,
    parse_webvtt,
    segment_webvtt,
    webvtt,
)

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


async def test_each_cue_has_its_time_and_text(make_media: MakeMedia, publish: Publish) -> None:
    published = await publish(with_subtitles(make_media, "subtitled.mp4", ENGLISH, GERMAN))
    assert published.result.renditions[0].copied
    for name, cues in (("subtitles-1", ENGLISH), ("subtitles-2", GERMAN)):
        written = read((published.folder / name / "00000.vtt").read_text("utf-8"))
        escaped = {ENGLISH[0][2]: 'Fish &amp; &lt;Küsse&gt;, "100 %"'}
        assert [cue[2] for cue in written] == [escaped.get(cue[2], cue[2]) for cue in cues]
        for part in (0, 1):
            times_s = [cue[part] for cue in written]
            assert times_s == pytest.approx([cue[part] for cue in cues], abs=0.002)
    check_published(published, corners=CORNERS, in_sync=True)


async def test_a_track_that_is_too_large_is_left_out_and_noted(
    make_media: MakeMedia, sink: FolderSink, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = [(at / 10, at / 10 + 0.1, "word " * 200) for at in range(60)]
    source = with_subtitles(make_media, "one large track.mp4", large, GERMAN)
    monkeypatch.setattr(command, "MAX_SUBTITLE_BYTES", 20_000)

    result = await transcode(str(source), sink=sink, work_dir=work_dir)

    assert [each.name for each in result.of(Kind.SUBTITLES)] == ["subtitles-2"]
    assert Note.SUBTITLES_LEFT_OUT in result.output.notes
    check_published(Published(source, result, sink))


def test_a_cue_on_a_boundary_is_in_both_segments() -> None:
    cues = (
        Cue(start_s=1.0, end_s=2.5, text="one"),
        Cue(start_s=59.0, end_s=61.0, text="across\ntwo lines"),
        Cue(start_s=3600.5, end_s=3601.0, text="late"),
    )
    assert tuple(parse_webvtt(webvtt(cues))) == cues
    segments = list(segment_webvtt(cues[:2], duration_s=100.0))
    assert [length_s for length_s, _ in segments] == [60.0, 40.0]
    assert [cue[2] for cue in read(segments[0][1])] == ["one", "across\ntwo lines"]
    assert read(segments[1][1]) == [(59.0, 61.0, "across\ntwo lines")]
    assert list(segment_webvtt(cues[:2], duration_s=100.0, first=1)) == segments[1:]
    # A cue ends with the film.
    assert read(next(segment_webvtt(cues, duration_s=2.0))[1]) == [(1.0, 2.0, "one")]


@given(st.text() | st.text(alphabet="0123456789:.-> \n<b>&"))
def test_any_subtitles_are_read_and_cut(text: str) -> None:
    cues = parse_webvtt("WEBVTT\n\n" + text)
    for cue in cues:
        assert "-->" not in cue.text
        assert not re.search(r"<(?!/?[biu]>)", cue.text)
    pieces = list(segment_webvtt(cues, duration_s=150.5))
    assert sum(length for length, _ in pieces) == pytest.approx(150.5)
    assert all(piece.startswith("WEBVTT\n") for _, piece in pieces)
