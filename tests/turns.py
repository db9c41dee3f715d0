"""Lets test processes that run side by side take turns at what may be done only once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Any file of the checkout will do: the lock is on it, not in it.
LOCKED = Path(__file__)


@contextmanager
def in_turn() -> Iterator[None]:
    """Wait until no other process of this checkout is inside, and keep the others out."""
    with LOCKED.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
