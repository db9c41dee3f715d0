"""Rate limit: how much one client may ask for in a minute, by token buckets.

They are in the memory of each web process, because a poll must not cost a write to the database:
with several web processes a client may ask for as many times as much. No office of editors and no
audience behind one address should ever meet the limits.

A client is an account where the request carries its credentials, else an address. All tokens and
sessions of an account are one client: whoever needs more would only make another token. Whose they
are is known from the first request on in which the app found them valid. Before that, and with
what is not valid, the address counts, so that sending made-up tokens gains nothing.
"""

import re
from collections.abc import Callable
from enum import Enum
from math import ceil
from time import monotonic

from cachetools import LRUCache, TTLCache

from portal.config import Config
from portal.errors import TooManyRequests
from portal.web.server.asgi import SAFE_METHODS, App, HTTPScope, Receive, Send
from portal.web.server.credentials import credential_digests
from portal.web.server.request_context import state_of

# Clients remembered for each budget, the latest; someone with more addresses than that gains
# nothing but full buckets, and takes some megabytes.
MAX_CLIENTS = 20_000
# So that a client that waits exactly as long as told gets through.
ROUNDING = 1e-6
# Credentials that were revoked count for their account so much longer; only counting depends on it.
IDENTIFIED_S = 60


class Budget(Enum):
    """What requests are counted as, by the setting of its limit."""

    CHANGES = "rate_limit_changes"
    PARTS = "rate_limit_parts"
    SEARCHES = "rate_limit_searches"
    READS = "rate_limit_reads"


FREE = re.compile(r"/healthz|/readyz|/static/.*")
# Each asks storage for its list of parts, or is one of thousands for a large file.
PARTS = re.compile(r"(GET|HEAD) /api/uploads/[^/]+|POST /api/uploads/[^/]+/parts/[^/]+")

# A link, which keeps something all the same: that someone left for the provider of single sign-on.
LEAVING = "/sign-in/oidc"


class RateLimit:
    """Refuses requests of a client that has used up the budget it asks from; 0 is no limit."""

    def __init__(self, app: App, *, config: Config) -> None:
        self._app = app
        limits = {budget: getattr(config, budget.value) for budget in Budget}
        self._buckets = {it: TokenBuckets(limit) for it, limit in limits.items() if limit}
        self._accounts = Accounts()

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        budget = budget_of(scope)
        buckets = self._buckets.get(budget) if budget else None
        if buckets is None:
            await self._app(scope, receive, send)
            return
        account = self._accounts.of(scope)
        if wait_s := buckets.take(account or state_of(scope).client):
            raise TooManyRequests(ceil(wait_s), of="account" if account else "address")
        await self._app(scope, receive, send)
        self._accounts.note(scope)


class Accounts:
    """Whose credentials are whose, as the app found them in the last minute."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._known: TTLCache[str, str] = TTLCache(MAX_CLIENTS, IDENTIFIED_S, timer=clock)

    def of(self, scope: HTTPScope) -> str:
        """The account that a request is counted for; empty where that is not known."""
        for it in credential_digests(scope):
            if account := self._known.get(it):
                return account
        return ""

    def note(self, scope: HTTPScope) -> None:
        """Remember what the app has found out about a request."""
        if identified := state_of(scope).identified:
            credential, account = identified
            self._known[credential] = account


class TokenBuckets:
    """A bucket for each client, full at first; a minute fills it again."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._size = float(per_minute)
        self._per_s = per_minute / 60
        self._clock = clock
        # Tokens left and since when, for each client.
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(MAX_CLIENTS)

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str) -> float:
        """Take one token. Returns 0, or after how many seconds there is one."""
        now = self._clock()
        tokens, since = self._buckets.get(client, (self._size, now))
        tokens = min(self._size, tokens + (now - since) * self._per_s)
        is_taken = tokens >= 1 - ROUNDING
        self._buckets[client] = (tokens - 1 if is_taken else tokens, now)
        return 0 if is_taken else (1 - tokens) / self._per_s


def budget_of(scope: HTTPScope) -> Budget | None:
    """The budget that pays for a request, if any does."""
    method, path = scope["method"], scope["path"]
    if FREE.fullmatch(path):
        return None
    if PARTS.fullmatch(f"{method} {path}"):
        return Budget.PARTS
    if path == "/" and scope["query_string"]:
        return Budget.SEARCHES
    if path == LEAVING:
        return Budget.CHANGES
    return Budget.READS if method in SAFE_METHODS else Budget.CHANGES
