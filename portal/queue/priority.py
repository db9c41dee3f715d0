"""Whose turn it is: priorities of the queue's jobs. Pure.

What is soon done goes first, and nothing waits for ever: each video has a time by which it is due,
and the one due earliest goes next. That time is when the video began to wait plus an allowance.

Of files that wait for a look the allowance grows with the square root of their size, which is all
that is known of them:

    1 MB  1 hour      100 MB  10 hours      1 GB  1.3 days      100 GB  13 days

Of encodes it is so many times what the first pass is expected to take on the worker that looked:

    2 s  7 minutes      1 minute  3.3 hours      10 minutes  1.4 days      2 hours or more  14 days

So a hundred long videos sent at once do not hold up a short one that comes after them: they are
due long after it, and worked off before they are. A long one in turn is overtaken by short ones
only until it is due. A pass under way gives way to a first pass that is due before it
(`processing.encoding`); equal videos go first come, first served; a job that is released or tried
again keeps its place. Ladders are completed, in the order of their files' sizes, when no video
waits for its first pass.
"""

from datetime import UTC, datetime
from math import sqrt

MB = 1_000_000
ALLOWANCE_S = 3600
ALLOWANCE_PER_ENCODE_S = 200
MAX_ALLOWANCE_S = 14 * 24 * 3600
# The queue's priorities are 32 bits wide; seconds since then are enough until 2050.
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
COMPLETION_OFFSET = 1_000_000_000


def look_priority(size_bytes: int, *, since: datetime) -> int:
    """The priority of looking into a file that waits since then; the highest goes first."""
    return _priority(since, ALLOWANCE_S * sqrt(size_bytes / MB))


def encode_priority(expected_s: float, *, since: datetime) -> int:
    """The priority of a first pass that encodes, and is expected to take so long."""
    return _priority(since, min(MAX_ALLOWANCE_S, ALLOWANCE_PER_ENCODE_S * expected_s))


def completion_priority(size_bytes: int, *, since: datetime) -> int:
    """The priority of completing a ladder: after every first pass."""
    return look_priority(size_bytes, since=since) - COMPLETION_OFFSET


def _priority(since: datetime, allowance_s: float) -> int:
    return -round((since - EPOCH).total_seconds() + allowance_s)
