"""Context of a request: its id, its client, its log line and its metrics.

Quick successful reads are logged at DEBUG only, so that the polls of viewers don't fill the log; so
are the reports of players.
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
from uuid import UUID, uuid4

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

# Methods that change nothing (RFC 9110, section 9.2.1).
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_HEADER = b"x-request-id"
SLOW_S = 1.0
# Paths that grant access. Logs leave out the rest of such a path, even if it is mistyped.
SECRET_PATH = re.compile(r"^(/*(?:welcome|p|hand-in(?:-files)?)/+).+", re.IGNORECASE | re.DOTALL)
# Playback token anywhere in a path, since a proxy may add a prefix. itsdangerous encodes JSON in
# base64, or compressed JSON with a dot in front.
TOKEN = re.compile(r"(?:eyJ|\.eJ)[\w-]+\.[\w-]+")
# Prefix of an app's path, which the addresses in the response then have, too.
PLAYBACK_PREFIX = re.compile(r"/p/(?P<token>[^/]+)(?=/(?!/))")
# Key of the state in an ASGI scope.
STATE = "portal"
# Host in a domain that never exists (RFC 2606).
UNKNOWN_HOST = b"unknown.invalid"
# Leading bits of the network of IPv6 addresses that a client usually has.
IPV6_CLIENT_BITS = 64
# Leading bits of the wider networks that providers give to homes, and to companies and anyone.
IPV6_WIDER_BITS = (56, 48)
# Number of parsed addresses in the cache, of about a hundred bytes each.
ADDRESS_CACHE_SIZE = 8192
LONGEST_ADDRESS = 64


@dataclass(slots=True)
class RequestState:
    """Facts about a request that middlewares and views share."""

    # Name under which limits count the request.
    client: str = ""
    # Rule of the matched route.
    route: str | None = None
    # Playback token at the beginning of the path; empty if there is none.
    playback_token: str = ""
    # Function that sends the response's body after the app has ended; see `RequestContext`.
    stream: Callable[[Receive, Send], Awaitable[None]] | None = None
    # True if a view has checked that the sender may see the path's video; see `auth`.
    was_asked: bool = False
    # The path's video, if the route's policy has read that the sender may see it.
    visible_id: UUID | None = None
    # Sites that may frame the response, in the syntax of frame-ancestors; empty for none.
    framed_by: str = ""
    # True if players send such requests all the time.
    is_routine: bool = False
    # Code of the language of the response; empty until it is known, and without a text for readers.
    language: str = ""
    # True if the page has a player, whose libraries write inline styles.
    has_player: bool = False
    # True if the page records, with the devices and the encoder of sound.
    has_recorder: bool = False


def state_of(scope: Scope) -> RequestState:
    """Return the state of the request with this scope."""
    fields: Any = scope
    state: RequestState = fields.get(STATE) or fields.setdefault(STATE, RequestState())
    return state


def expect_player(scope: Scope) -> None:
    """Allow a player in the page that this request returns."""
    state_of(scope).has_player = True


def expect_recorder(scope: Scope) -> None:
    """Allow the page that this request returns to record."""
    state_of(scope).has_recorder = True


def allow_framing(scope: Scope, framed_by: str) -> None:
    """Allow these sites to frame the response to this request."""
    state_of(scope).framed_by = framed_by


def header(scope: HTTPScope, name: bytes) -> str:
    """Return the first header of this lower-case name; empty if there is none."""
    for header_name, value in scope["headers"]:
        if header_name == name:
            return value.decode("latin-1")
    return ""


class RequestContext:
    """ASGI middleware that gives each request an id and a client, logs it and counts it.

    A response with a `stream` is sent by that function from its body on, after the app has ended:
    the framework's memory for a request is a third of the cost of an open stream.
    """

    def __init__(
        self, app: App, *, trusted_proxies: Sequence[Network] = (), is_counted: bool = False
    ) -> None:
        self._app = app
        self._trusted_proxies = trusted_proxies
        self._is_counted = is_counted

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Pass a request on with an id and its client; log and count its response."""
        started_at = perf_counter()
        scope = readable(scope)
        status = None
        is_complete = False
        asked_id = header(scope, REQUEST_ID_HEADER)
        request_id = asked_id if REQUEST_ID.fullmatch(asked_id) else uuid4().hex
        bind(request_id=request_id)
        state = state_of(scope)
        state.client = client_of(scope, trusted_proxies=self._trusted_proxies)
        if prefix := PLAYBACK_PREFIX.match(scope["path"]):
            state.playback_token = prefix["token"]
            scope["root_path"] = prefix[0]

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
        # The response is incomplete if the client has left.
        if state.stream is not None and is_complete:
            await state.stream(receive, send)


