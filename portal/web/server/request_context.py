"""Request context: what is known of a request, its id, its log line, and its figures.

Runs for every poll of every viewer: successful quick reads are logged at DEBUG only, so that the
lines that matter stand out.
"""

import logging
import re
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from uuid import uuid4

from portal.telemetry.logs import bind
from portal.telemetry.metrics import begin_request, end_request
from portal.web.server.asgi import (
    SAFE_METHODS,
    App,
    HTTPScope,
    Receive,
    Scope,
    Send,
    Start,
    header,
    on_start,
)

logger = logging.getLogger(__name__)

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_HEADER = b"x-request-id"
SLOW_S = 1.0
# Whoever reads a log could use what stands there, however the address is mistyped.
SECRET_PATH = re.compile(r"^(/*(?:welcome|p)/+).+", re.IGNORECASE | re.DOTALL)
# A playback token (RFC 7515 section 7.1) wherever it stands: a proxy may put something before it.
TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
# Of a request's scope.
STATE = "portal"


@dataclass(slots=True)
class RequestState:
    """What middlewares and views tell each other about a request."""

    # The name under which limits count it; see `client_address`.
    client: str = ""
    # The digest of the credentials that were found valid, and their account; see `rate_limit`.
    identified: tuple[str, str] | None = None
    # The app's rule that it matched.
    route: str | None = None
    # What the address has of leave to watch; see `playback_prefix`.
    playback_token: str = ""
    # Whether it was asked if who sent it may see the video of its address; see `access`.
    was_asked: bool = False
    # Which sites may frame the response, as frame-ancestors has it; empty for none.
    framed_by: str = ""
    # Whether the page has a player, whose libraries write styles into it.
    has_player: bool = False
    # Whether a middleware refused it: logged at DEBUG, and counted by `error_responses`.
    is_refused: bool = False


def state_of(scope: Scope) -> RequestState:
    """The state of the request with this scope, made when it is first asked for."""
    fields: Any = scope
    state: RequestState = fields.get(STATE) or fields.setdefault(STATE, RequestState())
    return state


def expect_player(scope: Scope) -> None:
    """Let the page that answers this request hold a player."""
    state_of(scope).has_player = True


def allow_framing(scope: Scope, framed_by: str) -> None:
    """Let these sites frame the response to this request."""
    state_of(scope).framed_by = framed_by


class RequestContext:
    """Gives each request an id, logs it, and counts it if wanted."""

    def __init__(self, app: App, *, is_counted: bool = False) -> None:
        self._app = app
        self._is_counted = is_counted

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        started_at = perf_counter()
        status = None
        asked_id = header(scope, REQUEST_ID_HEADER)
        request_id = asked_id if REQUEST_ID.fullmatch(asked_id) else uuid4().hex
        bind(request_id=request_id)

        def answered(start: Start) -> None:
            nonlocal status
            status = start["status"]
            start["headers"] = [*start["headers"], (REQUEST_ID_HEADER, request_id.encode())]
            _log(scope, status, perf_counter() - started_at)

        if self._is_counted:
            begin_request()
        try:
            await self._app(scope, receive, on_start(send, answered))
        finally:
            if self._is_counted:
                duration_s = perf_counter() - started_at
                end_request(scope["method"], state_of(scope).route, status, duration_s)


def _log(scope: HTTPScope, status: int, duration_s: float) -> None:
    is_routine = scope["method"] in SAFE_METHODS and status < 400 and duration_s < SLOW_S
    level = logging.DEBUG if is_routine or state_of(scope).is_refused else logging.INFO
    if logger.isEnabledFor(level):
        method, path = scope["method"], SECRET_PATH.sub(r"\1…", TOKEN.sub("…", scope["path"]))
        fields = {"action": "request", "method": method, "path": path, "status": status}
        duration = {"duration_ms": round(duration_s * 1000, 1)}
        logger.log(level, "%s %s %d", method, path, status, extra=fields | duration)
