"""Parsing and display of untrusted text, and numbers, sizes and days in words. No I/O.

Texts are stored as submitted and displayed by `shown`. Templates escape markup; this module does
not.
"""

import html
import re
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import PurePosixPath
from unicodedata import category
from urllib.parse import SplitResult, urlsplit

from portal.locale.messages import Message, numeral

# Embeddings, overrides and isolates (Unicode annex 9) reverse the text after them, "exe.mp4" to
# "4pm.exe", and the end of an isolate extends that beyond a <bdi>. Directional marks are harmless.
_DIRECTIONS = "\u202a-\u202e\u2066-\u2069"
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_UNSHOWN = re.compile(f"[{_CONTROLS}{_DIRECTIONS}]")
# References beyond Unicode, of which Python refuses to parse the longest.
_HUGE_REFERENCE = re.compile(r"&#[0-9]{8,};?")
# Most combining marks on a letter. Hundreds would cover the lines around it.
MAX_MARKS = 8
# Most bytes of a file's name. File systems allow 255, and browsers add a number or an ending.
MAX_NAME_BYTES = 230
MAX_SUFFIX_LENGTH = 10
# Invisible letters and signs: Hangul fillers, and Braille without a dot.
_EMPTY_SIGNS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# Host (RFC 3986, section 3.2.2) of DNS labels (RFC 1035, section 2.3.4), which may contain
# underscores, as names of servers behind proxies do.
_HOST_LABEL = "[a-z0-9_-]{1,63}"
_HOST = re.compile(
    rf"({_HOST_LABEL}(\.{_HOST_LABEL})*\.?|\[[0-9a-f:.]+\])(:[0-9]{{1,5}})?", re.IGNORECASE
)
_SIZE_UNITS = (
    Message("%(size)s bytes"),
    Message("%(size)s kB"),
    Message("%(size)s MB"),
    Message("%(size)s GB"),
    Message("%(size)s TB"),
)
# Durations by the units that they have.
_DURATIONS = {
    (): Message("%(seconds)s s"),
    ("seconds",): Message("%(seconds)s s"),
    ("minutes",): Message("%(minutes)s min"),
    ("minutes", "seconds"): Message("%(minutes)s min %(seconds)s s"),
    ("hours",): Message("%(hours)s h"),
    ("hours", "seconds"): Message("%(hours)s h %(seconds)s s"),
    ("hours", "minutes"): Message("%(hours)s h %(minutes)s min"),
    ("hours", "minutes", "seconds"): Message("%(hours)s h %(minutes)s min %(seconds)s s"),
}
# Translators: abbreviated months of days such as 3 Jan 2026.
_MONTHS = (
    Message("Jan"),
    Message("Feb"),
    Message("Mar"),
    Message("Apr"),
    Message("May"),
    Message("Jun"),
    Message("Jul"),
    Message("Aug"),
    Message("Sep"),
    Message("Oct"),
    Message("Nov"),
    Message("Dec"),
)
# Limit of RFC 1035, section 2.3.4, without the dot at the end.
_MAX_HOST_NAME_LENGTH = 253
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
# The API's description contains this pattern, so its syntax is that of JSON Schema.
SITE_PATTERN = rf"^https?://(?:\*\.(?:{_LABEL}\.)+|(?:{_LABEL}\.)*){_LABEL}(?::(?:{_PORT}))?$"
MAX_SITE_LENGTH = 270


def shown(text: str) -> str:
    """Return the text without characters that would garble the text around it.

    Logs escape such characters instead: see `telemetry.logs.visible`.
    """
    if text.isascii() and text.isprintable():
        return text
    plain = _UNSHOWN.sub("", with_line_feeds(text))
    return plain if plain.isascii() else _with_few_marks(plain)


def saved_name(file_name: str) -> str:
    """Return the name under which browsers save a file: shown, of at most `MAX_NAME_BYTES`."""
    name = shown(file_name)
    suffix = PurePosixPath(name).suffix
    suffix = suffix if len(suffix) <= MAX_SUFFIX_LENGTH else ""
    room = MAX_NAME_BYTES - len(suffix.encode())
    return name.removesuffix(suffix).encode()[:room].decode(errors="ignore") + suffix


