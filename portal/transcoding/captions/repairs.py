"""Repairs of cues whose times or texts no player would show as they were meant."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from math import floor

from portal.locale.messages import Message
from portal.transcoding.captions.blocks import FileCue
from portal.transcoding.captions.faults import (
    MAX_FILE_BYTES,
    TOO_LARGE_TEXT,
    CaptionsUnreadable,
    CaptionWarning,
    WarningCode,
)
from portal.transcoding.packaging.webvtt import SEGMENT_S, Cue, clock

# A cue without a length is shown until the next one begins, for this time at most.
_MAX_REPAIRED_S = 5.0
_LAST_REPAIRED_S = 2.0
# Cues of captions that roll up follow each other without a pause.
_ROLLING_GAP_S = 0.1
_MAX_ROLLING_LINES = 4
_LEAST_ROLLING = 2
_LEAST_ROLLING_SHARE = 0.5
# Times of single words, which YouTube writes into rolling captions.
_WORD_TIMES = re.compile(r"<\d[\d:.]*>|</?c(?:\.[^<>]*)?>")
# A cue is written into each segment that it is shown in; sane captions fill a fraction of this.
_MAX_WRITTEN_BYTES = 32 * 1024**2
_TIMES_BYTES = 40
_HOUR_S = 3600.0


def repair_times(cues: Sequence[FileCue]) -> tuple[list[FileCue], list[CaptionWarning]]:
    """Return cues in the order of their times, each with a length, and a warning for each change.

    A cue that ends before the film begins is left out. One that begins before it is cut.
    """
    warnings: list[CaptionWarning] = []
    repaired: list[FileCue] = []
    starts_s = sorted(max(file_cue.cue.start_s, 0.0) for file_cue in cues)
    for file_cue in cues:
        cue = file_cue.cue
        if cue.start_s < 0 and cue.end_s <= 0:
            message = Message("This cue ends before the video begins. It was left out.")
            warnings.append(CaptionWarning(WarningCode.CUE_SKIPPED, message, file_cue.line))
            continue
        start_s = max(cue.start_s, 0.0)
        end_s = cue.end_s
        message = Message("This cue began before the video. It now begins at 0.")
        if _ms(end_s) <= _ms(start_s):
            following = bisect_right(starts_s, start_s)
            next_s = (
                starts_s[following] if following < len(starts_s) else start_s + _LAST_REPAIRED_S
            )
            end_s = min(max(next_s, start_s + 0.001), start_s + _MAX_REPAIRED_S)
            times = {"start": clock(start_s), "end": clock(end_s)}
            message = Message(
                "This cue ended before it began. It now lasts from %(start)s to %(end)s.", **times
            )
            if cue.end_s == cue.start_s:
                message = Message(
                    "This cue had no length. It now lasts from %(start)s to %(end)s.", **times
                )
        if (start_s, end_s) != (cue.start_s, cue.end_s):
            warnings.append(CaptionWarning(WarningCode.CUE_CHANGED, message, file_cue.line))
        repaired.append(replace(file_cue, cue=replace(cue, start_s=start_s, end_s=end_s)))
    repaired.sort(key=lambda file_cue: (file_cue.cue.start_s, file_cue.cue.end_s))
    return repaired, warnings


def collapse_rolling(cues: Sequence[FileCue]) -> tuple[list[FileCue], list[CaptionWarning]]:
    """Return cues in which each spoken line stands once, and a warning if any line was removed.

    In captions that roll up, as YouTube writes them, a line is repeated at the top of the next cue
    while a new one appears below. If most cues of the file do so, repeated lines are removed, and
    cues without any other line are left out; times stay. Other files are returned unchanged.
    """
    texts = [_plain_lines(file_cue.cue) for file_cue in cues]
    carried = [0]
    for index in range(1, len(cues)):
        gap_s = cues[index].cue.start_s - cues[index - 1].cue.end_s
        is_next = gap_s <= _ROLLING_GAP_S
        carried.append(_carried_lines(texts[index - 1], texts[index]) if is_next else 0)
    rolling = sum(count > 0 for count in carried)
    has_new_lines = any(0 < count < len(text) for count, text in zip(carried, texts, strict=True))
    if not has_new_lines or rolling < max(_LEAST_ROLLING, _LEAST_ROLLING_SHARE * (len(cues) - 1)):
        return list(cues), []
    collapsed = []
    for file_cue, count in zip(cues, carried, strict=True):
        lines = _WORD_TIMES.sub("", file_cue.cue.text).split("\n")[count:]
        text = "\n".join(line.strip() for line in lines if line.strip())
        if text:
            collapsed.append(replace(file_cue, cue=replace(file_cue.cue, text=text, settings="")))
    message = Message(
        "The captions roll up: lines that were repeated from the cue before were left out."
    )
    return collapsed, [CaptionWarning(WarningCode.ROLLING_COLLAPSED, message)]


def _plain_lines(cue: Cue) -> list[str]:
    return [" ".join(line.split()) for line in cue.plain_text.split("\n")]


def _carried_lines(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many of the last lines of a cue are the first ones of the next."""
    counts = range(min(len(before), len(after), _MAX_ROLLING_LINES), 0, -1)
    return next((count for count in counts if before[-count:] == after[:count]), 0)


