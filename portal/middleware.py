"""What concerns every request, as ASGI middleware: its id, its log line, the fixed headers.

Below the framework, because it runs for every poll of every viewer: headers are encoded once,
and successful quick reads are logged at DEBUG only, so that the lines that matter stand out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from uuid import uuid4

from hypercorn.typing import (
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
    Scope,
)

from portal.logs import bind

logger = logging.getLogger(__name__)

AsgiApp = Callable[[Scope, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_HEADER = b"x-request-id"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SLOW_S = 1.0


class RequestMiddleware:
    """Wraps an ASGI app; `headers` go out with every response."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._headers: list[tuple[bytes, bytes]] = []

    def set_headers(self, headers: Mapping[str, str]) -> None:
        """Fix the headers of all responses, known once storage's address is."""
        self._headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ]

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = perf_counter()
        request_id = _request_id(scope)
        bind(request_id=request_id.decode())
        own_headers = [*self._headers, (REQUEST_ID_HEADER, request_id)]

        async def send_with_headers(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *own_headers]
                _log(scope, message["status"], perf_counter() - started_at)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _request_id(scope: HTTPScope) -> bytes:
    for name, value in scope["headers"]:
        if name == REQUEST_ID_HEADER and REQUEST_ID.fullmatch(value):
            return value
    return uuid4().hex.encode()


def _log(scope: HTTPScope, status: int, duration_s: float) -> None:
    is_routine = scope["method"] in SAFE_METHODS and status < 400 and duration_s < SLOW_S
    level = logging.DEBUG if is_routine else logging.INFO
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
