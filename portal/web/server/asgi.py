"""What the middlewares have in common: their types, and whole responses."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from hypercorn.typing import ASGIReceiveCallable as Receive
from hypercorn.typing import ASGIReceiveEvent as ReceiveEvent
from hypercorn.typing import ASGISendCallable as Send
from hypercorn.typing import ASGISendEvent as SendEvent
from hypercorn.typing import HTTPResponseBodyEvent as Body
from hypercorn.typing import HTTPResponseStartEvent as Start
from hypercorn.typing import HTTPScope, Scope

__all__ = ["HTTPScope", "Receive", "Scope", "Send", "SendEvent", "Start"]

App = Callable[[HTTPScope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

# RFC 9110 section 9.2.1: these ask for nothing to be changed.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# For a client to take a response.
SEND_TIMEOUT_S = 60


def header(scope: HTTPScope, name: bytes) -> str:
    """The first header of this name, which is in lower case; empty if there is none."""
    for it, value in scope["headers"]:
        if it == name:
            return value.decode("latin-1")
    return ""


def on_start(send: Send, act: Callable[[Start], None]) -> Send:
    """As `send`, and `act` is called with the beginning of the response, which it may change."""

    async def sent(message: SendEvent) -> None:
        if message["type"] == "http.response.start":
            act(message)
        await send(message)

    return sent


def on_body(receive: Receive, act: Callable[[], None]) -> Receive:
    """As `receive`, and `act` is called when all of the request's body has arrived."""

    async def received() -> ReceiveEvent:
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            act()
        return message

    return received


@dataclass(slots=True)
class Response:
    """A whole response."""

    status: int = 0
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    async def record(self, message: SendEvent) -> None:
        """Record what an app sends."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            self.body += message["body"]

    async def send(self, receive: Receive, send: Send) -> None:
        """Send it, and drop what still arrives of the request."""
        kind: Literal["http.response.start"] = "http.response.start"
        start = Start(type=kind, status=self.status, headers=self.headers, trailers=False)
        body = Body(type="http.response.body", body=self.body, more_body=False)
        # Unless the request's body is taken, the server waits for ever once its queue is full.
        sink = asyncio.create_task(_discard(receive))
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await send(start)
                    await send(body)
        finally:
            sink.cancel()


async def _discard(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
