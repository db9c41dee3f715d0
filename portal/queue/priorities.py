"""Priorities of jobs: the order in which workers begin them.

Short work goes first, and no video waits for ever: each video has a due time, and the one due
earliest goes next. The due time is when the video began to wait plus an allowance.

For files that wait to be probed the allowance grows with the square root of the file's size, since
nothing else is known of them yet:

    1 MB  1 hour      100 MB  10 hours      1 GB  1.3 days      100 GB  13 days

For encodes it is a multiple of the expected time of the first pass on the worker that probed:

    2 s  7 minutes      1 minute  3.3 hours      10 minutes  1.4 days      2 hours or more  14 days

So a hundred long videos sent at once don't hold up a short one that arrives after them, and short
videos overtake a long one only until it is due. A running pass gives way to a first pass that is
due before it (`films.encoding`). Equal videos go first come, first served; a released or
repeated job keeps its place. Ladders are completed, in the order of their files' sizes, when no
video waits for its first pass. When no job waits, several workers share a pass.

No requester delays the others by more than a few jobs. After some in a short time, of any kind and
whether or not they still wait, further ones are due later than almost everything that others
request meanwhile (`jobs.MANY_JOBS`). Among these further ones the same order holds.
"""

from datetime import UTC, datetime, timedelta
from math import sqrt

MB = 1_000_000
ALLOWANCE_S = 3600
ALLOWANCE_PER_ENCODE_S = 200
MAX_ALLOWANCE_S = 14 * 24 * 3600
# Start of the seconds that priorities count. Priorities have 32 bits, which last until 2050.
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
COMPLETION_OFFSET = 1_000_000_000
# Offset that puts slow imports behind all others.
SLOW_IMPORT_OFFSET = 1_000_000_000
# Priority behind all other jobs, within 32 bits.
SHARE_PRIORITY = -2_000_000_000


def look_priority(size_bytes: int, *, since: datetime) -> int:
    """Return the priority of probing a file that waits since then. The highest goes first."""
    return due_priority(since, _look_allowance_s(size_bytes))


def encode_priority(expected_s: float, *, since: datetime) -> int:
    """Return the priority of a first pass that encodes for the expected time."""
    return due_priority(since, min(MAX_ALLOWANCE_S, ALLOWANCE_PER_ENCODE_S * expected_s))


def completion_priority(size_bytes: int, *, since: datetime) -> int:
    """Return the priority of completing a ladder, which is below that of every first pass."""
    return look_priority(size_bytes, since=since) - COMPLETION_OFFSET


def slow_import_priority(priority: int) -> int:
    """Return the priority of an import after it proved slow, behind those that did not."""
    return priority if priority < -SLOW_IMPORT_OFFSET else priority - SLOW_IMPORT_OFFSET


def _look_allowance_s(size_bytes: int) -> float:
    return ALLOWANCE_S * sqrt(size_bytes / MB)


def due_priority(since: datetime, allowance_s: float) -> int:
    """Return the priority of a job that is due some seconds after a time."""
    return -round((since - EPOCH).total_seconds() + allowance_s)


def waiting_since(priority: int, size_bytes: int) -> datetime:
    """Return the time from which the priority of probing a file was counted."""
    return EPOCH + timedelta(seconds=-priority - _look_allowance_s(size_bytes))
