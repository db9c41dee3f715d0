"""Response cache: answers many who ask for the same address with one response every two seconds.

Making a response takes ten times as long as sending it, and a video that many wait for is the
same for all of them. An address that few ask for is never answered from the cache. At one that is
asked for often, a response may be as old as `MAX_AGE_S`, the time until a page polls again. A
client that has just changed something gets no cached response, so that it sees its change; a
process knows only of the changes that went through it. The answer to one by which someone is to
see less is held until no other process gives out anything older. Only responses are shared that
their views declare to be the same for everyone who sends no credentials, by `allow_sharing`; the
answer to credentials is for who sent them, and no cache on its way may keep it.
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
    SendEvent,
    Start,
    header,
    on_start,
)
from portal.web.server.credentials import has_credentials
from portal.web.server.request_context import RequestState, state_of

MAX_AGE_S = 2.0
# So many requests in one such time make an address popular in the next one; a page asks once.
POPULAR = 2
# Addresses remembered, with a response each if they are popular.
MAX_ADDRESSES = 512
# Pages have some tens of kilobytes; what is larger goes to those who wait for it, and that is all.
MAX_KEPT_BYTES = 128 * 1024
MAX_CHANGERS = 20_000
CACHE_CONTROL = b"cache-control"
# What an answer depends on beside the address: who asks.
VARY = (b"vary", b"Authorization, Cookie")


def allow_sharing(scope: Scope) -> None:
    """Declare that the response to this request is the same for everyone.

    Called before it is made, so that an error is shared, too.
    """
    state_of(scope).is_shareable = True


def forget_shared(scope: Scope, *, is_less_seen: bool = True) -> None:
    """Declare that this request changed who may see what: nothing made before is given out.

    Other processes learn nothing of it. Where something may be seen by fewer people than before,
    they give out nothing that is older by the time it is answered.
    """
    state = state_of(scope)
    state.forgets_shared, state.is_less_seen = True, is_less_seen


@dataclass(frozen=True, slots=True)
class _Shared:
    """A response, and what its view said of it."""

    state: RequestState
    response: Response

    async def send(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        state = state_of(scope)
        state.framed_by, state.route = self.state.framed_by, self.state.route
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

    def __init__(
        self, app: App, *, clock: Callable[[], float] = monotonic, hold_s: float = MAX_AGE_S
    ) -> None:
        self._app = app
        self._clock = clock
        self._hold_s = hold_s
        self._addresses: LRUCache[str, _Address] = LRUCache(MAX_ADDRESSES)
        # Counts what was forgotten: what is on its way meanwhile is for those who ask already.
        self._generation = 0
        self._under_way: SingleFlight[_Shared | None] = SingleFlight()
        self._changers: TTLCache[str, None] = TTLCache(MAX_CHANGERS, MAX_AGE_S, timer=clock)

    def __len__(self) -> int:
        return len(self._addresses)

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        client, send = state_of(scope).client, on_start(send, _tell_what_it_depends_on)
        if has_credentials(scope):
            send = on_start(self._held(scope, send), _mark_private)
            await self._app(scope, receive, send)
        elif scope["method"] not in SAFE_METHODS:
            send = on_start(self._held(scope, send), lambda _: self._note_change(client))
            await self._app(scope, receive, send)
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

    def _held(self, scope: HTTPScope, send: Send) -> Send:
        """As `send`; what is to be forgotten is, here at once and elsewhere by age."""
        state = state_of(scope)

        async def sent(message: SendEvent) -> None:
            if message["type"] == "http.response.start" and state.forgets_shared:
                self._addresses.clear()
                self._generation += 1
                await asyncio.sleep(self._hold_s if state.is_less_seen else 0)
            await send(message)

        return sent

    async def _share(self, scope: HTTPScope) -> _Shared | None:
        """The shared response for this request; None if it is to be made for this client alone."""
        key = _key(scope)
        address = self._addresses.get(key)
        if address is None:
            return None
        # Nobody joins what was begun so long ago that its end would not be kept.
        begun = f"{self._generation} {self._clock() // MAX_AGE_S}"
        return address.ask(self._clock()) or await self._under_way.get(
            f"{begun} {key}", lambda: self._make(address, scope)
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


def _tell_what_it_depends_on(start: Start) -> None:
    """So that no cache on its way gives nobody's answer to someone, but for what says public."""
    if not any(it[0] == CACHE_CONTROL and b"public" in it[1] for it in start["headers"]):
        start["headers"] = [*start["headers"], VARY]


def _mark_private(start: Start) -> None:
    found = [it for it in start["headers"] if it[0] != CACHE_CONTROL]
    said = b", ".join(value for name, value in start["headers"] if name == CACHE_CONTROL)
    start["headers"] = [*found, (CACHE_CONTROL, _private(said))]


def _private(cache_control: bytes) -> bytes:
    if not cache_control:
        return b"private, no-store"
    is_said = b"private" in cache_control or b"no-store" in cache_control
    return cache_control if is_said else b"private, " + cache_control


def _key(scope: HTTPScope) -> str:
    return repr((header(scope, b"host"), scope["path"], scope["query_string"]))
