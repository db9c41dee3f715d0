"""Read caption files, and write WebVTT for storyboards and captions. Pure.

`read_captions` reads what people send: WebVTT or SubRip, repaired where players would repair it
(encoding, order, unknown markup), else refused with the line. `parse_webvtt` reads what ffmpeg
writes, which is neither. Regions, styles, comments and cue identifiers are left out.
"""

import html
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from webvtt.errors import MalformedCaptionError
from webvtt.models import Caption
from webvtt.vtt import parse_item

# Long enough that two hours are some dozens of files, short enough to arrive at once.
SEGMENT_S = 60.0
# Our presentations begin at zero (RFC 8216, section 3.5).
_HEADER = "WEBVTT"
_TIMESTAMP_MAP = "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000"
# The only tags ffmpeg makes of styled text; whatever else looks like one is text.
_TAG = re.compile(r"(</?[biu]>)")
_TIMES = re.compile(r"(?:(\d+):)?(\d\d):(\d\d\.\d{3}) --> (?:(\d+):)?(\d\d):(\d\d\.\d{3})")
_ARROW = "-->"
_COMMA = re.compile(r"(?<=\d),(?=\d)")
# Spans and times within a cue (WebVTT, section 6.4); other tags are dropped, as players do.
_SPAN = re.compile(r"</?(?:[biuc]|v|lang|ruby|rt)(?:[.\s][^<>&]*)?>|<\d[\d:.]*>")
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>")
# How SubRip files borrow from SubStation Alpha.
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")
_SETTING = re.compile(r"(?:line|position|size|align|vertical):[\w%.,-]+")


class CaptionsUnreadable(ValueError):
    """A caption file can't be taken; the message says where, why, and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cue:
    """A text and when it is shown; `identifier` is a line, or empty, `settings` its place."""

    start_s: float
    end_s: float
    text: str
    identifier: str = ""
    settings: str = ""

    @property
    def plain_text(self) -> str:
        """What is read, without spans and escapes."""
        return html.unescape(_SPAN.sub("", self.text))


def read_captions(data: bytes) -> list[Cue]:
    """The cues of a WebVTT or SubRip file, in their order. Raises `CaptionsUnreadable`.

    Text of cues may hold the spans of WebVTT; everything else is escaped.
    """
    lines = _decoded(data).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    is_webvtt = lines[0].startswith("WEBVTT")
    starts = [number for number, line in enumerate(lines) if _ARROW in line]
    if not starts:
        kind = "has no cues" if is_webvtt else "is neither WebVTT nor SubRip"
        raise CaptionsUnreadable(f"Line 1: this file {kind}. Send one with times and text.")
    # In SubRip, a number stands above the times of each cue.
    ends = [at - (not is_webvtt and lines[at - 1].strip().isdecimal()) for at in starts[1:]]
    found = (
        _cue(lines[start:end], where=f"Line {start + 1}, cue {number}", is_webvtt=is_webvtt)
        for number, (start, end) in enumerate(zip(starts, [*ends, len(lines)], strict=True), 1)
    )
    cues = sorted((cue for cue in found if cue.text), key=lambda cue: (cue.start_s, cue.end_s))
    if not cues:
        raise CaptionsUnreadable(f"Line {starts[0] + 1}, cue 1: no cue has any text. Write some.")
    return cues


def _decoded(data: bytes) -> str:
    """The text: Unicode, or what Windows wrote in western Europe before."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("cp1252", "replace")
    # WebVTT, section 5.1.
    return text.replace("\0", "\ufffd")


def _cue(lines: Sequence[str], *, where: str, is_webvtt: bool) -> Cue:
    """The cue of these lines, of which the first has its times."""
    times, *body = [line.strip() for line in lines]
    if is_webvtt and "" in body:
        body = body[: body.index("")]
    try:
        item = parse_item([_COMMA.sub(".", times), *filter(None, body)])
    except MalformedCaptionError:
        item = None
    if not isinstance(item, Caption):
        raise CaptionsUnreadable(
            f"{where}: its times can't be read. Write them as 00:01:02.500 --> 00:01:04.000."
        )
    start_s, end_s = (it.in_milliseconds() / 1000 for it in (item.start_time, item.end_time))
    if end_s <= start_s:
        raise CaptionsUnreadable(f"{where}: it ends before it begins. Let it end later.")
    return Cue(
        start_s=start_s,
        end_s=end_s,
        text="\n".join(filter(None, map(_clean, item.lines))),
        settings=" ".join(it for it in item.settings if _SETTING.fullmatch(it)),
    )


def _clean(line: str) -> str:
    """A line of a cue with no markup but the spans of WebVTT."""
    texts = _SPAN.split(_OVERRIDE.sub("", line))
    plain = (html.unescape(_MARKUP.sub("", it)).replace("\n", " ") for it in texts)
    spans = (*_SPAN.findall(line), "")
    return "".join(escape(text) + span for text, span in zip(plain, spans, strict=True)).strip()


def parse_webvtt(text: str) -> list[Cue]:
    """All cues of a file as ffmpeg writes it, which escapes nothing and keeps blank lines."""
    found: list[tuple[float, float, list[str]]] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if times := _TIMES.match(line):
            h1, m1, s1, h2, m2, s2 = times.groups()
            found.append((_seconds(h1, m1, s1), _seconds(h2, m2, s2), []))
        elif found and line:
            parts = (it if _TAG.fullmatch(it) else escape(it) for it in _TAG.split(line))
            found[-1][2].append("".join(parts))
    return [Cue(start_s=start, end_s=end, text="\n".join(lines)) for start, end, lines in found]


def _seconds(hours: str | None, minutes: str, seconds: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)


def escaped(text: str) -> str:
    """A text of one line as that of a cue."""
    return escape(" ".join(text.split()))


def webvtt(cues: Iterable[Cue], *, header: str = _HEADER) -> str:
    """Write a file."""
    blocks = [f"{header}\n"]
    for cue in cues:
        identifier = f"{cue.identifier}\n" if cue.identifier else ""
        times = f"{clock(cue.start_s)} --> {clock(cue.end_s)} {cue.settings}".rstrip()
        blocks.append(f"{identifier}{times}\n{cue.text}\n")
    return "\n".join(blocks)


def segment_webvtt(cues: Sequence[Cue], *, duration_s: float) -> Iterator[tuple[float, str]]:
    """Cut subtitles into segments: each one's duration and file.

    A cue on a boundary is in both segments, as HLS wants it (RFC 8216, section 3.5).
    """
    start_s = 0.0
    while start_s < duration_s:
        end_s = min(start_s + SEGMENT_S, duration_s)
        inside = [cue for cue in cues if cue.start_s < end_s and cue.end_s > start_s]
        yield end_s - start_s, webvtt(inside, header=f"{_HEADER}\n{_TIMESTAMP_MAP}")
        start_s = end_s


def clock(seconds: float) -> str:
    """A time as WebVTT writes it, such as "01:02:03.500"."""
    minutes, second = divmod(round(seconds * 1000), 60_000)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second // 1000:02}.{second % 1000:03}"
