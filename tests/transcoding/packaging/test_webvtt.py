"""Subtitles: what a source says is what is read, at the same time, in every player."""

import re
from pathlib import Path

import pytest
from media_recipes import COPYABLE, CORNERS, MakeMedia, card, make_card, with_subtitles
from published import FolderSink, Publish, Published, transcode
from published_checks import check_published

from portal.transcoding.encoding import command
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import Cue, parse_webvtt, segment_webvtt, webvtt

ENGLISH = (
    (0.5, 1.5, 'Fish & <Küsse>, "100 %"'),
    (2.0, 3.25, "<b>Two</b> lines,\nthe <i>second</i> one"),
    (3.9, 4.4, "across a cut"),
    (6.0, 6.9, "1 < 2 && 3 > 2"),
)
GERMAN = ((0.25, 1.0, "Grüße aus Zürich — „schön“ 🎬"), (2.5, 6.5, "Übergröße"))
SHOWN = {
    'Fish & <Küsse>, "100 %"': 'Fish &amp; &lt;Küsse&gt;, "100 %"',
    "1 < 2 && 3 > 2": "1 &lt; 2 &amp;&amp; 3 &gt; 2",
}
_TIMES = re.compile(r"^(\d\d):(\d\d):(\d\d\.\d{3}) --> (\d\d):(\d\d):(\d\d\.\d{3})$")


def srt(cues: tuple[tuple[float, float, str], ...]) -> str:
    blocks = (
        f"{number}\n{clock(start_s)} --> {clock(end_s)}\n{text}\n"
        for number, (start_s, end_s, text) in enumerate(cues, start=1)
    )
    return "\n".join(blocks)


def clock(seconds: float) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{milliseconds:03}"


def read(text: str) -> list[tuple[float, float, str]]:
    """The cues of a WebVTT file, by a parser of this test's own."""
    found: list[tuple[float, float, str]] = []
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if times := _TIMES.match(lines[0]):
            values = [float(part) for part in times.groups()]
            starts = values[0] * 3600 + values[1] * 60 + values[2]
            ends = values[3] * 3600 + values[4] * 60 + values[5]
            found.append((starts, ends, "\n".join(lines[1:])))
    return found


@pytest.fixture
async def subtitled(make_media: MakeMedia, publish: Publish) -> Published:
    plain = make_card(make_media, "card.mp4")
    named = ("-metadata:s:s:0", "language=eng", "-metadata:s:s:1", "language=deu")
    texts = (srt(ENGLISH), srt(GERMAN))
    return await publish(with_subtitles(make_media, "subtitled.mp4", plain, *texts, options=named))


async def test_each_cue_has_its_time_and_text(subtitled: Published) -> None:
    for name, cues in (("subtitles-1", ENGLISH), ("subtitles-2", GERMAN)):
        text = (subtitled.folder / name / "00000.vtt").read_text("utf-8")
        written = read(text)
        assert [cue[2] for cue in written] == [SHOWN.get(words, words) for _, _, words in cues]
        for (start_s, end_s, _), (expected_start_s, expected_end_s, _) in zip(
            written, cues, strict=True
        ):
            assert start_s == pytest.approx(expected_start_s, abs=0.002)
            assert end_s == pytest.approx(expected_end_s, abs=0.002)
    check_published(subtitled, corners=CORNERS, in_sync=True)


async def test_a_copied_top_has_subtitles_too(make_media: MakeMedia, publish: Publish) -> None:
    plain = make_card(make_media, "to be copied.mp4", *COPYABLE, picture=card(size="320x180"))
    source = with_subtitles(make_media, "copied and subtitled.mp4", plain, srt(GERMAN))
    published = await publish(source)
    assert published.result.renditions[0].copied
    words = read((published.folder / "subtitles-1" / "00000.vtt").read_text("utf-8"))
    assert [cue[2] for cue in words] == [text for _, _, text in GERMAN]
    check_published(published, corners=CORNERS, in_sync=True)


async def test_a_track_that_is_too_large_is_left_out_and_noted(
    make_media: MakeMedia, sink: FolderSink, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = make_card(make_media, "card.mp4")
    large = srt(tuple((at / 10, at / 10 + 0.1, "word " * 200) for at in range(60)))
    source = with_subtitles(make_media, "one large track.mp4", plain, large, srt(GERMAN))
    monkeypatch.setattr(command, "MAX_SUBTITLE_BYTES", 20_000)

    result = await transcode(str(source), sink=sink, work_dir=work_dir)

    assert [each.name for each in result.of(Kind.SUBTITLES)] == ["subtitles-2"]
    assert Note.SUBTITLES_LEFT_OUT in result.notes
    assert not (sink.folder / "subtitles-1").exists()
    check_published(Published(source, result, sink), corners=CORNERS, in_sync=True)


CUES = (
    Cue(start_s=1.0, end_s=2.5, text="one"),
    Cue(start_s=59.0, end_s=61.0, text="across\ntwo lines"),
    Cue(start_s=3600.5, end_s=3601.0, text="late"),
)


def test_what_is_written_is_read_again() -> None:
    assert tuple(parse_webvtt(webvtt(CUES))) == CUES


def test_a_cue_on_a_boundary_is_in_both_segments() -> None:
    segments = list(segment_webvtt(CUES[:2], duration_s=100.0))
    assert [length_s for length_s, _ in segments] == [60.0, 40.0]
    assert [cue[2] for cue in read(segments[0][1])] == ["one", "across\ntwo lines"]
    assert read(segments[1][1]) == [(59.0, 61.0, "across\ntwo lines")]


@pytest.mark.parametrize(
    "text",
    [
        "WEBVTT\n\n00:01.000 --> 00:02.000\nshort clock\n",
        "WEBVTT\r\n\r\nid 7\r\n00:00:01.000 --> 00:00:02.000 line:0\r\nshort clock\r\n",
        "WEBVTT\n\nNOTE nothing\n\n00:00:01.000 --> 00:00:02.000\nshort clock",
    ],
)
def test_the_forms_a_cue_may_have_are_read(text: str) -> None:
    assert parse_webvtt(text) == [Cue(start_s=1.0, end_s=2.0, text="short clock")]
