"""Limits on requests: the size of bodies, concurrent requests, and requests per minute.

Routes declare the body and the rate limit that differ from the usual ones (`http.auth.policy`).
The proxy in front limits plain reads. Counts are in the memory of each web process, so with several
processes a client may send several times as many requests.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from math import ceil
from time import time
from typing import Any

from quart import Request, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

from portal.errors import Overloaded, TooManyRequests
from portal.http.server.context import SAFE_METHODS, networks_of

# Largest body of most routes. Media are sent to storage.
MAX_BODY_BYTES = 64 * 1024
BODY_TIMEOUT_S = 20
# Time for the largest file at a megabit per second.
FILE_TIMEOUT_S = 100
# Paths of quick responses, which the concurrency limit leaves out.
ALWAYS_ANSWERED = ("/healthz", "/metrics", "/static/")
WINDOW_S = 60
# Limit of a network in which a client has many addresses, as a multiple of the next narrower one's.
WIDER_NETWORK_FACTOR = 4


class Rate(Enum):
    """Requests of a route that count towards a rate limit.

    Routes that declare none count their changes, and nothing else.
    """

    # Any request: an attempt to sign in, counted by address.
    SIGN_IN = auto()
    # A request with a text to search for.
    SEARCH = auto()
    # A request with any parameter.
    LISTING = auto()
    # Any request: a player's report, counted by address.
    REPORTS = auto()
    # Any request: for a file to save, counted by address.
    DOWNLOADS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Request body of a route: its content types, and the size of the file in it, if any.

    Towards the rate limit of an address, each `lines_per_request` lines count as a request. With 0
    any body counts as one.
    """

    content_types: tuple[str, ...] = ("application/json",)
    max_file_bytes: int = 0
    lines_per_request: int = 0

    async def cost(self) -> int:
        """Return the number of requests as which the current one counts."""
        if not self.lines_per_request:
            return 1
        body: bytes = await request.get_data(cache=True, as_text=False, parse_form_data=False)
        return ceil((body.count(b"\n") + 1) / self.lines_per_request)


class BodyLimits:
    """Limits of the bodies of an app's routes, found before anything of a body is read."""

    def __init__(self, routes: Iterable[tuple[Rule, Body]], routing: Map) -> None:
        files = [(rule, body) for rule, body in routes if body.max_file_bytes]
        self._max_file_bytes = {rule.endpoint: body.max_file_bytes for rule, body in files}
        rules = [Rule(rule.rule, endpoint=rule.endpoint, methods=rule.methods) for rule, _ in files]
        self._adapter = Map(rules, converters=routing.converters).bind("")

    def max_file_bytes(self, method: str, path: str) -> int:
        """Return the size of the largest file that a request may send; 0 if it may send none."""
        # Saves frequent reads the second matching of their route.
        if method in SAFE_METHODS:
            return 0
        try:
            endpoint, _ = self._adapter.match(path, method)
        except HTTPException:
            return 0
        return self._max_file_bytes[endpoint]


def limited_request_class(limits: BodyLimits) -> type[Request]:
    """Return a class of requests with these limits."""

    class LimitedRequest(Request):
        def __init__(
            self, method: str, scheme: str, path: str, *arguments: Any, **values: Any
        ) -> None:
            if max_file_bytes := limits.max_file_bytes(method, path):
                # A form adds less to its file than the limit of other bodies.
                values["max_content_length"] += max_file_bytes
                values["body_timeout"] = FILE_TIMEOUT_S
            super().__init__(method, scheme, path, *arguments, **values)
            # The form parser has separate limits, which default to the app's.
            self.max_content_length = values.get("max_content_length")
            self.max_form_memory_size = self.max_content_length

    return LimitedRequest


class ConcurrencyLimit:
    """Limit on the requests of a process that wait for the beginning of their response."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._requests: set[int] = set()

    def enter(self) -> None:
        """Count the current request, unless its path is exempt. Raise `Overloaded`."""
        if request.path.startswith(ALWAYS_ANSWERED):
            return
        if len(self._requests) >= self._limit:
            raise Overloaded
        self._requests.add(id(request.scope))

    async def leave(self, _: BaseException | None) -> None:
        """Stop counting the current request, which has ended with or without an error."""
        self._requests.discard(id(request.scope))


class RateLimit:
    """Limit on the requests of a client in each minute of the clock; 0 means none.

    The wider networks of an IPv6 client have limits, too. All counts are dropped at the beginning
    of a minute, so that an attacker with many addresses can't fill the memory.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._window = 0
        self._counts: Counter[str] = Counter()

    def count(self, client: str, *, cost: int = 1, is_account: bool = False) -> None:
        """Add the cost of a request to the count of its client, an IP address or an account's id.

        Raises `TooManyRequests` if the count is then over the limit, also for refused requests.
        Its message names the account or the address.
        """
        if not self._per_minute:
            return
        now = time()
        if now // WINDOW_S != self._window:
            self._window = int(now // WINDOW_S)
            self._counts.clear()
        limit = self._per_minute
        for network in networks_of(client):
            self._counts[network] += cost
            if self._counts[network] > limit:
                wait_s = ceil((self._window + 1) * WINDOW_S - now) or 1
                raise TooManyRequests(wait_s, is_of_account=is_account)
            limit *= WIDER_NETWORK_FACTOR
