"""Capacity: counts what there may only be so much of, in all and of each client."""

from collections import Counter


class Capacity:
    """A number of slots, of which one client gets at most half."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._limit_each = max(1, limit // 2)
        self._used = 0
        self._used_by: Counter[str] = Counter()

    def acquire(self, client: str) -> bool:
        """Take a slot if there is one."""
        if self._used >= self._limit or self._used_by[client] >= self._limit_each:
            return False
        self.force(client)
        return True

    def force(self, client: str) -> None:
        """Take a slot even if there is none."""
        self._used += 1
        self._used_by[client] += 1

    def release(self, client: str) -> None:
        """Give a slot back."""
        self._used -= 1
        self._used_by[client] -= 1
        if not self._used_by[client]:
            # Clients come and go; what remains of them must not add up.
            del self._used_by[client]
