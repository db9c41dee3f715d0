"""How much one client may ask for: token buckets, in the memory of each web process.

Not shared between processes, because a poll must not cost a write to the database: with several
web processes a client may ask for as many times as much. What counts as one client says
`clients`. Limits that no office of editors and no crowd behind one address should ever meet; what
a crowd shares (`crowds`) costs next to nothing, and is not counted.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING

from cachetools import LRUCache
from quart import request

from portal.errors import TooManyRequests
from portal.telemetry.logs import Tally
from portal.web.server.clients import client_of
from portal.web.server.origins import SAFE_METHODS
from portal.web.server.request_context import refuse_quietly

if TYPE_CHECKING:
    from collections.abc import Callable

    from portal.config import Config

logger = logging.getLogger(__name__)

# Clients remembered for each budget, the latest; someone with more addresses than that gains
# nothing but full buckets, and takes some megabytes.
MAX_CLIENTS = 20_000
# So that who waits exactly as long as told gets through.
ROUNDING = 1e-6


class Budget(Enum):
    """What requests are counted as."""

    CHANGES = auto()
    PARTS = auto()
    SEARCHES = auto()
    READS = auto()
    FREE = auto()


# By endpoint where the method does not say it. `FREE` asks nothing of anyone.
BUDGETS = {
    "health.healthz": Budget.FREE,
    "health.readyz": Budget.FREE,
    "static_files.static_file": Budget.FREE,
    # Each asks storage for its list of parts, or is one of thousands for a large file.
    "uploads.get_upload": Budget.PARTS,
    "uploads.sign_part": Budget.PARTS,
}
LIBRARY = "library.index"


class TokenBuckets:
    """A bucket for each client, full at first; a minute fills it again."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._size = float(per_minute)
        self._per_s = per_minute / 60
        self._clock = clock
        # Tokens left and since when, for each client.
        self._buckets: LRUCache[str, list[float]] = LRUCache(MAX_CLIENTS)

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str) -> float:
        """Take one token. Returns 0, or after how many seconds there is one."""
        now = self._clock()
        bucket = self._buckets.get(client)
        if bucket is None:
            self._buckets[client] = [self._size - 1, now]
            return 0
        tokens = min(self._size, bucket[0] + (now - bucket[1]) * self._per_s)
        bucket[1] = now
        if tokens < 1 - ROUNDING:
            bucket[0] = tokens
            return (1 - tokens) / self._per_s
        bucket[0] = tokens - 1
        return 0


class RateLimits:
    """The buckets of a process, as its settings want them."""

    def __init__(self, config: Config) -> None:
        per_minute = {
            Budget.CHANGES: config.rate_limit_changes,
            Budget.PARTS: config.rate_limit_parts,
            Budget.SEARCHES: config.rate_limit_searches,
            Budget.READS: config.rate_limit_reads,
        }
        self._buckets = {
            budget: TokenBuckets(limit) for budget, limit in per_minute.items() if limit
        }
        self._refused = Tally(logger, "Requests over a client's limit", action="too_many_requests")

    async def refuse_excess(self) -> None:
        """Raise `TooManyRequests` when the client at hand has used up what it is asking for."""
        buckets = self._buckets.get(_budget())
        wait_s = buckets.take(client_of(request.scope)) if buckets is not None else 0
        if wait_s:
            self._refused.add()
            refuse_quietly(request.scope)
            raise TooManyRequests(ceil(wait_s))


def _budget() -> Budget:
    endpoint = request.endpoint or ""
    if endpoint == LIBRARY and request.query_string:
        return Budget.SEARCHES
    by_method = Budget.READS if request.method in SAFE_METHODS else Budget.CHANGES
    return BUDGETS.get(endpoint, by_method)
