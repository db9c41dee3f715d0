"""Cues of WebVTT, SubRip and SBV files, which are lines of times with lines of text below."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from portal.locale.messages import Message
from portal.text import with_line_feeds
from portal.transcoding.captions.faults import (
    MAX_CUES,
    TOO_LARGE,
    CaptionsUnreadable,
    CaptionWarning,
    WarningCode,
)
from portal.transcoding.packaging.webvtt import Cue

_HEADER = "WEBVTT"
_NOT_A_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")
_SETTING = re.compile(r"(?:line|position|size|align|vertical):[\w%.,-]+")
# SubRip's coordinates, WebVTT's regions, and settings that nobody knows.
_FOREIGN_SETTING = re.compile(r"\w+:\S*")
# Whole hours, minutes and seconds, then a decimal fraction. Some programs write a colon before the
# milliseconds, or milliseconds with a fraction of their own.
_TIME = (
    r"(?P<{0}_sign>[-\u2212]?)\s*(?:(?P<{0}_h>\d{{1,4}})\s*[:\uff1a]\s*)?"
    r"(?P<{0}_m>\d{{1,4}})\s*[:\uff1a]\s*(?P<{0}_s>\d{{1,2}})"
    r"(?:\s*(?P<{0}_point>[.,:;\uff0c\uff0e\uff1a\u3002])\s*(?P<{0}_f>\d{{1,15}})(?:[.,]\d{{1,15}})?)?"
)
# Marks of direction and width, which files of Hebrew and Arabic have even in lines of times.
_INVISIBLE_LETTERS = "\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
_INVISIBLE = re.compile(f"[{_INVISIBLE_LETTERS}]")
# SBV has a comma between the times.
_ARROW = (
    r"\s*(?:[-\u2010-\u2015\u2212=\s]{0,5}(?:>|\uff1e|&gt;|\u203a)|[\u2192\u27f6\u21d2]"
    r"|(?P<comma>,))\s*"
)
# Some write the number of the cue before its times, or brackets around them.
_TIMES = re.compile(
    r"\s*(?:\d{1,6}\s+)?\[?\s*"
    + _TIME.format("start")
    + _ARROW
    + _TIME.format("end")
    + r"\s*(?:[\s,;\]]+(?P<suffix>.*))?"
)
_LOOKS_LIKE_TIMES = re.compile(
    r"\s*[-\u2212]?\d{1,4}\s*[:\uff1a]\s*\d.*(?:-\s*>|[\u2010-\u2015=]>|\u2192)"
)
_MAX_TIMES_LENGTH = 300
# The rate is in no file.
FRAMES_PER_S = 25


@dataclass(frozen=True, slots=True)
class CueTimes:
    """Times of a cue, in seconds, and the rest of their line.

    Times that count frames are read at a rate that is guessed.
    """

    start_s: float
    end_s: float
    suffix: str = ""
    has_frames: bool = False


@dataclass(frozen=True, slots=True)
class FileCue:
    """A cue and the line of the file where it begins, counted from 1."""

    line: int
    cue: Cue


def read_blocks(text: str) -> tuple[list[FileCue], list[CaptionWarning]]:
    """Return the cues of a file in their order, and warnings for guesses and omissions.

    Text and times are as in the file. Raises `CaptionsUnreadable` if there are too many cues.
    """
    # Text modes of Windows have written a second carriage return.
    lines = with_line_feeds(text.replace("\r\r\n", "\n")).split("\n")
    is_webvtt = lines[0].startswith(_HEADER)
    heads = list(islice(_heads(lines, is_webvtt=is_webvtt), MAX_CUES + 1))
    if len(heads) > MAX_CUES:
        raise CaptionsUnreadable(TOO_LARGE)
    cues: list[FileCue] = []
    warnings: list[CaptionWarning] = []
    in_frames = next((index for index, times in heads if times and times.has_frames), None)
    if in_frames is not None:
        message = Message(
            "The times count frames. They were read at %(rate)s frames a second.",
            rate=FRAMES_PER_S,
        )
        warnings.append(CaptionWarning(WarningCode.CUE_CHANGED, message, in_frames + 1))
    for body, (index, times) in zip(_bodies(lines, heads, is_webvtt=is_webvtt), heads, strict=True):
        if times is None:
            message = Message("The times of this cue can't be read. It was left out.")
            warnings.append(CaptionWarning(WarningCode.CUE_SKIPPED, message, index + 1))
            continue
        words = times.suffix.split()
        settings = " ".join(word for word in words if _SETTING.fullmatch(word))
        if not all(map(_FOREIGN_SETTING.fullmatch, words)):
            body = [times.suffix, *body]
        cue = Cue(start_s=times.start_s, end_s=times.end_s, text="\n".join(body), settings=settings)
        cues.append(FileCue(index + 1, cue))
    return cues, warnings


def _heads(lines: Sequence[str], *, is_webvtt: bool) -> Iterator[tuple[int, CueTimes | None]]:
    """Yield the index of each line of times, with None for times that can't be read."""
    is_comment = False
    for index, line in enumerate(lines):
        if is_webvtt and not line:
            is_comment = False
        elif is_webvtt and _NOT_A_CUE.match(line) and _is_blank_above(lines, index):
            is_comment = True
        if is_comment:
            continue
        times = read_times(line)
        if times or looks_like_times(line):
            yield index, times


