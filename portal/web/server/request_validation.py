"""Refuses what is no proper request of HTTP, and what the server below lets through all the same.

ASGI middleware around the framework, which answers some of it with an error of its own: a request
target that is no path, a body whose end is told in two ways (RFC 9112 section 6.1, request
smuggling), another major version, a WebSocket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from portal.errors import AmbiguousLength, BadTarget, OtherVersion, PortalError

if TYPE_CHECKING:
    from hypercorn.typing import (
        ASGIReceiveCallable,
        ASGISendCallable,
        HTTPScope,
        Scope,
    )

    from portal.web.server.prepared_answers import Refusals
    from portal.web.server.request_context import AsgiApp

WEBSOCKET_REFUSED = 1008
# As RFC 9112 section 3.2.2 has them; what stands in them of a host is not looked at.
ABSOLUTE_FORM = ("http://", "https://")
ERRORS = (BadTarget, AmbiguousLength, OtherVersion)


class Gate:
    """Wraps an ASGI app; what it refuses, with one of `ERRORS`, never gets there."""

    def __init__(self, app: AsgiApp, refusals: Refusals) -> None:
        self._app = app
        self._refusals = refusals

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": WEBSOCKET_REFUSED, "reason": None})
            return
        if scope["type"] == "http" and (error := examine(scope)):
            await self._refusals[error].send(scope, receive, send)
            return
        await self._app(scope, receive, send)


def examine(scope: HTTPScope) -> type[PortalError] | None:
    """What is wrong with a request, if anything; a target with a host in it loses that."""
    if not scope["http_version"].startswith("1."):
        return OtherVersion
    names = [name for name, _ in scope["headers"]]
    if b"transfer-encoding" in names and (
        b"content-length" in names or scope["http_version"] == "1.0"
    ):
        return AmbiguousLength
    if not scope["path"].startswith("/"):
        return _make_path(scope)
    return None


def _make_path(scope: HTTPScope) -> type[PortalError] | None:
    if not scope["path"].lower().startswith(ABSOLUTE_FORM):
        return BadTarget
    try:
        path = urlsplit(scope["path"]).path
    except ValueError:
        return BadTarget
    scope["path"] = path or "/"
    return None
