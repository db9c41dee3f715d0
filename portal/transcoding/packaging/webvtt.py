"""Write WebVTT for storyboards and captions, and read it again. Pure.

`read_webvtt` reads the files that `webvtt` writes, `parse_webvtt` the output of ffmpeg, which isn't
quite WebVTT. Files that people send are read in `transcoding.captions`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from portal.text import unescaped

# Length of caption segments: two hours make some dozens of files, and each arrives at once.
SEGMENT_S = 60.0
_HEADER = "WEBVTT"
# All presentations of the portal begin at zero (RFC 8216, section 3.5).
_TIMESTAMP_MAP = "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000"
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


def segment_webvtt(
    cues: Sequence[Cue], *, duration_s: float, first: int = 0
) -> Iterator[tuple[float, str]]:
    """Cut the captions of a film into segments from the number `first` on.

    Yields the duration and the file of each segment. A cue across a boundary is in both segments
    (RFC 8216, section 3.5). No cue ends after the film.
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
