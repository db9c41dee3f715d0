"""Write WebVTT for storyboards and captions, and read it again. Pure.

`read_webvtt` reads what `webvtt` wrote, and `parse_webvtt` the output of ffmpeg, which is not quite
WebVTT. Files that people send are read in `transcoding.captions`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from portal.text import unescaped

# Long enough that two hours are some dozens of files, short enough to arrive at once.
SEGMENT_S = 60.0
# Our presentations begin at zero (RFC 8216, section 3.5).
_HEADER = "WEBVTT"
_TIMESTAMP_MAP = "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000"
# The only tags ffmpeg makes of styled text; whatever else looks like one is text.
_TAG = re.compile(r"(</?[biu]>)")
_TIMES = re.compile(r"(?:(\d{1,9}):)?(\d\d):(\d\d\.\d{3}) --> (?:(\d{1,9}):)?(\d\d):(\d\d\.\d{3})")
# Spans and times within a cue (WebVTT, section 6.4); other tags are dropped, as players do.
SPAN = re.compile(r"</?(?:[biuc]|v|lang|ruby|rt)(?:[.\s][^<>&]*)?>|<\d[\d:.]*>")
MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cue:
    """A text with its times; `identifier` is a line, or empty, `settings` gives the place."""

    start_s: float
    end_s: float
    text: str
    identifier: str = ""
    settings: str = ""

    @property
    def plain_text(self) -> str:
        """The text without spans and escapes."""
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
    """Write a file."""
    blocks = [f"{header}\n"]
    for cue in cues:
        identifier = f"{cue.identifier}\n" if cue.identifier else ""
        times = f"{clock(cue.start_s)} --> {clock(cue.end_s)} {cue.settings}".rstrip()
        blocks.append(f"{identifier}{times}\n{cue.text}\n")
    return "\n".join(blocks)


def segment_webvtt(
    cues: Sequence[Cue], *, duration_s: float, first: int = 0
) -> Iterator[tuple[float, str]]:
    """Cut the captions of a film into segments from the number `first` on.

    Yields the duration and the file of each. A cue on a boundary is in both segments, as HLS wants
    it (RFC 8216, section 3.5); it ends with the film.
    """
    start_s = first * SEGMENT_S
    while start_s < duration_s:
        end_s = min(start_s + SEGMENT_S, duration_s)
        inside = [
            replace(cue, end_s=min(cue.end_s, duration_s))
            for cue in cues
            if cue.start_s < end_s and cue.end_s > start_s
        ]
        yield end_s - start_s, webvtt(inside, header=f"{_HEADER}\n{_TIMESTAMP_MAP}")
        start_s = end_s


def clock(seconds: float) -> str:
    """Return a time as WebVTT writes it, such as "01:02:03.500"."""
    minutes, second = divmod(round(seconds * 1000), 60_000)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second // 1000:02}.{second % 1000:03}"
