"""Reading and showing text that anyone may have written, and numbers in words. Pure.

Texts are stored as submitted; `shown` is how they are displayed. Templates escape markup, this
module does not.
"""

import html
import re
from datetime import UTC, datetime
from functools import lru_cache
from unicodedata import category
from urllib.parse import SplitResult, urlsplit

# Embeddings, overrides and isolates (Unicode annex 9) turn what follows them around, "exe.mp4"
# into "4pm.exe"; a stray end of an isolate lets them out of any <bdi>. Marks only hint, and stay.
_DIRECTIONS = "\u202a-\u202e\u2066-\u2069"
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_UNSHOWN = re.compile(f"[{_CONTROLS}{_DIRECTIONS}]")
# Numbers beyond Unicode; Python refuses to read the longest ones.
_HUGE_REFERENCE = re.compile(r"&#[0-9]{8,};?")
# No script stacks more on one letter; hundreds would cover the lines around.
MAX_MARKS = 8
# Letters and signs that look like nothing: Hangul fillers, and Braille without a dot.
_EMPTY_SIGNS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# RFC 3986, section 3.2.2, in labels of DNS (RFC 1035, section 2.3.4), with the underscore that
# names of servers behind proxies may have.
_HOST_LABEL = "[a-z0-9_-]{1,63}"
_HOST = re.compile(
    rf"({_HOST_LABEL}(\.{_HOST_LABEL})*\.?|\[[0-9a-f:.]+\])(:[0-9]{{1,5}})?", re.IGNORECASE
)
_SIZE_UNITS = ("bytes", "kB", "MB", "GB", "TB")
# RFC 1035, section 2.3.4, without the dot at the end.
_MAX_HOST_NAME_LENGTH = 253
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
# Also in the API's description, and so without what only Python knows.
SITE_PATTERN = rf"^https?://(?:\*\.(?:{_LABEL}\.)+|(?:{_LABEL}\.)*){_LABEL}(?::(?:{_PORT}))?$"
MAX_SITE_LENGTH = 270


def shown(text: str) -> str:
    """The text for people, without what would change how the words around it are read.

    In a log nothing is left out: see `telemetry.logs.visible`.
    """
    if text.isascii() and text.isprintable():
        return text
    plain = _UNSHOWN.sub("", with_line_feeds(text))
    return plain if plain.isascii() else _with_few_marks(plain)


def with_line_feeds(text: str) -> str:
    """The text with every end of a line as one line feed: forms send two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unescaped(text: str) -> str:
    """Return a text with HTML's character references replaced; huge numbers are no character."""
    return html.unescape(_HUGE_REFERENCE.sub("\ufffd", text))


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen."""
    return all(
        letter in _EMPTY_SIGNS or category(letter).startswith(("C", "Z")) or _is_mark(letter)
        for letter in text
    )


def split_tags(tags: str) -> list[str]:
    """The tags of a comma-separated list, one by one."""
    stripped = (tag.strip() for tag in tags.split(","))
    return [tag for tag in stripped if tag]


@lru_cache(maxsize=1024)
def host_name(host: str) -> str:
    """The name in a host with or without a port, as names are compared; empty for no host."""
    if len(host) > _MAX_HOST_NAME_LENGTH + len(".:65535") or not _HOST.fullmatch(host):
        return ""
    try:
        # Both raise: an address in brackets that is none, and a port that is too large.
        parts = urlsplit(f"//{host}")
        name = (parts.hostname or "").removesuffix(".")
        return name if parts.port != 0 and len(name) <= _MAX_HOST_NAME_LENGTH else ""
    except ValueError:
        return ""


def http_address(text: str) -> SplitResult | None:
    """The parts of an http or https address of a host; None for anything else."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None


def is_site(text: str) -> bool:
    """Whether it names a site as browsers do, such as `https://example.org:8443`.

    `https://*.example.org` stands for all names below one, which has two labels at least: below
    `com` anyone may have a name. Public suffixes of two labels aren't known.
    """
    return len(text) <= MAX_SITE_LENGTH and re.match(SITE_PATTERN, text) is not None


def error_words(error: BaseException) -> str:
    """What an error says; its name where it says nothing, as most that ran out of time."""
    return str(error) or type(error).__name__


def whole_number(text: str, *, max_digits: int) -> int | None:
    """The number that a text of ASCII digits alone writes; None for any other."""
    is_number = text.isascii() and text.isdigit() and len(text) <= max_digits
    return int(text) if is_number else None


def rfc3339(at: datetime) -> str:
    """An aware time as `2026-01-31T12:00:00.000000Z`."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def size_in_words(size_bytes: int) -> str:
    """A size as `12.4 MB`: powers of 1000, as file managers and networks count."""
    value, unit = float(size_bytes), 0
    while value >= 999.5 and unit < len(_SIZE_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 1 if unit and value < 99.95 else 0
    return f"{value:.{digits}f} {_SIZE_UNITS[unit]}"


def duration_in_words(duration_s: int) -> str:
    """Whole seconds as `1 h 30 min`, without the units of which there are none."""
    minutes, seconds = divmod(duration_s, 60)
    hours, minutes = divmod(minutes, 60)
    parts = {"h": hours, "min": minutes, "s": seconds}
    return " ".join(f"{value} {unit}" for unit, value in parts.items() if value)


def _with_few_marks(text: str) -> str:
    kept, marks = [], 0
    for letter in text:
        marks = marks + 1 if _is_mark(letter) else 0
        if marks <= MAX_MARKS:
            kept.append(letter)
    return "".join(kept)


def _is_mark(letter: str) -> bool:
    """Whether it is put on the letter before it, and takes no room of its own."""
    return category(letter) in ("Mn", "Me")
