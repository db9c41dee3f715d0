"""Refuses what is no proper request of HTTP, and what the server below lets through all the same.

ASGI middleware around the framework, which answers some of it with an error of its own: a request
target that is no path, a body whose end is told in two ways (RFC 9112 section 6.1, request
smuggling), another major version, a WebSocket.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from hypercorn.typing import (
        ASGIReceiveCallable,
        ASGISendCallable,
        HTTPScope,
        Scope,
    )

    from portal.middleware import AsgiApp

WEBSOCKET_REFUSED = 1008
# As RFC 9112 section 3.2.2 has them; what stands in them of a host is not looked at.
ABSOLUTE_FORM = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not looked at; some leave it open where the next one begins."""

    status: int
    title: str
    code: str
    detail: str
    closes: bool = False


BAD_TARGET = Refusal(400, "Bad Request", "bad_request", "The request's target is not a path.")
AMBIGUOUS = Refusal(
    400,
    "Bad Request",
    "bad_request",
    "Send Content-Length, or in HTTP/1.1 Transfer-Encoding, but not both.",
    closes=True,
)
OTHER_VERSION = Refusal(
    505, "HTTP Version Not Supported", "http_version_not_supported", "Use HTTP/1.1.", closes=True
)


class Gate:
    """Wraps an ASGI app; what it refuses never gets there."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": WEBSOCKET_REFUSED, "reason": None})
            return
        refusal = examine(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await _refuse(refusal, send)


def examine(scope: HTTPScope) -> Refusal | None:
    """What is wrong with a request, if anything; a target with a host in it loses that."""
    # What is really HTTP/2 is told as "2"; "2.0" only claims to be.
    if scope["http_version"] != "2" and not scope["http_version"].startswith("1."):
        return OTHER_VERSION
    names = [name for name, _ in scope["headers"]]
    if b"transfer-encoding" in names and (
        b"content-length" in names or scope["http_version"] == "1.0"
    ):
        return AMBIGUOUS
    if not scope["path"].startswith("/"):
        return _make_path(scope)
    return None


def _make_path(scope: HTTPScope) -> Refusal | None:
    if not scope["path"].lower().startswith(ABSOLUTE_FORM):
        return BAD_TARGET
    try:
        path = urlsplit(scope["path"]).path
    except ValueError:
        return BAD_TARGET
    scope["path"] = path or "/"
    return None


async def _refuse(refusal: Refusal, send: ASGISendCallable) -> None:
    body = json.dumps(
        {
            "type": f"/api/docs#{refusal.code}",
            "title": refusal.title,
            "status": refusal.status,
            "detail": refusal.detail,
            "code": refusal.code,
        }
    ).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if refusal.closes:
        headers.append((b"connection", b"close"))
    await send(
        {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": headers,
            "trailers": False,
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
