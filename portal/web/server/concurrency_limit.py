"""Lets in as many requests at once as a process can work on, and turns the others away at once.

Below the framework, so that a refusal costs next to nothing when it matters. What is counted is
the time until an answer begins; how long a client takes to read it is for `connections`. Requests
whose bodies are still on their way are counted apart, so that clients that send slowly keep out
nobody but each other. One client gets no more than half of either.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from portal.errors import Overloaded, PortalError, TooManyHeaders
from portal.telemetry.logs import Tally
from portal.web.server.capacity import Places
from portal.web.server.origins import SAFE_METHODS
from portal.web.server.request_context import refuse_quietly

if TYPE_CHECKING:
    from hypercorn.typing import (
        ASGIReceiveCallable,
        ASGIReceiveEvent,
        ASGISendCallable,
        ASGISendEvent,
        HTTPScope,
        Scope,
    )

    from portal.web.server.clients import Clients
    from portal.web.server.prepared_answers import Refusals
    from portal.web.server.request_context import AsgiApp

logger = logging.getLogger(__name__)

# A browser sends about twenty.
MAX_HEADERS = 100
# Quick, and in need of nothing that may be overloaded.
ALWAYS_ANSWERED = ("/healthz", "/metrics", "/static/")
ERRORS = (Overloaded, TooManyHeaders)


class Admission:
    """Wraps an ASGI app; `limit` requests may be worked on at once.

    The others are turned away, with one of `ERRORS`.
    """

    def __init__(self, app: AsgiApp, refusals: Refusals, *, limit: int, clients: Clients) -> None:
        self._app = app
        self._refusals = refusals
        self._clients = clients
        self._receiving = Places(limit)
        self._working = Places(limit)
        self._refused = Tally(logger, "Requests turned away", action="overloaded")

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if len(list(scope["headers"])) > MAX_HEADERS:
            await self._refuse(TooManyHeaders, scope, receive, send)
            return
        client = self._clients.identify(scope)
        if scope["path"].startswith(ALWAYS_ANSWERED):
            await self._app(scope, receive, send)
            return
        has_body = scope["method"] not in SAFE_METHODS
        stay = _Stay(client, self._receiving if has_body else self._working, self._working)
        if not stay.is_admitted:
            self._refused.add()
            await self._refuse(Overloaded, scope, receive, send)
            return
        try:
            await self._app(
                scope, stay.receiving(receive) if has_body else receive, stay.sending(send)
            )
        finally:
            stay.end()

    async def _refuse(
        self,
        error: type[PortalError],
        scope: HTTPScope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
    ) -> None:
        refuse_quietly(scope)
        await self._refusals[error].send(scope, receive, send)


class _Stay:
    """One request's place, from its arrival to the beginning of its answer."""

    def __init__(self, client: str, first: Places, second: Places) -> None:
        self._client = client
        self._second = second
        self._place: Places | None = first
        self.is_admitted = first.take(client)

    def receiving(self, receive: ASGIReceiveCallable) -> ASGIReceiveCallable:
        async def received() -> ASGIReceiveEvent:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                self._go_on()
            return message

        return received

    def sending(self, send: ASGISendCallable) -> ASGISendCallable:
        async def sent(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                self.end()
            await send(message)

        return sent

    def end(self) -> None:
        if self._place is not None:
            self._place.leave(self._client)
            self._place = None

    def _go_on(self) -> None:
        if self._place is not None and self._place is not self._second:
            # It was let in; the limit is for those who come.
            self.end()
            self._second.occupy(self._client)
            self._place = self._second
