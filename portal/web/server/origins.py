"""Hosts and origins: which names this portal answers to, and whose pages may change something.

A page at evil.example may have its name resolve to this machine once it is loaded (DNS
rebinding); to the browser the portal then is part of that page's own site. What gives it away is
the Host header, which still says evil.example. Addresses, and names that public DNS does not
hold, cannot be made to point here by a stranger, so they need no setting.

What a form does should be what someone meant, with the session of someone signed in above all.
Browsers say where a request comes from; programs that are no browsers say nothing and are let
through, unless they send the cookie of a session.
"""

from functools import lru_cache
from urllib.parse import urlsplit

from quart import Response, request
from werkzeug.datastructures import Headers

from portal.config import Config
from portal.config.values import ANY_HOST
from portal.errors import CrossSiteRequest, UnknownHost
from portal.text import host_name
from portal.web.cookies import has_session_cookie
from portal.web.server.context import SAFE_METHODS, counted_as

# Reserved: RFC 6761 and 6762, RFC 8375, and ICANN's name for private networks.
PRIVATE_ENDINGS = (".localhost", ".local", ".home.arpa", ".internal")
# `none` is the user's own doing: a typed address, a bookmark.
OWN_SITES = frozenset({"same-origin", "none"})
# What pages of `api_allowed_origins` may send and read (WHATWG Fetch, CORS protocol). Never
# cookies: whose page it is doesn't say what its visitor wants.
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": (
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID"
    ),
    "Access-Control-Max-Age": "7200",
}
EXPOSED = "ETag, Idempotent-Replayed, Link, Location, Retry-After"


def check_origin(config: Config) -> Response | None:
    """Refuse the current request if it is sent to another name, or by another site's page.

    The answer to a page that may use the API, and asks before it sends something, is returned.
    """
    host = request.headers.get("Host", "")
    if not is_own_host(host, public_url=config.public_url, allowed=config.allowed_hosts):
        raise UnknownHost
    has_session = has_session_cookie(request.scope)
    if _allowed_origin(config) and not has_session:
        is_question = "Access-Control-Request-Method" in request.headers
        return Response(status=204, headers=PREFLIGHT) if is_question else None
    if request.method not in SAFE_METHODS:
        hosts = frozenset({request.host.lower(), _authority(config.public_url)} - {""})
        require_same_origin(request.headers, hosts=hosts, must_tell=has_session)
    return None


async def share(response: Response, config: Config) -> Response:
    """Let a page that may use the API read the answer to the current request.

    It waits for nothing, but Quart would run it in a thread: a detour for every request.
    """
    if config.api_allowed_origins and request.path.startswith("/api/"):
        response.vary.add("Origin")
    if origin := _allowed_origin(config):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = EXPOSED
    return response


def _allowed_origin(config: Config) -> str:
    """Where the page that sent the current request comes from, if it may use the API."""
    origin = request.headers.get("Origin", "")
    is_allowed = origin in config.api_allowed_origins and request.path.startswith("/api/")
    return origin if is_allowed else ""


@lru_cache(maxsize=1024)
def is_own_host(host: str, *, public_url: str, allowed: tuple[str, ...] = ()) -> bool:
    """Whether a Host header (RFC 9110, section 7.2) names this portal.

    None at all, as in HTTP/1.0, is no browser's.
    """
    if not host or ANY_HOST in allowed:
        return True
    name = host_name(host)
    names = {*allowed, host_name(urlsplit(public_url).netloc)}
    return bool(name) and (name in names or _is_out_of_reach(name))


def _is_out_of_reach(name: str) -> bool:
    """Whether nobody on the Internet can make the name resolve to an address of his choice."""
    return "." not in name or name.endswith(PRIVATE_ENDINGS) or bool(counted_as(name))


def require_same_origin(
    headers: Headers, *, hosts: frozenset[str], must_tell: bool = False
) -> None:
    """Raise `CrossSiteRequest` for a request from another site's page; or that may be, if it must.

    `hosts` are the names this portal is reached by, ports included. Sec-Fetch-Site (W3C Fetch
    Metadata) counts where the browser sends it, which it does over https and to this machine;
    else Origin (RFC 6454).
    """
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    if site is not None:
        is_own = site in OWN_SITES
    elif origin is not None:
        is_own = _authority(origin) in hosts
    else:
        is_own = not must_tell
    if not is_own:
        raise CrossSiteRequest


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