def shifted(cues: Sequence[FileCue], shift_s: float) -> list[FileCue]:
    """Return cues that begin and end later by this time; earlier if it is negative."""
    return [
        replace(
            file_cue,
            cue=replace(
                file_cue.cue,
                start_s=file_cue.cue.start_s + shift_s,
                end_s=file_cue.cue.end_s + shift_s,
            ),
        )
        for file_cue in cues
    ]


def suggested_shift_s(cues: Sequence[FileCue], duration_s: float | None) -> float | None:
    """Return a shift by which captions that begin after the film's end fit into it; None without.

    Editing programs let a film begin at one hour, or at ten.
    """
    first_s = cues[0].cue.start_s
    last_s = cues[-1].cue.start_s
    if duration_s is None or last_s < duration_s:
        return None
    hours_s = floor(first_s / _HOUR_S) * _HOUR_S
    if hours_s and last_s - hours_s < duration_s:
        return -hours_s
    if first_s < duration_s:
        return None
    return -hours_s if first_s - hours_s < duration_s else -first_s


def check_size(cues: Sequence[FileCue], duration_s: float | None) -> None:
    """Raise `CaptionsUnreadable` if the text of cues, or their segments, would be huge.

    Text may be larger than its file, because a "<" is stored as four characters.
    """
    if sum(len(file_cue.cue.text.encode()) for file_cue in cues) > MAX_FILE_BYTES:
        raise CaptionsUnreadable(TOO_LARGE_TEXT)
    sizes_bytes = [_written_bytes(file_cue.cue, duration_s) for file_cue in cues]
    if sum(sizes_bytes) <= _MAX_WRITTEN_BYTES:
        return
    largest = max(range(len(cues)), key=sizes_bytes.__getitem__)
    cue = cues[largest].cue
    raise CaptionsUnreadable(
        Message(
            "Line %(line)s: too many cues are shown at the same time for too long; this "
            "one lasts from %(start)s to %(end)s. Let each cue end when its "
            "text is no longer spoken.",
            line=cues[largest].line,
            start=clock(cue.start_s),
            end=clock(cue.end_s),
        )
    )


def _written_bytes(cue: Cue, duration_s: float | None) -> int:
    """Return how many bytes a cue takes in all segments of a film."""
    end_s = cue.end_s if duration_s is None else min(cue.end_s, duration_s)
    segments = max(floor(end_s / SEGMENT_S) - floor(cue.start_s / SEGMENT_S) + 1, 1)
    return segments * (len(cue.text.encode()) + _TIMES_BYTES)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
