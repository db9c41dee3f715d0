"""Lines of times, as caption files write them: "00:00:01,000 --> 00:00:02,500" and its variants."""

import re
from dataclasses import dataclass

# Whole hours, minutes and seconds, then a decimal fraction. Some programs write a colon before the
# milliseconds, or milliseconds with a fraction of their own.
_TIME = (
    r"(?P<{0}_sign>[-\u2212]?)\s*(?:(?P<{0}_h>\d{{1,4}})\s*[:\uff1a]\s*)?"
    r"(?P<{0}_m>\d{{1,4}})\s*[:\uff1a]\s*(?P<{0}_s>\d{{1,2}})"
    r"(?:\s*(?P<{0}_point>[.,:;\uff0c\uff0e\uff1a\u3002])\s*(?P<{0}_f>\d{{1,15}})(?:[.,]\d{{1,15}})?)?"
)
# Marks of direction and width, which files of Hebrew and Arabic have even in lines of times.
INVISIBLE = "\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
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
_MAX_LENGTH = 300
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


def read_times(line: str) -> CueTimes | None:
    """Read a line of times; None if it is none."""
    if len(line) > _MAX_LENGTH or not (":" in line or "\uff1a" in line):
        return None
    match = _TIMES.fullmatch(_INVISIBLE.sub("", line))
    if match is None or (match["comma"] and not (match["start_f"] and match["end_f"])):
        return None
    return CueTimes(
        _seconds(match, "start"),
        _seconds(match, "end"),
        suffix=(match["suffix"] or "").strip(),
        has_frames=_has_frames(match, "start") or _has_frames(match, "end"),
    )


def looks_like_times(line: str) -> bool:
    """Return whether a line that isn't one of times seems to be meant as one."""
    plain = _INVISIBLE.sub("", line[:_MAX_LENGTH])
    return _LOOKS_LIKE_TIMES.match(plain) is not None


def _has_frames(match: re.Match[str], which: str) -> bool:
    is_count = match[f"{which}_point"] in (":", ";", "\uff1a")
    return is_count and len(match[f"{which}_f"]) <= 2


def _seconds(match: re.Match[str], which: str) -> float:
    fraction = match[f"{which}_f"] or "0"
    if _has_frames(match, which):
        fraction_s = int(fraction) / FRAMES_PER_S
    else:
        fraction_s = float(f"0.{int(fraction):0{len(fraction)}}")
    minutes = int(match[f"{which}_h"] or 0) * 60 + int(match[f"{which}_m"])
    seconds = minutes * 60 + int(match[f"{which}_s"]) + fraction_s
    return -seconds if match[f"{which}_sign"] else seconds
