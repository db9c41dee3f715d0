"""Cues of WebVTT, SubRip and SBV files, which are lines of times with lines of text below."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from portal.text import with_line_feeds
from portal.transcoding.captions.faults import (
    MAX_CUES,
    TOO_LARGE,
    CaptionsUnreadable,
    CaptionWarning,
    WarningCode,
)
from portal.transcoding.captions.times import (
    FRAMES_PER_S,
    INVISIBLE,
    CueTimes,
    looks_like_times,
    read_times,
)

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
    """Return the cues of a file in their order, and warnings for guesses and omissions.

    Raises `CaptionsUnreadable` if there are too many.
    """
    # Text modes of Windows have written a second carriage return.
    lines = with_line_feeds(text.replace("\r\r\n", "\n")).split("\n")
    is_webvtt = lines[0].startswith(_HEADER)
    heads = list(islice(_heads(lines, is_webvtt=is_webvtt), MAX_CUES + 1))
    if len(heads) > MAX_CUES:
        raise CaptionsUnreadable(TOO_LARGE)
    cues: list[RawCue] = []
    warnings: list[CaptionWarning] = []
    in_frames = next((index for index, times in heads if times and times.has_frames), None)
    if in_frames is not None:
        message = f"The times count frames. They were read at {FRAMES_PER_S} frames a second."
        warnings.append(CaptionWarning(WarningCode.CUE_CHANGED, message, in_frames + 1))
    for body, (index, times) in zip(_bodies(lines, heads, is_webvtt=is_webvtt), heads, strict=True):
        if times is None:
            message = "The times of this cue can't be read. It was left out."
            warnings.append(CaptionWarning(WarningCode.CUE_SKIPPED, message, index + 1))
            continue
        words = times.suffix.split()
        settings = " ".join(word for word in words if _SETTING.fullmatch(word))
        if not all(map(_FOREIGN_SETTING.fullmatch, words)):
            body = [times.suffix, *body]
        cues.append(RawCue(index + 1, times.start_s, times.end_s, body, settings))
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
    above = re.sub(rf"[{INVISIBLE}\s]", "", lines[index - 1])
    return above.isdecimal() or (is_webvtt and bool(above) and _is_blank_above(lines, index - 1))
