"""Makes the web addresses and the times in someone's text clickable, and nothing else of it. Pure.

The text is cut into these and what stands between; every piece is escaped by itself as the
markup is put together, so nothing of the text can become markup, whatever it is.
"""

import re
from collections.abc import Iterator

from markupsafe import Markup

from portal.text import http_address

# What search engines are told of addresses that anyone may have written.
REL = "nofollow noopener ugc"
MAX_ADDRESS_LENGTH = 2_000
# Characters that are never part of an address: space and control characters, quotes and angle
# brackets, and those that are invisible or turn the direction of the text around them.
_NO_ADDRESS = (
    r"\s\x00-\x1f\x7f-\x9f<>\"`\\^{|}"
    r"\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
_ADDRESS = re.compile(rf"(?<![\w@/.+-])https?://[^{_NO_ADDRESS}]+", re.IGNORECASE)
# A time as players show it, 1:05 or 1:02:03, that is no part of a longer number.
_TIME = re.compile(r"(?<![\w:.,/-])(?:(\d{1,2}):)?(\d{1,2}):([0-5]\d)(?![\w:]|[.,/-]\d)")
_CLOSING = {")": "(", "]": "["}
# Ends a sentence, or closes a quotation, rather than an address.
_TRAILING = frozenset(".,;:!?'*_~…·’”“„»«›‹、。，；：！？）】》」』")  # noqa: RUF001 - as people type


def linked(text: str, *, duration_s: float = 0.0) -> Markup:
    """The text as markup: escaped, with its http and https addresses as links.

    So are the times that a video of this length has; they lead to its page at that time.
    """
    return Markup("").join(_pieces(text, duration_s))


def _pieces(text: str, duration_s: float) -> Iterator[Markup]:
    done = 0
    for match in _ADDRESS.finditer(text):
        address = _trimmed(match[0])
        if not _is_safe(address):
            continue
        yield from _timed(text[done : match.start()], duration_s)
        yield Markup('<a href="{0}" rel="{1}">{0}</a>').format(address, REL)
        done = match.start() + len(address)
    yield from _timed(text[done:], duration_s)


def _timed(text: str, duration_s: float) -> Iterator[Markup]:
    done = 0
    for match in _TIME.finditer(text):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        time_s = hours * 3600 + minutes * 60 + seconds
        if time_s >= duration_s or (match[1] and minutes > 59):
            continue
        yield Markup.escape(text[done : match.start()])
        yield Markup('<a href="?t={0}" data-seek="{0}">{1}</a>').format(time_s, match[0])
        done = match.end()
    yield Markup.escape(text[done:])


def _trimmed(address: str) -> str:
    """Without the punctuation of the sentence around it; brackets opened within it stay."""
    end = len(address)
    surplus = {mark: address.count(mark) - address.count(_CLOSING[mark]) for mark in _CLOSING}
    while end:
        mark = address[end - 1]
        if surplus.get(mark, 0) > 0:
            surplus[mark] -= 1
        elif mark not in _TRAILING:
            break
        end -= 1
    return address[:end]


def _is_safe(address: str) -> bool:
    """Whether it leads where it seems to: to a host, without a user's name in front of it."""
    parts = http_address(address) if len(address) <= MAX_ADDRESS_LENGTH else None
    return parts is not None and "@" not in parts.netloc
