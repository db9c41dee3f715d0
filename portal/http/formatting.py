"""Formatting of times, sizes and rates, and links in texts that people wrote. Pure.

Templates use `FILTERS` and `WORDS`, whose messages they show in the reader's language. `linkify`
splits a text at its addresses and times, and escapes every piece separately, so that no text can
become markup.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from math import floor

from markupsafe import Markup

from portal.database.account_models import Role
from portal.database.models import Visibility
from portal.locale.messages import Message, PluralMessage, numeral
from portal.text import date_in_words, http_address, shown, size_in_words, split_tags
from portal.transcoding.planning.described_times import DescribedTimes, find_times
from portal.videos.visibility import MEMBERS, PUBLIC_PAGE

# Instructions for search engines about links in texts of users.
REL = "nofollow noopener ugc"
MAX_ADDRESS_LENGTH = 2_000
# Characters that are never part of an address: spaces, control characters, quotes, angle brackets,
# invisible characters, and marks that change the direction of text.
_NO_ADDRESS = (
    r"\s\x00-\x1f\x7f-\x9f<>\"`\\^{|}"
    r"\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
_ADDRESS = re.compile(rf"(?<![\w@/.+-])https?://[^{_NO_ADDRESS}]+", re.IGNORECASE)
# Translators: thousands, millions and billions of views, in short.
COUNT_UNITS = (
    Message("%(number)sK views"),
    Message("%(number)sM views"),
    Message("%(number)sB views"),
)
VISIBILITIES: dict[str, Message] = {
    # Translators: who can watch a video.
    Visibility.PUBLIC: Message("Public"),
    Visibility.UNLISTED: Message("Unlisted"),
    Visibility.PRIVATE: Message("Private"),
    MEMBERS: Message("Members"),
    # Translators: a private video, whose page everyone can see.
    PUBLIC_PAGE: Message("Private with public page"),
}
ROLES = {
    # Translators: role of an account.
    Role.OWNER: Message("Owner"),
    Role.ADMIN: Message("Admin"),
    Role.EDITOR: Message("Editor"),
    Role.CONTRIBUTOR: Message("Contributor"),
    Role.VIEWER: Message("Viewer"),
}
_CLOSING = {")": "(", "]": "["}
# Punctuation that ends a sentence or a quotation rather than an address.
_TRAILING = frozenset(".,;:!?'*_~…·’”“„»«›‹、。，；：！？）】》」』")  # noqa: RUF001 - as people type


def queue_words(position: int | None) -> Message:
    """Return a position in the queue in words; 1 is next."""
    if position is None or position <= 1:
        return Message("Next in queue")
    return Message("Position %(position)s in queue", position=position)


def time_left(seconds: float | None) -> Message | None:
    """Return the remaining time in words, rounded so that it does not flicker."""
    if seconds is None:
        return None
    if seconds < 5:
        return Message("a few seconds left")
    if seconds < 60:
        return Message("about %(seconds)s s left", seconds=-(-int(seconds) // 5) * 5)
    if seconds < 3600:
        return Message("about %(minutes)s min left", minutes=round(seconds / 60))
    return Message("about %(hours)s h left", hours=numeral(seconds / 3600, 1))


def whole_seconds(duration_s: float) -> int:
    """Return a duration in whole seconds, at least 1, with halves rounded up as players do."""
    return max(1, floor(duration_s + 0.5))


def clock(duration_s: float) -> str:
    """Return a duration as players show it."""
    return position(whole_seconds(duration_s))


def position(at_s: float) -> str:
    """Return a time in a video as players show it, rounded down to a second."""
    minutes, second = divmod(floor(at_s), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def position_to_tenth(at_s: float) -> str:
    """Return a time in a video with its tenth of a second, unless that is zero."""
    seconds, tenth = divmod(floor(at_s * 10 + 0.5), 10)
    return f"{position(seconds)}.{tenth}" if tenth else position(seconds)


def moment_in_words(at: datetime) -> Message:
    """Return a point in time in words, in UTC."""
    utc = at.astimezone(UTC)
    return Message("%(date)s, %(time)s UTC", date=date_in_words(utc), time=utc.strftime("%H:%M"))


def bit_rate(rate_bps: int) -> Message:
    """Return a bit rate with the units of network providers."""
    if rate_bps < 1_000_000:
        return Message("%(rate)s kbit/s", rate=round(rate_bps / 1000))
    return Message("%(rate)s Mbit/s", rate=numeral(rate_bps / 1_000_000, 1))


def tenths(value: float) -> Message:
    """Return a number with one digit of its fraction."""
    return numeral(value, 1)


def views_in_words(views: int) -> Message:
    """Return a number of views as `1.2K views`, rounded down."""
    value = views
    unit = 0
    while value >= 1000 and unit < len(COUNT_UNITS):
        value //= 1000
        unit += 1
    if not unit:
        return PluralMessage("%(count)s view", "%(count)s views", count=views)
    tenths = views * 10 // 1000**unit % 10 if value < 10 else 0
    shown_value = numeral(value + tenths / 10, 1) if tenths else value
    return Message(COUNT_UNITS[unit - 1], number=shown_value)


def visibility_words(visibility: str) -> Message:
    """Return a visibility, or another one of `CHOICES`, in words, for a label."""
    return VISIBILITIES[visibility]


def role_words(role: str) -> Message:
    """Return a role in words, for a label."""
    return ROLES[Role(role)]


def linkify(text: str, times: DescribedTimes | None = None) -> Markup:
    """Return a text as markup: escaped, with links for addresses and for times in the video.

    Links of times start the player at that time, and show it if a cut has moved it.
    """
    return Markup("").join(_link_pieces(text, times))


def with_shown_times(text: str, times: DescribedTimes) -> str:
    """Return a description with the times of the film that viewers get."""
    return "".join(piece for piece, _ in _time_pieces(text, times))


FILTERS = (
    clock,
    linkify,
    position,
    position_to_tenth,
    shown,
    split_tags,
    whole_seconds,
    with_shown_times,
)
# Filters whose messages a page shows in its language.
WORDS = (
    bit_rate,
    moment_in_words,
    numeral,
    queue_words,
    role_words,
    size_in_words,
    tenths,
    time_left,
    views_in_words,
    visibility_words,
)


def _link_pieces(text: str, times: DescribedTimes | None) -> Iterator[Markup]:
    done = 0
    for match in _ADDRESS.finditer(text):
        address = _trim_address(match[0])
        if not _is_safe_address(address):
            continue
        yield from _link_times(text[done : match.start()], times)
        yield Markup('<a href="{0}" rel="{1}">{0}</a>').format(address, REL)
        done = match.start() + len(address)
    yield from _link_times(text[done:], times)


def _link_times(text: str, times: DescribedTimes | None) -> Iterator[Markup]:
    for piece, at_s in [(text, None)] if times is None else _time_pieces(text, times):
        if at_s is None:
            yield Markup.escape(piece)
        else:
            link = Markup('<a href="?t={}" data-seek="{}">{}</a>')
            yield link.format(int(at_s), round(at_s, 3), piece)


def _time_pieces(text: str, times: DescribedTimes) -> Iterator[tuple[str, float | None]]:
    """Yield a text in pieces: times in the video with their seconds, and what is between them."""
    done = 0
    for match, seconds in find_times(text):
        at_s = times.shown_s(seconds)
        if at_s is not None:
            yield text[done : match.start()], None
            moved = clock(at_s) if at_s >= 0.5 else "0:00"
            yield match[0] if at_s == seconds else moved, at_s
            done = match.end()
    yield text[done:], None


def _trim_address(address: str) -> str:
    """Return an address without the punctuation of its sentence; its own brackets stay."""
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


def _is_safe_address(address: str) -> bool:
    """Return whether an address has a host and no user name, which could look like a host."""
    parts = http_address(address) if len(address) <= MAX_ADDRESS_LENGTH else None
    return parts is not None and "@" not in parts.netloc
