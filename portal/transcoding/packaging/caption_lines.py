"""Lines of captions by the width of their letters: 42 narrow or 16 wide ones, as of Chinese.

Text of scripts without spaces may be cut between any two letters, but reads best after a mark such
as "\u3002" or "\uff0c"; a mark never begins a line.
"""

import re
from unicodedata import combining, east_asian_width

LINE_WIDTH = 42.0
_WIDE_WIDTH = LINE_WIDTH / 16
# Letters and marks of Chinese, Japanese and Korean, and full-width forms.
WIDE = "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003ffff"
_STOPS = "\u3001\u3002\uff0c\uff01\uff1f\uff1b\uff1a\u2026"
_CLOSING = rf"{_STOPS}\uff0e\u300d\u300f\uff09\u300b\u3011\u30fc,.!?;:)"
_OPENING = "\u300c\u300e\uff08\u300a\u3010"
_UNITS = re.compile(
    rf"\s*[{_OPENING}]*(?:[{WIDE}]|[^\s{WIDE}]{{1,{LINE_WIDTH:.0f}}})[{_CLOSING}]*|\s+"
)
CLAUSE_ENDS = tuple(_STOPS)
_GOOD_CUT = re.compile(rf"[{_STOPS}]+[{_CLOSING}]*|\s+")
# Least width of a line that is cut at a good place.
_LEAST_WIDTH = LINE_WIDTH / 3


def width(text: str) -> float:
    """Return the width of a text in narrow letters."""
    return sum(
        _WIDE_WIDTH if east_asian_width(letter) in "WF" else not combining(letter)
        for letter in text
    )


def wrapped(text: str) -> list[str]:
    """Return a text in lines that are at most `LINE_WIDTH` wide."""
    lines = []
    line = ""
    for unit in _UNITS.findall(text):
        if line and width(line + unit.rstrip()) > LINE_WIDTH:
            cut = len(line) if unit[0].isspace() else _good_cut(line)
            lines.append(line[:cut].strip())
            line = line[cut:]
        line += unit
    return [part for part in (*lines, line.strip()) if part]


def _good_cut(line: str) -> int:
    ends = [match.end() for match in _GOOD_CUT.finditer(line)]
    return max((end for end in ends if width(line[:end]) >= _LEAST_WIDTH), default=len(line))
