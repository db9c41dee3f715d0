"""Answers a crowd that asks for the same address with one answer every two seconds.

To work out an answer takes ten times as long as to send it, and a video that many wait for is the
same for all of them. Who asks alone always gets the newest; of what is asked for often, an answer
may be as old as `MAX_AGE_S`, the time until a page asks again. Whoever has just changed
something is never given what was made for others, so that they see what they did; a process
knows only of the changes that it made itself.

ASGI middleware: what is shared does not reach the framework. Shared are only the answers that
their views declare to be the same for everyone, by `allow_sharing`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from cachetools import LRUCache, TTLCache

from portal.web.server.clients import client_of
from portal.web.server.origins import SAFE_METHODS
from portal.web.server.request_context import FRAMEABLE, ROUTE, send_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypercorn.typing import (
        ASGIReceiveCallable,
        ASGISendCallable,
        ASGISendEvent,
        HTTPScope,
        Scope,
    )

    from portal.web.server.request_context import AsgiApp, Headers

MAX_AGE_S = 2.0
# So many askers in one such time make a crowd in the next one; a single page asks once.
CROWD = 2
# Addresses remembered, with an answer each if there is a crowd before it.
MAX_ADDRESSES = 512
# Pages have some tens of kilobytes; what is larger goes to those who wait for it, and that is all.
MAX_KEPT_BYTES = 128 * 1024
MAX_CHANGERS = 20_000
# In a request's scope: whether its answer is the same for everyone who asks.
SHARED = "portal.shared"
# What views tell of an answer by their request's scope, and goes with it.
MARKS = (FRAMEABLE, ROUTE)

_Address = tuple[str, bytes, bytes]


def allow_sharing(scope: Scope) -> None:
    """Let a crowd share the answer to this request, whose ASGI scope it is.

    Called before there is an answer: a failure is everyone's who waits for it, too.
    """
    cast("dict[str, Any]", scope)[SHARED] = True


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Headers
    body: bytes
    marks: dict[str, Any]

    @property
    def is_kept(self) -> bool:
        return self.status == 200 and len(self.body) <= MAX_KEPT_BYTES

    async def send(self, scope: HTTPScope, send: ASGISendCallable) -> None:
        cast("dict[str, Any]", scope).update(self.marks)
        await send_whole(send, self.status, self.headers, self.body)


class _Crowd:
    """Those before one address: how many they are, their last answer, and the one to come."""

    def __init__(self, now: float) -> None:
        self._counted_from = now
        self._asked = 1
        self._asked_before = 0
        self._answer: _Answer | None = None
        self._made_at = float("-inf")
        self.coming: asyncio.Future[_Answer | None] | None = None

    def count(self, now: float) -> None:
        age_s = now - self._counted_from
        if age_s >= MAX_AGE_S:
            self._asked_before = self._asked if age_s < 2 * MAX_AGE_S else 0
            self._asked, self._counted_from = 0, now
        self._asked += 1

    def answer(self, now: float) -> _Answer | None:
        """The last answer, while it may be given out."""
        is_fresh = self._is_crowd and now - self._made_at < MAX_AGE_S
        return self._answer if is_fresh else None

    def keep(self, answer: _Answer | None, *, made_at: float) -> None:
        is_good = answer is not None and answer.is_kept and self._is_crowd
        self._answer, self._made_at = (answer, made_at) if is_good else (None, float("-inf"))

    @property
    def _is_crowd(self) -> bool:
        return self._asked_before >= CROWD


class Crowds:
    """Wraps an ASGI app; one for a process."""

    def __init__(self, app: AsgiApp, *, clock: Callable[[], float] = monotonic) -> None:
        self._app = app
        self._clock = clock
        self._crowds: LRUCache[_Address, _Crowd] = LRUCache(MAX_ADDRESSES)
        self._changers: TTLCache[str, None] = TTLCache(MAX_CHANGERS, MAX_AGE_S, timer=clock)

    def __len__(self) -> int:
        return len(self._crowds)

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] not in SAFE_METHODS:
            await self._app(scope, receive, self._noting_change(scope, send))
        elif scope["method"] != "GET" or client_of(scope) in self._changers:
            await self._app(scope, receive, send)
        else:
            await self._get(scope, receive, send)

    def _noting_change(self, scope: HTTPScope, send: ASGISendCallable) -> ASGISendCallable:
        async def sent(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                self._changers[client_of(scope)] = None
            await send(message)

        return sent

    async def _get(
        self, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        address = _address(scope)
        crowd = self._crowds.get(address)
        if crowd is None:
            await self._app(scope, receive, send)
            if SHARED in scope:
                self._crowds.setdefault(address, _Crowd(self._clock()))
            return
        crowd.count(self._clock())
        answer = crowd.answer(self._clock())
        while answer is None:
            if crowd.coming is None:
                await self._lead(crowd, scope, receive, send)
                return
            # One that goes away must not take the answer from the others.
            answer = await asyncio.shield(crowd.coming)
        await answer.send(scope, send)

    async def _lead(
        self,
        crowd: _Crowd,
        scope: HTTPScope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
    ) -> None:
        """Get an answer, for oneself and for those who come meanwhile."""
        coming = crowd.coming = asyncio.get_running_loop().create_future()
        begun_at = self._clock()

        def arrive(answer: _Answer | None) -> None:
            if not coming.done():
                crowd.keep(answer, made_at=begun_at)
                crowd.coming = None
                coming.set_result(answer)

        try:
            await self._app(scope, receive, _listening(scope, send, arrive))
        finally:
            # When there was none, as for who went away, the next one gets it.
            arrive(None)


def _listening(
    scope: HTTPScope, send: ASGISendCallable, arrive: Callable[[_Answer | None], None]
) -> ASGISendCallable:
    """Passes messages on; `arrive` is told the answer before that, for clients may be slow."""
    status, headers, body = 0, [], b""

    async def sent(message: ASGISendEvent) -> None:
        nonlocal status, headers, body
        if message["type"] == "http.response.start":
            status, headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            body += message["body"]
            if not message["more_body"]:
                marks = {mark: value for mark, value in scope.items() if mark in MARKS}
                arrive(_Answer(status, headers, body, marks) if SHARED in scope else None)
        await send(message)

    return sent


def _address(scope: HTTPScope) -> _Address:
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return scope["path"], scope["query_string"], host
