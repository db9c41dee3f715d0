"""Response cache: answers many who ask for the same address with one response every two seconds.

Making a response takes ten times as long as sending it, and a video that many wait for is the
same for all of them. An address that few ask for is never answered from the cache. At one that is
asked for often, a response may be as old as `MAX_AGE_S`, the time until a page polls again. A
client that has just changed something gets no cached response, so that it sees its change; a
process knows only of the changes that went through it. Only responses are shared that their views
declare to be the same for everyone, by `allow_sharing`.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from cachetools import LRUCache, TTLCache

from portal.concurrency.single_flight import SingleFlight
from portal.errors import PortalError
from portal.web.server.asgi import (
    SAFE_METHODS,
    App,
    HTTPScope,
    Receive,
    Response,
    Scope,
    Send,
    header,
    on_start,
)
from portal.web.server.request_context import RequestState, state_of

MAX_AGE_S = 2.0
# So many requests in one such time make an address popular in the next one; a page asks once.
POPULAR = 2
# Addresses remembered, with a response each if they are popular.
MAX_ADDRESSES = 512
# Pages have some tens of kilobytes; what is larger goes to those who wait for it, and that is all.
MAX_KEPT_BYTES = 128 * 1024
MAX_CHANGERS = 20_000


def allow_sharing(scope: Scope) -> None:
    """Declare that the response to this request is the same for everyone.

    Called before it is made, so that an error is shared, too.
    """
    state_of(scope).is_shareable = True


@dataclass(frozen=True, slots=True)
class _Shared:
    """A response, and what its view said of it."""

    state: RequestState
    response: Response

    async def send(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        state = state_of(scope)
        state.is_frameable, state.route = self.state.is_frameable, self.state.route
        await self.response.send(receive, send)


class _Address:
    """How often an address is asked for, and the last response."""

    def __init__(self, now: float) -> None:
        self._counted_from = now
        self._asked = 1
        self._asked_before = 0
        self._last: _Shared | None = None
        self._made_at = now

    def ask(self, now: float) -> _Shared | None:
        """Count a request; returns the last response while it may be given out."""
        age_s = now - self._counted_from
        if age_s >= MAX_AGE_S:
            self._asked_before = self._asked if age_s < 2 * MAX_AGE_S else 0
            self._asked, self._counted_from = 0, now
        self._asked += 1
        return self._last if self._is_popular and now - self._made_at < MAX_AGE_S else None

    @property
    def _is_popular(self) -> bool:
        return self._asked_before >= POPULAR

    def keep(self, shared: _Shared, *, made_at: float) -> None:
        is_small = len(shared.response.body) <= MAX_KEPT_BYTES
        is_kept = self._is_popular and shared.response.status == 200 and is_small
        self._last, self._made_at = shared if is_kept else None, made_at


class ResponseCache:
    """Gives out shared responses; one for a process."""

    def __init__(self, app: App, *, clock: Callable[[], float] = monotonic) -> None:
        self._app = app
        self._clock = clock
        self._addresses: LRUCache[str, _Address] = LRUCache(MAX_ADDRESSES)
        self._under_way: SingleFlight[_Shared | None] = SingleFlight()
        self._changers: TTLCache[str, None] = TTLCache(MAX_CHANGERS, MAX_AGE_S, timer=clock)

    def __len__(self) -> int:
        return len(self._addresses)

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        client = state_of(scope).client
        if scope["method"] not in SAFE_METHODS:
            await self._app(scope, receive, on_start(send, lambda _: self._note_change(client)))
        elif scope["method"] != "GET" or client in self._changers:
            await self._app(scope, receive, send)
        elif shared := await self._share(scope):
            await shared.send(scope, receive, send)
        else:
            await self._app(scope, receive, send)
            if state_of(scope).is_shareable:
                self._addresses.setdefault(_key(scope), _Address(self._clock()))

    def _note_change(self, client: str) -> None:
        self._changers[client] = None

    async def _share(self, scope: HTTPScope) -> _Shared | None:
        """The shared response for this request; None if it is to be made for this client alone."""
        key = _key(scope)
        address = self._addresses.get(key)
        if address is None:
            return None
        return address.ask(self._clock()) or await self._under_way.get(
            key, lambda: self._make(address, scope)
        )

    async def _make(self, address: _Address, scope: HTTPScope) -> _Shared | None:
        made_at = self._clock()
        shared = _Shared(state_of(scope), Response())
        # It is made even if the client that asked first leaves.
        never = asyncio.get_running_loop().create_future
        # If they are refused, the others are not.
        with suppress(PortalError):
            await self._app(scope, never, shared.response.record)
        if not (shared.state.is_shareable and shared.response.status):
            return None
        address.keep(shared, made_at=made_at)
        return shared


def _key(scope: HTTPScope) -> str:
    return repr((header(scope, b"host"), scope["path"], scope["query_string"]))
