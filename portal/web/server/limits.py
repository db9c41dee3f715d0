"""Limits on requests: the size of their bodies, how many at once, and how many in a minute.

Reads are not limited in number: the proxy in front knows crowds better. Counts are in the memory
of each web process, so with several a client may ask for as many times as much.
"""

import re
from collections import Counter
from math import ceil
from time import time
from typing import Any

from quart import Request, request

from portal.errors import Overloaded, TooManyRequests
from portal.transcoding.captions.faults import MAX_FILE_BYTES

# Media are sent to storage, never here. Pictures for posters and captions are: they are small, and
# forms that send them work without scripts, which an address of storage would not.
MAX_BODY_BYTES = 64 * 1024
MAX_PICTURE_BYTES = 10_000_000
BODY_TIMEOUT_S = 20
# At a megabit a second.
FILE_TIMEOUT_S = 100
# By the addresses that take files, the most bytes of one.
TAKES_FILES = {
    re.compile(r"/videos/[^/]+/poster/picture(?:/panel)?"): MAX_PICTURE_BYTES,
    # The form that checks captions sends their file back as text (base64).
    re.compile(r"(?:/api)?/videos/[^/]+/(?:captions(?:/.*)?|chapters)"): MAX_FILE_BYTES * 4 // 3,
}
# Quick, and in need of nothing that may be overloaded.
ALWAYS_ANSWERED = ("/healthz", "/metrics", "/static/")
WINDOW_S = 60


class LimitedRequest(Request):
    """A request whose body is limited by its address, before anything of it is read."""

    def __init__(self, method: str, scheme: str, path: str, *rest: Any, **values: Any) -> None:
        for addresses, size_bytes in TAKES_FILES.items():
            if addresses.fullmatch(path):
                # What a form adds to its file is less than any other body.
                values["max_content_length"] += size_bytes
                values["body_timeout"] = FILE_TIMEOUT_S
        super().__init__(method, scheme, path, *rest, **values)
        # The parser of forms has limits of its own, which are the app's if there are no others.
        self.max_content_length = values.get("max_content_length")
        self.max_form_memory_size = self.max_content_length


class ConcurrencyLimit:
    """Lets `limit` requests be worked on at once, and raises `Overloaded` for others.

    What is counted is the time until a response begins.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._requests: set[int] = set()

    def enter(self) -> None:
        """Count the current request, unless it is quick whatever happens."""
        if request.path.startswith(ALWAYS_ANSWERED):
            return
        if len(self._requests) >= self._limit:
            raise Overloaded
        self._requests.add(id(request.scope))

    async def leave(self, _: BaseException | None) -> None:
        """Forget the current request, which has ended in whatever way."""
        self._requests.discard(id(request.scope))


class RateLimit:
    """At most `per_minute` requests of one client in each minute of the clock; 0 is no limit.

    A fixed window: what is counted of the last minute is forgotten as a whole, so that memory
    doesn't grow with the number of addresses that somebody has.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._window = 0
        self._counts: Counter[str] = Counter()

    def count(self, client: str, *, of: str = "address") -> None:
        """Count a request; raises `TooManyRequests` if there were too many."""
        if not self._per_minute:
            return
        now = time()
        if now // WINDOW_S != self._window:
            self._window = int(now // WINDOW_S)
            self._counts.clear()
        self._counts[client] += 1
        if self._counts[client] > self._per_minute:
            raise TooManyRequests(ceil((self._window + 1) * WINDOW_S - now) or 1, of=of)