def _log(scope: HTTPScope, status: int, duration_s: float) -> None:
    is_expected = scope["method"] in SAFE_METHODS or state_of(scope).is_routine
    is_routine = is_expected and status < 400 and duration_s < SLOW_S
    level = logging.DEBUG if is_routine else logging.INFO
    if logger.isEnabledFor(level):
        method = scope["method"]
        path = SECRET_PATH.sub(r"\1…", TOKEN.sub("…", scope["path"]))
        fields = {"action": "request", "method": method, "path": path, "status": status}
        duration = {"duration_ms": round(duration_s * 1000, 1)}
        logger.log(level, "%s %s %d", method, path, status, extra=fields | duration)


def readable(scope: HTTPScope) -> HTTPScope:
    """Return a request with a path and a host that the framework can parse.

    The target of a request may be a whole address (RFC 9112, section 3.2.2). An invalid host is
    replaced by one that is refused.
    """
    scope = scope.copy()
    if not scope["path"].startswith("/"):
        try:
            scope["path"] = urlsplit(scope["path"]).path or "/"
        except ValueError:
            scope["path"] = f"/{scope['path']}"
    host = header(scope, b"host")
    if host and not host_name(host):
        headers = [pair for pair in scope["headers"] if pair[0] != b"host"]
        scope["headers"] = [*headers, (b"host", UNKNOWN_HOST)]
    return scope


def client_of(scope: HTTPScope, *, trusted_proxies: Sequence[Network]) -> str:
    """Return the name under which limits count a request: the address of its client.

    If the request comes from one of `TRUSTED_PROXIES`, this is the last address in X-Forwarded-For
    that is no trusted proxy, or the farthest proxy. The standard header Forwarded (RFC 7239) is
    ignored: a proxy that sets one of the two headers passes the client's other one on.
    """
    peer = (scope.get("client") or ("",))[0]
    client = counted_as(peer)
    if not trusted_proxies or not _is_among(peer, trusted_proxies):
        return client
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    for entry in reversed(forwarded.split(b",")):
        address = entry.strip()[:LONGEST_ADDRESS].decode("latin-1")
        if not counted_as(address):
            break
        client = counted_as(address)
        if not _is_among(address, trusted_proxies):
            break
    return client


@lru_cache(ADDRESS_CACHE_SIZE)
def counted_as(address: str) -> str:
    """Return an IPv4 address, the /64 network of an IPv6 address, or an empty text."""
    parsed = _parse(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((parsed, IPV6_CLIENT_BITS), strict=False))
    return "" if parsed is None else str(parsed)


@lru_cache(ADDRESS_CACHE_SIZE)
def networks_of(client: str) -> Sequence[str]:
    """Return the networks by which limits count a client: its own, then the wider ones of IPv6."""
    if ":" not in client:
        return (client,)
    network = IPv6Network(client)
    return (client, *(str(network.supernet(new_prefix=bits)) for bits in IPV6_WIDER_BITS))


@lru_cache(ADDRESS_CACHE_SIZE)
def _parse(address: str) -> IPv4Address | IPv6Address | None:
    """Parse the address of a socket or of a proxy's header, with or without a port."""
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
