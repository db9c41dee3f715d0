"""Cues of WebVTT, SubRip and SBV files, which are lines of times with lines of text below."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from portal.transcoding.captions.faults import (
    MAX_CUES,
    TOO_LARGE,
    CaptionsUnreadable,
    CaptionWarning,
    WarningCode,
)
from portal.transcoding.captions.times import CueTimes, looks_like_times, read_times

_HEADER = "WEBVTT"
_NOT_A_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")
_SETTING = re.compile(r"(?:line|position|size|align|vertical):[\w%.,-]+")
# SubRip's coordinates, WebVTT's regions, and settings that nobody knows.
_FOREIGN_SETTING = re.compile(r"\w+:\S*")


@dataclass(frozen=True, slots=True)
class RawCue:
    """A cue as a file has it, at a line counted from 1; times are not checked yet."""

    line: int
    start_s: float
    end_s: float
    lines: Sequence[str]
    settings: str = ""


def read_blocks(text: str) -> tuple[list[RawCue], list[CaptionWarning]]:
    """Return the cues of a file in their order, and a warning for each that can't be read.

    Raises `CaptionsUnreadable` if there are too many.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    is_webvtt = lines[0].startswith(_HEADER)
    heads: list[tuple[int, CueTimes | None]] = []
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
            heads.append((index, times))
        if len(heads) > MAX_CUES:
            raise CaptionsUnreadable(TOO_LARGE)
    cues: list[RawCue] = []
    skipped: list[CaptionWarning] = []
    for body, (index, times) in zip(_bodies(lines, heads, is_webvtt=is_webvtt), heads, strict=True):
        if times is None:
            message = "The times of this cue can't be read. It was left out."
            skipped.append(CaptionWarning(WarningCode.CUE_SKIPPED, message, index + 1))
            continue
        words = times.suffix.split()
        settings = " ".join(word for word in words if _SETTING.fullmatch(word))
        if not all(map(_FOREIGN_SETTING.fullmatch, words)):
            body = [times.suffix, *body]
        cues.append(RawCue(index + 1, times.start_s, times.end_s, body, settings))
    return cues, skipped


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
    above = lines[index - 1].strip()
    return above.isdecimal() or (is_webvtt and bool(above) and _is_blank_above(lines, index - 1))
