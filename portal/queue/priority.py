"""Whose turn it is: priorities of the queue's jobs. Pure.

Small files go first, and no file waits for ever: each video has a time by which it is due, and
the one due earliest goes next. That time is when it was created plus an allowance that grows with
the square root of the file's size, which is all that is known of the work before a worker looks:

    1 MB  1 hour      100 MB  10 hours      1 GB  1.3 days      100 GB  13 days

So a hundred long videos sent at once do not hold up a short one that comes after them: they are
due long after it, and worked off before they are. A long one in turn is overtaken by short ones
only until it is due. A pass under way is never interrupted; equal videos go first come, first
served; a job that is released or tried again keeps its place. Ladders are completed, in the same
order, when no video waits to be made playable.
"""

from datetime import UTC, datetime
from math import sqrt

MB = 1_000_000
ALLOWANCE_S = 3600
# The queue's priorities are 32 bits wide; seconds since then are enough until 2050.
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
COMPLETION_OFFSET = 1_000_000_000


def first_pass_priority(size_bytes: int, *, since: datetime) -> int:
    """The priority of making a file playable that waits since then; the highest goes first."""
    allowance_s = ALLOWANCE_S * sqrt(size_bytes / MB)
    return -round((since - EPOCH).total_seconds() + allowance_s)


def completion_priority(size_bytes: int, *, since: datetime) -> int:
    """The priority of completing a ladder: after every first pass."""
    return first_pass_priority(size_bytes, since=since) - COMPLETION_OFFSET
