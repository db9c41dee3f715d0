"""Request context: what is known of a request, its id, its client, its log line and its figures.

Runs for every poll of every viewer: successful quick reads are logged at DEBUG only, so that the
lines that matter stand out.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from hypercorn.typing import ASGIReceiveCallable as Receive
from hypercorn.typing import ASGISendCallable as Send
from hypercorn.typing import ASGISendEvent as SendEvent
from hypercorn.typing import HTTPScope, Scope

from portal.telemetry.logs import bind
from portal.telemetry.metrics import begin_request, end_request
from portal.text import host_name

logger = logging.getLogger(__name__)

App = Callable[[HTTPScope, Receive, Send], Awaitable[None]]
Network = IPv4Network | IPv6Network

# RFC 9110 section 9.2.1: these ask for nothing to be changed.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_HEADER = b"x-request-id"
SLOW_S = 1.0
# Whoever reads a log could use what stands there, however the address is mistyped.
SECRET_PATH = re.compile(r"^(/*(?:welcome|p)/+).+", re.IGNORECASE | re.DOTALL)
# A playback token wherever it stands: a proxy may put something before it.
# itsdangerous writes JSON in base64, or with a dot in front what zlib made of it.
TOKEN = re.compile(r"(?:eyJ|\.eJ)[\w-]+\.[\w-]+")
# What follows is an address of the app; addresses that it makes for the answer have it, too.
PLAYBACK_PREFIX = re.compile(r"/p/(?P<token>[^/]+)(?=/(?!/))")
# Of a request's scope.
STATE = "portal"
# In a domain that is never there (RFC 2606).
UNKNOWN_HOST = b"unknown.invalid"
# A client usually has a whole network of IPv6 addresses: those that share so many first bits.
IPV6_CLIENT_BITS = 64
# Addresses whose reading is remembered; each costs about a hundred bytes.
REMEMBERED = 8192
LONGEST_ADDRESS = 64


@dataclass(slots=True)
class RequestState:
    """What middlewares and views tell each other about a request."""

    # The name under which limits count it.
    client: str = ""
    # The app's rule that it matched.
    route: str | None = None
    # Of its address, if that begins with one.
    playback_token: str = ""
    # What goes on sending the response once the app has done its part; see `RequestContext`.
    stream: Callable[[Receive, Send], Awaitable[None]] | None = None
    # Whether it was asked if who sent it may see the video of its address; see `auth`.
    was_asked: bool = False
    # Which sites may frame the response, as frame-ancestors has it; empty for none.
    framed_by: str = ""
    # Whether the page has a player, whose libraries write styles into it.
    has_player: bool = False


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


def header(scope: HTTPScope, name: bytes) -> str:
    """The first header of this name, which is in lower case; empty if there is none."""
    for it, value in scope["headers"]:
        if it == name:
            return value.decode("latin-1")
    return ""


class RequestContext:
    """Gives each request an id and a client, logs it, and counts it if wanted.

    A response with a `stream` is sent by that from its body on, when the app has ended: what the
    framework holds for a request is a third of what an open stream costs.
    """

    def __init__(
        self, app: App, *, trusted_proxies: Sequence[Network] = (), is_counted: bool = False
    ) -> None:
        self._app = app
        self._trusted_proxies = trusted_proxies
        self._is_counted = is_counted

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        started_at = perf_counter()
        scope = readable(scope)
        status, is_complete = None, False
        asked_id = header(scope, REQUEST_ID_HEADER)
        request_id = asked_id if REQUEST_ID.fullmatch(asked_id) else uuid4().hex
        bind(request_id=request_id)
        state = state_of(scope)
        state.client = client_of(scope, trusted_proxies=self._trusted_proxies)
        if found := PLAYBACK_PREFIX.match(scope["path"]):
            state.playback_token = found["token"]
            scope["root_path"] = found[0]

        async def sent(message: SendEvent) -> None:
            nonlocal status, is_complete
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (REQUEST_ID_HEADER, request_id.encode()),
                ]
                _log(scope, status, perf_counter() - started_at)
            elif state.stream is not None:
                is_complete = True
                return
            await send(message)

        if self._is_counted:
            begin_request()
        try:
            await self._app(scope, receive, sent)
        finally:
            if self._is_counted:
                end_request(scope["method"], state.route, status, perf_counter() - started_at)
        # Unless the client has left before.
        if state.stream is not None and is_complete:
            await state.stream(receive, send)


def _log(scope: HTTPScope, status: int, duration_s: float) -> None:
    is_routine = scope["method"] in SAFE_METHODS and status < 400 and duration_s < SLOW_S
    level = logging.DEBUG if is_routine else logging.INFO
    if logger.isEnabledFor(level):
        method, path = scope["method"], SECRET_PATH.sub(r"\1…", TOKEN.sub("…", scope["path"]))
        fields = {"action": "request", "method": method, "path": path, "status": status}
        duration = {"duration_ms": round(duration_s * 1000, 1)}
        logger.log(level, "%s %s %d", method, path, status, extra=fields | duration)


def readable(scope: HTTPScope) -> HTTPScope:
    """Return a request whose path and host the framework can read; it raises errors for others.

    A request may be for a whole address (RFC 9112, section 3.2.2). Hosts that are none become one
    that is refused.
    """
    scope = scope.copy()
    if not scope["path"].startswith("/"):
        try:
            scope["path"] = urlsplit(scope["path"]).path or "/"
        except ValueError:
            scope["path"] = f"/{scope['path']}"
    host = header(scope, b"host")
    if host and not host_name(host):
        others = [pair for pair in scope["headers"] if pair[0] != b"host"]
        scope["headers"] = [*others, (b"host", UNKNOWN_HOST)]
    return scope


def client_of(scope: HTTPScope, *, trusted_proxies: Sequence[Network]) -> str:
    """The name under which limits count a request: the address that it comes from.

    Behind proxies, and only behind those that `TRUSTED_PROXIES` names, it is the last address in
    X-Forwarded-For that is no proxy of ours, or the farthest proxy. The standard header, Forwarded
    (RFC 7239), is not read: a proxy that writes one of the two passes the other on as the client
    sent it.
    """
    peer = (scope.get("client") or ("",))[0]
    client = counted_as(peer)
    if not trusted_proxies or not _is_among(peer, trusted_proxies):
        return client
    notes = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    for note in reversed(notes.split(b",")):
        address = note.strip()[:LONGEST_ADDRESS].decode("latin-1")
        if not counted_as(address):
            break
        client = counted_as(address)
        if not _is_among(address, trusted_proxies):
            break
    return client


@lru_cache(REMEMBERED)
def counted_as(address: str) -> str:
    """The address itself, the /64 network of an IPv6 address, or nothing if it is neither."""
    parsed = _parse(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((parsed, IPV6_CLIENT_BITS), strict=False))
    return "" if parsed is None else str(parsed)


@lru_cache(REMEMBERED)
def _parse(address: str) -> IPv4Address | IPv6Address | None:
    """An address as a socket has it or a proxy writes it, with or without a port."""
    host = address.partition(":")[0] if address.count(":") == 1 else address
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    try:
        parsed = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed


def _is_among(address: str, networks: Sequence[Network]) -> bool:
    parsed = _parse(address)
    return parsed is not None and any(parsed in network for network in networks)
