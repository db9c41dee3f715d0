"""Error responses: what a middleware raises is answered here, without the framework.

A refusal is cheap, because it is sent when it matters: its page is rendered once and kept. Its log
line is rate-limited, because there may be thousands a second.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from cachetools import LRUCache

from portal.errors import InvalidRequest, MalformedRequest, PortalError
from portal.telemetry.logs import Tally, current_fields, log_context
from portal.web.server.asgi import App, HTTPScope, Receive, Response, Send
from portal.web.server.request_context import state_of

logger = logging.getLogger(__package__)

PROBLEM_TYPE = "application/problem+json"
PAGE_TYPE = "text/html; charset=utf-8"
# Of some kilobytes each; a client that exceeds its rate is told for how many seconds.
MAX_PAGES = 128
# Stands in a page that is kept where the id of each request comes.
ANY_REQUEST = "{request_id}"


class ErrorResponses:
    """Answers the errors of the middlewares after it; `render_page` makes an error's HTML page."""

    def __init__(self, app: App, *, render_page: Callable[[PortalError], Awaitable[bytes]]) -> None:
        self._app = app
        self._render_page = render_page
        self._pages: LRUCache[tuple[str, str], bytes] = LRUCache(MAX_PAGES)
        self._tallies: dict[str, Tally] = {}

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except PortalError as error:
            state_of(scope).is_refused = True
            self._count(error)
            response = await self._response(error, scope["path"])
            await response.send(receive, send)

    async def _response(self, error: PortalError, path: str) -> Response:
        # What no browser sends is no person's to read.
        if is_api(path) or isinstance(error, MalformedRequest):
            return problem_response(error)
        return _response(error, PAGE_TYPE, await self._page(error))

    def _count(self, error: PortalError) -> None:
        if error.code not in self._tallies:
            message = f"Requests refused, {error.title.lower()}"
            self._tallies[error.code] = Tally(logger, message, action=error.code)
        self._tallies[error.code].add()

    async def _page(self, error: PortalError) -> bytes:
        key = (error.code, error.detail)
        request_id = str(current_fields().get("request_id", ""))
        if key not in self._pages:
            with log_context(request_id=ANY_REQUEST):
                self._pages[key] = await self._render_page(error)
        return self._pages[key].replace(ANY_REQUEST.encode(), request_id.encode())


def is_api(path: str) -> bool:
    """Whether errors at this path are problem documents, not pages."""
    return f"{path}/".startswith("/api/")


def problem_document(error: PortalError) -> bytes:
    """The error as RFC 9457 has it."""
    problem: dict[str, object] = {
        "type": f"/api/docs#{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        **error.extensions,
    }
    if isinstance(error, InvalidRequest):
        problem["errors"] = [asdict(fault) for fault in error.errors]
    return json.dumps(problem).encode()


def problem_response(error: PortalError) -> Response:
    """The error's problem document as a response."""
    return _response(error, PROBLEM_TYPE, problem_document(error))


def _response(error: PortalError, content_type: str, body: bytes) -> Response:
    length = str(len(body))
    headers = {**error.headers, "Content-Type": content_type, "Content-Length": length}
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return Response(error.status, encoded, body)
