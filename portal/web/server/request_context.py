"""What concerns every request, as ASGI middleware: its id, its log line, the fixed headers.

Below the framework, because it runs for every poll of every viewer: headers are encoded once,
and successful quick reads are logged at DEBUG only, so that the lines that matter stand out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, cast
from uuid import uuid4

from hypercorn.typing import (
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
    Scope,
)

from portal.telemetry.logs import bind
from portal.telemetry.metrics import RequestMeter
from portal.web.server.origins import SAFE_METHODS

logger = logging.getLogger(__name__)

AsgiApp = Callable[[Scope, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_HEADER = b"x-request-id"
SLOW_S = 1.0
# In a request's scope: whether its answer may be framed by other sites, and the rule it matched.
FRAMEABLE = "portal.frameable"
ROUTE = "portal.route"
# In a request's scope: whether it was turned away, as thousands a second may be.
REFUSED = "portal.refused"


Header = tuple[bytes, bytes]
Headers = list[Header]


async def send_whole(send: ASGISendCallable, status: int, headers: Headers, body: bytes) -> None:
    """Answer a request in one go."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": headers,
            "trailers": False,
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})


def allow_framing(scope: Scope) -> None:
    """Let the answer to this request, whose ASGI scope it is, be framed by other sites."""
    cast("dict[str, Any]", scope)[FRAMEABLE] = True


def may_be_framed(scope: Scope) -> bool:
    """Whether `allow_framing` was called for this request."""
    return FRAMEABLE in scope


def note_route(scope: Scope, route: str) -> None:
    """Tell which of the app's rules, as written there, this request matched."""
    cast("dict[str, Any]", scope)[ROUTE] = route


def refuse_quietly(scope: Scope) -> None:
    """Log the refusal of this request at DEBUG only; whoever refuses says how many there are."""
    cast("dict[str, Any]", scope)[REFUSED] = True


class RequestMiddleware:
    """Wraps an ASGI app; its headers go out with every response, and `meter` counts them."""

    def __init__(self, app: AsgiApp, meter: RequestMeter | None = None) -> None:
        self._app = app
        self._meter = meter
        self._headers: Headers = []
        self._frameable: Headers = []

    def set_headers(self, headers: Mapping[str, str], *, frameable: Mapping[str, str]) -> None:
        """Fix the headers of all responses, known once storage's address is.

        Those of answers that may be framed are `frameable` instead.
        """
        self._headers = _encoded(headers)
        self._frameable = _encoded(frameable)

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = perf_counter()
        status = None
        request_id = _request_id(scope)
        bind(request_id=request_id.decode())

        async def send_with_headers(message: ASGISendEvent) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                fixed = self._frameable if may_be_framed(scope) else self._headers
                own = (REQUEST_ID_HEADER, request_id)
                message["headers"] = _merged(message["headers"], fixed, own)
                _log(scope, status, perf_counter() - started_at)
            await send(message)

        if self._meter is None:
            await self._app(scope, receive, send_with_headers)
            return
        self._meter.begin()
        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            route = cast("dict[str, Any]", scope).get(ROUTE)
            self._meter.end(scope["method"], route, status, perf_counter() - started_at)


def _encoded(headers: Mapping[str, str]) -> Headers:
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
    ]


def _merged(headers: Iterable[Header], fixed: Headers, own: Header) -> Headers:
    """What an answer says of itself goes before what holds for all."""
    found = list(headers)
    names = {name for name, _ in found}
    return [*found, *(it for it in fixed if it[0] not in names), own]


def _request_id(scope: HTTPScope) -> bytes:
    for name, value in scope["headers"]:
        if name == REQUEST_ID_HEADER and REQUEST_ID.fullmatch(value):
            return value
    return uuid4().hex.encode()


def _log(scope: HTTPScope, status: int, duration_s: float) -> None:
    is_routine = scope["method"] in SAFE_METHODS and status < 400 and duration_s < SLOW_S
    level = logging.DEBUG if is_routine or REFUSED in scope else logging.INFO
    if not logger.isEnabledFor(level):
        return
    logger.log(
        level,
        "%s %s %d",
        scope["method"],
        scope["path"],
        status,
        extra={
            "action": "request",
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "duration_ms": round(duration_s * 1000, 1),
        },
    )
