"""Counts what there may only be so much of, such as requests at once, in all and of each client."""

from __future__ import annotations

from collections import Counter


class Places:
    """A number of places, of which one client gets at most half."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._limit_each = max(1, limit // 2)
        self._taken = 0
        self._taken_by: Counter[str] = Counter()

    def take(self, client: str) -> bool:
        """Take a place if there is one."""
        if self._taken >= self._limit or self._taken_by[client] >= self._limit_each:
            return False
        self.occupy(client)
        return True

    def occupy(self, client: str) -> None:
        """Take a place even if there is none."""
        self._taken += 1
        self._taken_by[client] += 1

    def leave(self, client: str) -> None:
        """Give a place back."""
        self._taken -= 1
        self._taken_by[client] -= 1
        if not self._taken_by[client]:
            # Clients come and go; what remains of them must not add up.
            del self._taken_by[client]
