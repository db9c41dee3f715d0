"""Write WebVTT for storyboards and captions, and read it again; write SubRip. Pure.

`read_webvtt` reads the files that `webvtt` writes, `parse_webvtt` the output of ffmpeg, which isn't
quite WebVTT. Files that people send are read in `transcoding.captions`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil
from typing import NamedTuple
from xml.sax.saxutils import escape

from portal.text import unescaped

# Length of caption segments: two hours make some dozens of files, and each arrives at once.
SEGMENT_S = 60.0
# Sums of times aren't exact, so a shorter rest is no segment.
_LEAST_SEGMENT_S = 0.001
_HEADER = "WEBVTT"
# Times of cues are those of the media in segments of video and sound (RFC 8216, section 3.5). With
# 0 instead of one tick of 11 µs, hls.js takes them for times since the last discontinuity if it
# gets a segment of captions before those of the media.
_TIMESTAMP_MAP = "X-TIMESTAMP-MAP=MPEGTS:1,LOCAL:00:00:00.000"
# The only tags that ffmpeg makes of styled text; anything else in angle brackets is text.
_TAG = re.compile(r"(</?[biu]>)")
_TIMES = re.compile(r"(?:(\d{1,9}):)?(\d\d):(\d\d\.\d{3}) --> (?:(\d{1,9}):)?(\d\d):(\d\d\.\d{3})")
# Spans and times within a cue (WebVTT, section 6.4); other tags are dropped, as players do.
SPAN = re.compile(r"</?(?:[biuc]|v|lang|ruby|rt)(?:[.\s][^<>&]*)?>|<\d[\d:.]*>")
MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cue:
    """Text with its times; `settings` has its place, and `identifier` may be empty."""

    start_s: float
    end_s: float
    text: str
    identifier: str = ""
    settings: str = ""

    @property
    def plain_text(self) -> str:
        """Return the text without spans and escapes."""
        return unescaped(SPAN.sub("", self.text))


def read_webvtt(text: str) -> list[Cue]:
    """Return the cues of a file that `webvtt` wrote, without identifiers."""
    cues: list[Cue] = []
    for block in text.split("\n\n"):
        head, _, body = block.strip("\n").partition("\n")
        times = _TIMES.match(head)
        if times and body:
            settings = head[times.end() :].strip()
            cues.append(_cue_at(times, text=body, settings=settings))
    return cues


def parse_webvtt(text: str) -> list[Cue]:
    """Return the cues of a file by ffmpeg, which escapes nothing and keeps blank lines."""
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if times := _TIMES.match(line):
            blocks.append((times, []))
        elif blocks and line:
            parts = (part if _TAG.fullmatch(part) else escape(part) for part in _TAG.split(line))
            blocks[-1][1].append("".join(parts))
    return [_cue_at(times, text="\n".join(lines)) for times, lines in blocks]


def _cue_at(times: re.Match[str], *, text: str, settings: str = "") -> Cue:
    hours_1, minutes_1, seconds_1, hours_2, minutes_2, seconds_2 = times.groups()
    return Cue(
        start_s=_seconds(hours_1, minutes_1, seconds_1),
        end_s=_seconds(hours_2, minutes_2, seconds_2),
        text=text,
        settings=settings,
    )


def _seconds(hours: str | None, minutes: str, seconds: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)


def escaped(text: str) -> str:
    """Return a text as one line of a cue."""
    return escape(" ".join(text.split()))


def webvtt(cues: Iterable[Cue], *, header: str = _HEADER) -> str:
    """Write cues as a WebVTT file."""
    blocks = [f"{header}\n"]
    for cue in cues:
        identifier = f"{cue.identifier}\n" if cue.identifier else ""
        times = f"{clock(cue.start_s)} --> {clock(cue.end_s)} {cue.settings}".rstrip()
        blocks.append(f"{identifier}{times}\n{cue.text}\n")
    return "\n".join(blocks)


def subrip(cues: Iterable[Cue]) -> str:
    """Write cues as a SubRip file, which has text without escapes, styles and places."""
    blocks = []
    for number, cue in enumerate(cues, 1):
        times = f"{clock(cue.start_s)} --> {clock(cue.end_s)}".replace(".", ",")
        blocks.append(f"{number}\n{times}\n{cue.plain_text}\n")
    return "\n".join(blocks)


class CaptionSpan(NamedTuple):
    """Span of a segment of captions, in seconds of the film, and the interval that contains it."""

    start_s: float
    end_s: float
    interval: tuple[float, float]

    @property
    def begins_interval(self) -> bool:
        """Return whether the segment is the first one of its interval."""
        return self.start_s == self.interval[0]


def caption_spans(intervals: Iterable[tuple[float, float]]) -> Iterator[CaptionSpan]:
    """Yield the spans of caption segments in each interval of the film (start and end in seconds).

    An interval has one at least.
    """
    for start_s, end_s in intervals:
        count = max(1, ceil((end_s - start_s - _LEAST_SEGMENT_S) / SEGMENT_S))
        for place in range(count):
            from_s = start_s + place * SEGMENT_S
            yield CaptionSpan(from_s, min(from_s + SEGMENT_S, end_s), (start_s, end_s))


def segment_webvtt(
    cues: Sequence[Cue], *, intervals: Sequence[tuple[float, float]], first: int = 0
) -> Iterator[str]:
    """Yield the files of caption segments from the number `first` on.

    The segments of each interval of the film (start and end in seconds) follow each other, with the
    times of the film. A cue across the boundary of two segments of an interval is in both (RFC
    8216, section 3.5). No cue begins before its interval or ends after it.
    """
    for span in islice(caption_spans(intervals), first, None):
        start_s, end_s = span.interval
        inside = [
            replace(cue, start_s=max(cue.start_s, start_s), end_s=min(cue.end_s, end_s))
            for cue in cues
            if cue.start_s < span.end_s and cue.end_s > span.start_s
        ]
        yield webvtt(inside, header=f"{_HEADER}\n{_TIMESTAMP_MAP}")


def clock(seconds: float) -> str:
    """Return a time as WebVTT writes it, such as "01:02:03.500"."""
    minutes, second = divmod(round(seconds * 1000), 60_000)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second // 1000:02}.{second % 1000:03}"
