"""Concurrency limit: as many requests at once as a process can work on; refuses the others.

What is counted is the time until a response begins; how long a client takes to read it is for
`connection_limit`. Requests whose bodies are still on their way are counted apart, so that clients
that send slowly keep out nobody but each other. One client gets no more than half of either.
"""

from portal.errors import Overloaded
from portal.web.server.asgi import SAFE_METHODS, App, HTTPScope, Receive, Send, on_body, on_start
from portal.web.server.capacity import Capacity
from portal.web.server.request_context import state_of

# Quick, and in need of nothing that may be overloaded.
ALWAYS_ANSWERED = ("/healthz", "/metrics", "/static/")


class ConcurrencyLimit:
    """Lets `limit` requests be worked on at once."""

    def __init__(self, app: App, *, limit: int) -> None:
        self._app = app
        self._receiving = Capacity(limit)
        self._working = Capacity(limit)

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(ALWAYS_ANSWERED):
            await self._app(scope, receive, send)
            return
        client = state_of(scope).client
        has_body = scope["method"] not in SAFE_METHODS
        first = self._receiving if has_body else self._working
        if not first.acquire(client):
            raise Overloaded
        place: Capacity | None = first

        def leave(_: object = None) -> None:
            nonlocal place
            if place is not None:
                place.release(client)
                place = None

        def move() -> None:
            """Count as worked on, full or not: the request was let in already."""
            nonlocal place
            leave()
            place = self._working
            place.force(client)

        receive = on_body(receive, move) if has_body else receive
        try:
            await self._app(scope, receive, on_start(send, leave))
        finally:
            leave()
