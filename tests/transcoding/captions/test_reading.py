"""Caption files from other programs: read as their authors meant, with warnings."""

# ruff: noqa: RUF001 - texts in many scripts

from contextlib import suppress
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.transcoding.captions.decoding import CHARSETS, known_charset
from portal.transcoding.captions.faults import (
    MAX_CUES,
    MAX_FILE_BYTES,
    MAX_WARNINGS,
    CaptionsUnreadable,
    EncodingUncertain,
)
from portal.transcoding.captions.reading import CaptionContents, ReadOptions, read_captions
from portal.transcoding.packaging.webvtt import Cue, read_webvtt, webvtt

FIRST = "00:00:01,000 --> 00:00:02,000"


def read(text: str, **options: object) -> CaptionContents:
    return read_captions(text.encode(), ReadOptions(**options))  # type: ignore[arg-type]


def times(file: CaptionContents) -> list[tuple[float, float]]:
    return [(cue.start_s, cue.end_s) for cue in file.cues]


def texts(file: CaptionContents) -> list[str]:
    return [cue.text for cue in file.cues]


def warnings(file: CaptionContents) -> list[tuple[str, int | None]]:
    return [(warning.code.value, warning.line) for warning in file.warnings]


PLAIN = {
    "two carriage returns": f"1\n{FIRST}\nGrüße\n".replace("\n", "\r\r\n").encode(),
    "UTF-8 with a mark": ("\ufeff1\n" + FIRST + "\nGrüße").encode(),
    "UTF-16": ("1\n" + FIRST + "\nGrüße").encode("utf-16"),
    "UTF-16 without a mark": ("1\n" + FIRST + "\nGrüße").encode("utf-16-be"),
    "no number, no empty line": f"{FIRST}\nGrüße\n00:00:03.000 --> 00:00:04.000\n".encode(),
    "short times": b"WEBVTT\n\n0:1.0 --> 0:2.0\nGr\xc3\xbc\xc3\x9fe",
    "markup of players": f"1\n{FIRST}\n{{\\b1}}<font color=red>Grüße</font>".encode(),
    "backward": f"WEBVTT\n\n00:09.000 --> 00:10.000\n \n\n{FIRST}\nGr&uuml;&szlig;e".encode(),
    "comments, styles, regions": (
        "WEBVTT - a title\nKind: captions\n\nNOTE\n00:05.000 --> 00:06.000\nnothing\n\n"
        "STYLE\n::cue { color: red }\n\nNOTE 00:07.000 --> 00:08.000\n\n"
        f"REGION\nid:a\n\nid 1\n{FIRST} region:a\nGrüße\n"
    ).encode(),
    "a name above the times": (
        f"WEBVTT\n\n00:00.000 --> 00:00.500\n\n \nname\n{FIRST}\nGrüße".encode()
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_files_are_read_without_warnings(name: str) -> None:
    file = read_captions(PLAIN[name])
    assert file.cues == (Cue(start_s=1.0, end_s=2.0, text="Grüße"),)
    assert not file.warnings


def test_cues_keep_their_order_overlaps_places_and_spans() -> None:
    text = (
        "WEBVTT\n\n00:03.000 --> 00:05.000\nlater\n\n"
        "00:01.000 --> 00:04.000 line:0 align:start x:1\n"
        "<v Ann>Hello</v> <i>you</i>\n<script>alert(1)</script> 2 < 3 &amp; 4 <00:02.000>now\n"
    )
    first, later = read(text).cues
    assert (first.settings, later.text) == ("line:0 align:start", "later")
    spans = "<v Ann>Hello</v> <i>you</i>\nalert(1) 2 &lt; 3 &amp; 4 <00:02.000>now"
    assert first.text == spans
    assert first.plain_text == "Hello you\nalert(1) 2 < 3 & 4 now"
    assert read_webvtt(webvtt([first, later])) == [first, later]


SENTENCES = {
    "zh": ("gb18030", "各位好，欢迎来到这里。今天我们来谈谈视频发布。"),
    "zh-Hant": ("big5", "各位好，歡迎來到這裡。今天我們來談談影片發布。"),
    "ja": ("shift_jis", "こんにちは、皆さん。今日は動画配信についてお話しします。"),
    "ja-JP": ("euc-jp", "こんにちは、皆さん。今日は動画配信についてお話しします。"),
    "ja-x-tv": ("shift_jis", "(ﾅﾚｰｼｮﾝ)こんにちは、皆さん。今日は動画配信についてお話しします。"),
    "zh-x-lyrics": ("gb18030", "こんにちは、皆さん。大家好，欢迎来到这里。"),
    "ko-x-hanja": ("euc-kr", "大韓의 오늘은 동영상 게시에 대해 이야기합니다."),
    "ko": ("euc-kr", "안녕하세요 여러분. 오늘은 동영상 게시에 대해 이야기합니다."),
    "ru": ("windows-1251", "Здравствуйте, друзья. Сегодня мы поговорим о видео."),
    "uk": ("koi8-u", "Вітаю, друзі. Сьогодні ми поговоримо про відео."),
    "pl": ("windows-1250", "Dzień dobry. Dziś porozmawiamy o publikowaniu wideo, żółć i łąka."),
    "cs": ("iso-8859-2", "Dobrý den všem. Dnes budeme mluvit o zveřejňování videa, žluťoučký."),
    "el": ("windows-1253", "Γεια σας σε όλους. Σήμερα θα μιλήσουμε για το βίντεο."),
    "tr": ("windows-1254", "Herkese merhaba. Bugün video yayınlama hakkında konuşacağız."),
    "he": ("windows-1255", "שלום לכולם. היום נדבר על פרסום סרטונים."),
    "ar": ("windows-1256", "مرحبا بالجميع. سنتحدث اليوم عن نشر الفيديو."),
    "lt": ("windows-1257", "Sveiki visi. Šiandien kalbėsime apie vaizdo įrašų skelbimą."),
    "th": ("windows-874", "สวัสดีทุกคน วันนี้เราจะพูดถึงการเผยแพร่วิดีโอ"),
    "fr": ("windows-1252", "Bonjour à tous. Aujourd’hui, ça va être très intéressant."),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_encoding_is_detected_with_the_language_as_a_hint(language: str) -> None:
    charset, sentence = SENTENCES[language]
    data = f"1\n{FIRST}\n{sentence}\n".encode(CHARSETS[charset])
    file = read_captions(data, ReadOptions(language=language))
    assert (texts(file), file.charset) == ([sentence], charset)
    assert warnings(file) == [("encoding_detected", None)]
    assert charset in file.warnings[0].message
    named = read_captions(data, ReadOptions(charset=charset))
    assert (texts(named), warnings(named)) == ([sentence], [])


@pytest.mark.parametrize("language", ["ru", "zh", "el", "tr", "ja"])
def test_uncertain_encoding_is_refused_with_the_candidates(language: str) -> None:
    charset, sentence = SENTENCES[language]
    data = f"1\n{FIRST}\n{sentence}\n".encode(CHARSETS[charset])
    with pytest.raises(EncodingUncertain) as refused:
        read_captions(data, ReadOptions(language="en"))
    assert charset in refused.value.candidates


@pytest.mark.parametrize(
    ("name", "charset"),
    [
        ("Windows-1251", "windows-1251"),
        ("gbk", "gb18030"),
        ("latin-1", "windows-1252"),
        ("sjis", "shift_jis"),
        ("UTF8", "utf-8"),
        (" euc_kr ", "euc-kr"),
        ("mac-roman", "macintosh"),
        *((name, None) for name in ("punycode", "rot13", "x\0", "", "zlib")),
    ],
)
def test_encodings_are_known_by_all_their_names(name: str, charset: str | None) -> None:
    assert known_charset(name) == charset


@pytest.mark.parametrize("tail", [b"\n", b""])
def test_one_bad_byte_of_utf8_is_one_bad_character(tail: bytes) -> None:
    whole = f"1\n{FIRST}\n{SENTENCES['zh'][1]}".encode()
    data = whole[:-1] + b"\xff" + tail if tail else whole[:-1]
    file = read_captions(data, ReadOptions(language="zh"))
    assert texts(file) == [SENTENCES["zh"][1][:-1] + "\ufffd" * (2 if tail else 1)]
    assert warnings(file) == [("characters_replaced", 3)]


@pytest.mark.parametrize(
    ("line", "start_s", "end_s"),
    [
        ("00:00:01 --> 00:00:02", 1.0, 2.0),
        ("00:00:01:500 --> 00:00:02:250", 1.5, 2.25),
        ("\u202b00:00:01,500 --> 00:00:02,000\u200f", 1.5, 2.0),
        ("7 00:00:01,500 --> 00:00:02,000", 1.5, 2.0),
        ("[00:01.500 --> 00:02.000]", 1.5, 2.0),
        ("00:00:01，500 --> 00:00:02，000", 1.5, 2.0),
        ("00：00：01．500 --> 00：00：02．000", 1.5, 2.0),
        ("00: 00: 01, 500-->00 :00:02 ,000", 1.5, 2.0),
        ("00:00:01,500 –> 00:00:02,000", 1.5, 2.0),
        ("00:00:01,500 —> 00:00:02,000", 1.5, 2.0),
        ("00:00:01,500 -> 00:00:02,000", 1.5, 2.0),
        ("00:00:01,500 → 00:00:02,000", 1.5, 2.0),
        ("00:00:01,500 -- > 00:00:02,000", 1.5, 2.0),
        ("00:00:01,500 --&gt; 00:00:02,000", 1.5, 2.0),
        ("00:00:01,500.25 --> 00:00:02,000.5", 1.5, 2.0),
        ("00:00:01,4999999 --> 00:00:02,5", 1.4999999, 2.5),
        ("00:00:01,500 --> 00:00:02,000  X1:040 X2:600 Y1:1 Y2:2", 1.5, 2.0),
        ("0:00:01.500,0:00:02.000", 1.5, 2.0),
    ],
)
def test_times_are_read_however_they_are_written(line: str, start_s: float, end_s: float) -> None:
    file = read(f"1\n{line}\nText\n\n2\n00:00:03,000 --> 00:00:04,000\nNext")
    assert times(file) == [(start_s, end_s), (3.0, 4.0)]
    assert texts(file) == ["Text", "Next"]
    assert not file.warnings


def test_a_text_beside_its_times_is_kept() -> None:
    text = "[00:01.500 --> 00:02.000]  Hello there.\n[00:02.000 --> 00:03.000]  1:30 it is.\n"
    assert texts(read(text)) == ["Hello there.", "1:30 it is."]


def test_times_in_frames_have_a_warning() -> None:
    file = read("1\n00:00:01:05 --> 00:00:02;10\nText")
    assert times(file) == [(1.2, 2.4)]
    assert warnings(file) == [("cue_changed", 2)]
    assert "25 frames a second" in file.warnings[0].message


def test_only_a_line_of_times_begins_a_cue() -> None:
    text = f"1\n{FIRST}\n<!-- a --> b\nx -> y\n\n2\n00:00:03,000 --> 00:00:04,000\n10 --> 20\n"
    assert texts(read(text)) == ["&lt;!-- a --&gt; b\nx -&gt; y", "10 --&gt; 20"]


@pytest.mark.parametrize(
    ("cues", "read_s", "codes"),
    [
        # Whisper writes cues without a length, which last until the next one.
        ([(1, 1), (1.5, 3)], [(1, 1.5), (1.5, 3)], [("cue_changed", 2)]),
        ([(2, 1), (9, 10)], [(2, 7), (9, 10)], [("cue_changed", 2)]),
        ([(1, 2), (3, 3)], [(1, 2), (3, 5)], [("cue_changed", 6)]),
        (
            [(1, 1), (1, 1), (2, 3)],
            [(1, 2), (1, 2), (2, 3)],
            [("cue_changed", 2), ("cue_changed", 6)],
        ),
        ([(-1.5, 1), (2, 3)], [(0, 1), (2, 3)], [("cue_changed", 2)]),
        ([(-3, -1), (2, 3)], [(2, 3)], [("cue_skipped", 2)]),
    ],
)
def test_times_without_a_length_are_repaired_with_a_warning(
    cues: list[tuple[float, float]], read_s: list[tuple[float, float]], codes: list[tuple[str, int]]
) -> None:
    def clock(seconds: float) -> str:
        return f"{'-' * (seconds < 0)}00:00:{abs(seconds):06.3f}".replace(".", ",")

    blocks = [
        f"{n}\n{clock(start)} --> {clock(end)}\nText\n" for n, (start, end) in enumerate(cues, 1)
    ]
    file = read("\n".join(blocks))
    assert times(file) == read_s
    assert warnings(file) == codes


def test_unreadable_cues_are_left_out_with_a_warning() -> None:
    text = f"1\n{FIRST}\nx\n\n2\n00:00:03,000 --> later\ny\n\n3\n00:00:05,000 --> 00:00:06,000\nz"
    file = read(text)
    assert texts(file) == ["x", "z"]
    assert warnings(file) == [("cue_skipped", 6)]
    many = read(f"{text}\n" + "\n00:07 --> never\nw\n" * 500)
    assert len(many.warnings) == MAX_WARNINGS
    assert many.warnings[-1].message == "402 more cues were changed or left out."


@pytest.mark.parametrize(
    ("tag", "settings"),
    [
        ("an8", "line:0"),
        ("an7", "line:0 align:start"),
        ("fs20\\an6", "line:50% align:end"),
        ("an2", ""),
    ],
)
def test_places_of_substation_alpha_are_kept(tag: str, settings: str) -> None:
    [cue] = read(f"1\n{FIRST}\n{{\\{tag}}}Above").cues
    assert (cue.text, cue.settings) == ("Above", settings)


ROLLING = """WEBVTT
Kind: captions

00:00:00.500 --> 00:00:02.000 align:start position:0%
\x20
hello<00:00:00.900><c> everybody</c>

00:00:02.000 --> 00:00:02.010 align:start position:0%
hello everybody
\x20

00:00:02.010 --> 00:00:04.000 align:start position:0%
hello everybody
welcome<00:00:02.500><c> back</c>

00:00:04.000 --> 00:00:04.010 align:start position:0%
welcome back
\x20
"""


def test_rolling_captions_are_collapsed() -> None:
    file = read(ROLLING)
    assert file.cues == (
        Cue(start_s=0.5, end_s=2.0, text="hello everybody"),
        Cue(start_s=2.01, end_s=4.0, text="welcome back"),
    )
    assert warnings(file) == [("rolling_collapsed", None)]
    # Television rolls line by line; people who repeat themselves don't roll.
    rows = ["a", "a\nb", "b\nc", "c\nd"]
    blocks = [f"00:0{n}.000 --> 00:0{n + 1}.000\n{text}\n" for n, text in enumerate(rows)]
    assert texts(read("\n".join(blocks))) == ["a", "b", "c", "d"]
    blocks = [f"00:0{n}.000 --> 00:0{n + 1}.000\nLa la la\n" for n in range(4)]
    assert texts(read("\n".join(blocks))) == ["La la la"] * 4


@pytest.mark.parametrize(("hours", "shift_s"), [(1, -3600.0), (10, -36_000.0), (0, -90.5)])
def test_captions_after_the_end_come_with_a_shift(hours: int, shift_s: float) -> None:
    at = (
        "00:01:30,500 --> 00:01:32,000"
        if hours == 0
        else f"{hours:02}:00:00,500 --> {hours:02}:00:02,000"
    )
    late = read(f"1\n{at}\nText", duration_s=6.0)
    assert late.suggested_shift_s == shift_s
    assert warnings(late) == [("after_end", 2)]
    assert f"{shift_s:g} s" in late.warnings[0].message
    shifted = read(f"1\n{at}\nText", duration_s=6.0, shift_s=shift_s)
    assert shifted.cues[0].start_s == (0.0 if hours == 0 else 0.5)
    assert warnings(shifted) == [("shifted", None)]
    two_hours = "1\n01:00:05,000 --> 01:00:06,000\nText\n\n2\n02:59:00,000 --> 02:59:01,000\nText"
    assert read(two_hours, duration_s=7200.0).suggested_shift_s == -3600
    some = read(f"1\n{FIRST}\nText\n\n2\n{at}\nText", duration_s=6.0)
    assert (some.suggested_shift_s, warnings(some)) == (None, [("after_end", 6)])


SBV = "0:00:00.500,0:00:02.000\nFirst,[br]second.\n\n0:00:02.100,0:00:03.500\nThird.\n"
TTML = """<?xml version="1.0" encoding="{encoding}"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter"
    ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001" ttp:tickRate="10000000">
  <head><metadata><title>x</title></metadata></head>
  <body><div begin="1s">
    <p begin="00:00:00.500" end="00:00:02:15">Fish &amp;
      <span>chips</span>,<br/>a &lt;b&gt;.</p>
    <p><span begin="30000000t" dur="500ms">één</span><span begin="5s" end="6s">two</span></p>
    <p begin="7s" end="8s"/>
  </div></body>
</tt>"""


def test_other_formats_are_read() -> None:
    assert texts(read(SBV)) == ["First,\nsecond.", "Third."]
    for encoding in ("utf-8", "iso-8859-1", "utf-16"):
        file = read_captions(TTML.replace("{encoding}", encoding).encode(encoding))
        assert texts(file) == ["Fish &amp; chips,\na &lt;b&gt;.", "één", "two"]
        assert times(file) == [
            (1.5, pytest.approx(3 + 15 * 1.001 / 30, abs=0.001)),
            (4.0, 4.5),
            (6.0, 7.0),
        ]
        assert not file.warnings
    # Some programs convert a file to UTF-8, but keep its declaration of UTF-16.
    file = read_captions(TTML.replace("{encoding}", "utf-16").encode())
    assert texts(file)[1] == "één"
    without_end = '<tt xmlns="x"><body><p begin="1s">a</p><p begin="2s">b</p></body></tt>'
    assert times(read(without_end)) == [(1.0, 2.0), (2.0, 4.0)]


BOMB = '<!DOCTYPE tt [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><tt><p begin="1s" end="2s">&b;</p></tt>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Line 1: this file is none of"),
        ("WEBVTT\n\nNOTE nothing", "Line 1: this file has no cues."),
        (f"1\n{FIRST}\n\n", "Line 2: no cue has any text."),
        ("1\n00:00:03,000 --> later\ny", "Line 2: the times of this cue can't"),
        (
            f"1\n{'9' * 5000}:00:01,000 --> {'9' * 5000}:00:02,000\nx",
            "Line 1: this file is none of",
        ),
        ("1\n-00:00:03,000 --> -00:00:02,000\ny", "Line 1: all cues end before the video"),
        (BOMB, "Line 1: this XML file has a DOCTYPE"),
        ("<tt><body>\n<p>&nbsp;</p></body></tt>", "Line 2: this file is not well-formed XML"),
        ("<?xml version='1.0'?><html/>", "Line 1: this XML file isn't TTML."),
        ("<tt>" + "<p>" * 200, "Line 1: this XML file is nested too deeply."),
        ("<tt/>", "Line 1: this file has no cues."),
        ("00:00 -> 00:01\nx\n" * (MAX_CUES + 1), "Send at most 36,000 cues"),
        ("<tt>" + "<p begin='1s' end='2s'>x</p>" * (MAX_CUES + 1) + "</tt>", "Send at most 36,000"),
        ("x" * (MAX_FILE_BYTES + 1), "Send at most 36,000 cues, in a file of at most 4 MiB."),
        (f"{FIRST}\n{'<' * 1_100_000}", "As WebVTT in UTF-8, the text of these cues has more"),
    ],
)
def test_files_without_captions_are_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(CaptionsUnreadable) as refused:
        read(text)
    assert str(refused.value).startswith(words)


def test_cues_that_fill_every_segment_are_refused() -> None:
    long = "".join(
        f"\n{n}\n00:00:00,000 --> 99:00:00,000\nsome text of a cue\n" for n in range(9000)
    )
    with pytest.raises(CaptionsUnreadable) as refused:
        read(long)
    assert str(refused.value).startswith("Line 3: too many cues are shown at the same time")
    assert len(read(long, duration_s=600.0).cues) == 9000, "it's the film's length that counts"
    assert read(f"1\n{FIRST.replace('00:00:02', '99:00:00')}\nA watermark").cues


MANY_LINES = "a\n" * 150_000


@pytest.mark.parametrize(
    "text",
    [
        " " * 1_000_000 + "<tt/>",
        f"{FIRST}\n{MANY_LINES}b\n00:00:02,000 --> 00:00:03,000\n{MANY_LINES}",
        f"{FIRST}\n{'{' * 300_000}{'</b ' * 100_000}{'&#' * 100_000}",
        f"{'00:' * 90}\n" * 3_000,
    ],
    ids=["spaces", "lines", "markup", "times"],
)
def test_hostile_files_take_no_time(text: str) -> None:
    begun = process_time()
    with suppress(CaptionsUnreadable):
        read(text)
    assert process_time() - begun < 5, "what is quadratic takes minutes"


def test_references_to_no_character_are_no_failure() -> None:
    [cue] = read(f"1\n{FIRST}\nx&#{'9' * 5000};&#x{'f' * 5000};&#65;").cues
    assert cue.plain_text == "x\ufffd\ufffdA"


@given(st.binary() | st.text(alphabet="0123456789:,.->\n <bv/>&;{}\\p").map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for head in (b"", f"1\n{FIRST}\n".encode(), b"<tt><p begin='1s' end='2s'>"):
        try:
            file = read_captions(head + data, ReadOptions(language="ja", duration_s=60.0))
        except CaptionsUnreadable:
            continue
        assert all(0 <= cue.start_s < cue.end_s for cue in file.cues)
        assert read_webvtt(webvtt(file.cues)) == [
            Cue(
                start_s=round(cue.start_s, 3),
                end_s=round(cue.end_s, 3),
                text=cue.text,
                settings=cue.settings,
            )
            for cue in file.cues
        ]
