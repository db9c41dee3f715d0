"""Read and write WebVTT, for storyboards and subtitle renditions. Pure.

Reads what ffmpeg writes: cues with times and text, no cue identifiers, settings or regions.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Long enough that two hours are some dozens of files, short enough to arrive at once.
SEGMENT_S = 60.0
# Our presentations begin at zero (RFC 8216, section 3.5).
_HEADER = "WEBVTT"
_TIMESTAMP_MAP = "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000"
# The only tags ffmpeg makes of styled text; whatever else looks like one is text.
_TAG = re.compile(r"(</?[biu]>)")
_TIMES = re.compile(r"(?:(\d+):)?(\d\d):(\d\d\.\d{3}) --> (?:(\d+):)?(\d\d):(\d\d\.\d{3})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cue:
    """A text and when it is shown; `identifier` is a line, or empty."""

    start_s: float
    end_s: float
    text: str
    identifier: str = ""


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


def webvtt(cues: Iterable[Cue], *, header: str = _HEADER) -> str:
    """Write a file."""
    blocks = [f"{header}\n"]
    for cue in cues:
        identifier = f"{cue.identifier}\n" if cue.identifier else ""
        times = f"{_clock(cue.start_s)} --> {_clock(cue.end_s)}"
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


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds * 1000), 60_000)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second // 1000:02}.{second % 1000:03}"
