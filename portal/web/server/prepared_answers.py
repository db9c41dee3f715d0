"""Answers made beforehand, for requests that are turned away before the framework sees them.

A refusal costs next to nothing, because it is sent when it matters.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from portal.web.server.request_context import send_whole

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope

    from portal.errors import PortalError
    from portal.web.server.request_context import Headers

SEND_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Refusal:
    """One error as an answer, for the API (`problem`) and for people (`page`)."""

    status: int
    headers: Headers
    problem: bytes
    page: bytes

    async def send(
        self, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Answer this request with it."""
        is_api = f"{scope['path']}/".startswith("/api/")
        kind = b"application/problem+json" if is_api else b"text/html; charset=utf-8"
        body = self.problem if is_api else self.page
        length = (b"content-length", str(len(body)).encode())
        headers = [*self.headers, (b"content-type", kind), length]
        # Someone has to take what goes on arriving, or the server waits for that for ever.
        sink = asyncio.create_task(_discard(receive))
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send_whole(send, self.status, headers, body)
        finally:
            sink.cancel()


# One for each error; filled when the app starts, before there are requests.
Refusals = dict[type["PortalError"], Refusal]


async def _discard(receive: ASGIReceiveCallable) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