def with_line_feeds(text: str) -> str:
    """Return the text with line feeds as line ends. Forms send two characters for each."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unescaped(text: str) -> str:
    """Return the text with HTML's character references replaced."""
    return html.unescape(_HUGE_REFERENCE.sub("\ufffd", text))


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character."""
    return all(
        letter in _EMPTY_SIGNS or category(letter).startswith(("C", "Z")) or _is_mark(letter)
        for letter in text
    )


def split_tags(tags: str) -> list[str]:
    """Split a comma-separated list of tags."""
    stripped = (tag.strip() for tag in tags.split(","))
    return [tag for tag in stripped if tag]


@lru_cache(maxsize=1024)
def host_name(host: str) -> str:
    """Return the normalized name of a host with or without a port; empty if it is invalid."""
    if len(host) > _MAX_HOST_NAME_LENGTH + len(".:65535") or not _HOST.fullmatch(host):
        return ""
    try:
        # An invalid address in brackets and a port that is too large raise an error.
        parts = urlsplit(f"//{host}")
        name = (parts.hostname or "").removesuffix(".")
        return name if parts.port != 0 and len(name) <= _MAX_HOST_NAME_LENGTH else ""
    except ValueError:
        return ""


def http_address(text: str) -> SplitResult | None:
    """Split an http or https address. Return None for any other text."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None


def is_site(text: str) -> bool:
    """Return whether the text is a site in a browser's notation: `https://example.org:8443`.

    `https://*.example.org` stands for all subdomains of a name, which needs at least two labels:
    anyone can register a name below `com`. Public suffixes of two labels are not recognized.
    """
    return len(text) <= MAX_SITE_LENGTH and re.match(SITE_PATTERN, text) is not None


def error_words(error: BaseException) -> str:
    """Return an error's message, or its name if the message is empty, as for most timeouts."""
    return str(error) or type(error).__name__


def whole_number(text: str, *, max_digits: int) -> int | None:
    """Return the number in a text of ASCII digits. Return None for any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) <= max_digits
    return int(text) if is_number else None


def rfc3339(at: datetime) -> str:
    """Return an aware time as `2026-01-31T12:00:00.000000Z`."""
    utc = at.astimezone(UTC)
    # Twice as fast as `utc.isoformat()`, which a page of the API would call for each record.
    return f"{utc.date().isoformat()}T{utc.time().isoformat('microseconds')}Z"


def size_in_words(size_bytes: int) -> Message:
    """Return a size as `12.4 MB`, in powers of 1000 like file managers."""
    value = float(size_bytes)
    unit = 0
    while value >= 999.5 and unit < len(_SIZE_UNITS) - 1:
        value /= 1000
        unit += 1
    digits = 1 if unit and value < 99.95 else 0
    return Message(_SIZE_UNITS[unit], size=numeral(value, digits))


def date_in_words(day: date) -> Message:
    """Return a day as `31 Jan 2026`."""
    # Translators: a day, such as 31 Jan 2026.
    return Message(
        "%(day)s %(month)s %(year)s", day=day.day, month=_MONTHS[day.month - 1], year=day.year
    )


def day_in_words(day: date) -> Message:
    """Return a day of a known year as `31 Jan`."""
    # Translators: a day without its year, such as 31 Jan.
    return Message("%(day)s %(month)s", day=day.day, month=_MONTHS[day.month - 1])


def month_in_words(day: date) -> Message:
    """Return the month of a day as `Jan 2026`."""
    # Translators: a month, such as Jan 2026.
    return Message("%(month)s %(year)s", month=_MONTHS[day.month - 1], year=day.year)


def duration_in_words(duration_s: int) -> Message:
    """Return whole seconds as `1 h 30 min`, without units of value 0 beside others."""
    minutes, seconds = divmod(duration_s, 60)
    hours, minutes = divmod(minutes, 60)
    parts = {"hours": hours, "minutes": minutes, "seconds": seconds}
    units = tuple(name for name, value in parts.items() if value)
    return Message(_DURATIONS[units], **{name: parts[name] for name in units or ("seconds",)})


def _with_few_marks(text: str) -> str:
    letters = []
    marks = 0
    for letter in text:
        marks = marks + 1 if _is_mark(letter) else 0
        if marks <= MAX_MARKS:
            letters.append(letter)
    return "".join(letters)


def _is_mark(letter: str) -> bool:
    """Return whether a character is drawn on the letter before it, without a width."""
    return category(letter) in ("Mn", "Me")
