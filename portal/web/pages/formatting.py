"""Times, sizes and places in a queue as people read them; pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor

from portal.text import size_in_words


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time for a <time> element: for programs, and in words (UTC)."""

    iso: str
    words: str


@dataclass(frozen=True, slots=True)
class Size:
    """A size for a <data> element: in bytes, and in words."""

    size_bytes: int
    words: str


def queue_words(position: int | None) -> str:
    """Where in the queue; position 1 is next."""
    if position is None or position <= 1:
        return "Next in line"
    return "1 video ahead" if position == 2 else f"{position - 1} videos ahead"


def time_left(seconds: float | None) -> str | None:
    """Coarse enough not to flicker."""
    if seconds is None:
        return None
    if seconds < 5:
        return "a few seconds left"
    if seconds < 60:
        return f"about {-(-int(seconds) // 5) * 5} s left"
    if seconds < 3600:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"


def whole_seconds(duration_s: float) -> int:
    """A duration as it is told, by the player, too: to the nearest second, halves upward.

    Never as none, for whatever plays takes some time.
    """
    return max(1, floor(duration_s + 0.5))


def clock(duration_s: float) -> str:
    """A duration as players show it."""
    minutes, second = divmod(whole_seconds(duration_s), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def size(size_bytes: int) -> Size:
    """A size, for programs and for people."""
    return Size(size_bytes, size_in_words(size_bytes))


def moment(at: datetime) -> Moment:
    """A point in time, for programs and for people."""
    utc = at.astimezone(UTC)
    return Moment(iso=utc.isoformat(), words=f"{utc.day} {utc:%b %Y, %H:%M} UTC")


def bit_rate(rate_bps: int) -> str:
    """A rate of bits as networks are sold by it."""
    if rate_bps < 1_000_000:
        return f"{round(rate_bps / 1000)} kbit/s"
    return f"{rate_bps / 1_000_000:.1f} Mbit/s"