def _is_blank_above(lines: Sequence[str], index: int) -> bool:
    return index == 0 or not lines[index - 1].strip() or lines[index - 1].startswith(_HEADER)


def _bodies(
    lines: Sequence[str], heads: Sequence[tuple[int, CueTimes | None]], *, is_webvtt: bool
) -> Iterator[list[str]]:
    """Yield the lines of text below each line of times."""
    starts = [index for index, _ in heads]
    for start, next_start in zip(starts, [*starts[1:], len(lines)], strict=False):
        end = next_start
        if next_start < len(lines) and _has_identifier(lines, next_start, is_webvtt=is_webvtt):
            end -= 1
        body = list(lines[start + 1 : max(end, start + 1)])
        # An empty line ends a cue of WebVTT, and may be part of one in SubRip.
        if is_webvtt and "" in body:
            body = body[: body.index("")]
        yield body


def _has_identifier(lines: Sequence[str], index: int, *, is_webvtt: bool) -> bool:
    """Return whether the line above these times is the cue's number or name."""
    above = re.sub(rf"[{_INVISIBLE_LETTERS}\s]", "", lines[index - 1])
    return above.isdecimal() or (is_webvtt and bool(above) and _is_blank_above(lines, index - 1))


def read_times(line: str) -> CueTimes | None:
    """Read a line of times; None if it is none."""
    if len(line) > _MAX_TIMES_LENGTH or not (":" in line or "\uff1a" in line):
        return None
    match = _TIMES.fullmatch(_INVISIBLE.sub("", line))
    if match is None or (match["comma"] and not (match["start_f"] and match["end_f"])):
        return None
    start_s, start_has_frames = _read_time(match, "start")
    end_s, end_has_frames = _read_time(match, "end")
    suffix = (match["suffix"] or "").strip()
    return CueTimes(start_s, end_s, suffix, has_frames=start_has_frames or end_has_frames)


def looks_like_times(line: str) -> bool:
    """Return whether a line that isn't one of times seems to be meant as one."""
    plain = _INVISIBLE.sub("", line[:_MAX_TIMES_LENGTH])
    return _LOOKS_LIKE_TIMES.match(plain) is not None


def _read_time(match: re.Match[str], which: str) -> tuple[float, bool]:
    """Return a time in seconds, and whether its last part counts frames."""
    sign, hours, minutes, seconds, point, fraction = (
        match[f"{which}_{part}"] or "" for part in ("sign", "h", "m", "s", "point", "f")
    )
    has_frames = point in (":", ";", "\uff1a") and 0 < len(fraction) <= 2
    # `int` also reads digits of other scripts.
    digits = f"{int(fraction or 0):0{len(fraction)}}"
    fraction_s = int(digits) / FRAMES_PER_S if has_frames else float(f"0.{digits}")
    time_s = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds) + fraction_s
    return (-time_s if sign else time_s), has_frames
