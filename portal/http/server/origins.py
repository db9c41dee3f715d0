"""Checks of the host that a request names, and of the origin of the page that sent it.

A page at evil.example can make its name resolve to this machine after it has loaded (DNS
rebinding); the browser then takes the portal for part of that page's site. The Host header reveals
this, since it still contains evil.example. Strangers can't make addresses, or names outside of
public DNS, resolve to this machine, so these need no setting.

Other sites' pages must not submit forms here, least of all with a visitor's session. Browsers send
the origin of a request; other programs send none and are accepted, unless they send a session
cookie.
"""

from functools import lru_cache
from urllib.parse import urlsplit

from quart import Response, request
from werkzeug.datastructures import Headers

from portal.config import Config
from portal.config.values import ANY_HOST
from portal.errors import CrossSiteRequest, UnknownHost
from portal.http.cookies import has_session_cookie
from portal.http.server.context import SAFE_METHODS, counted_as
from portal.text import host_name

# Reserved endings: RFC 6761, 6762 and 8375, and ICANN's name for private networks.
PRIVATE_ENDINGS = (".localhost", ".local", ".home.arpa", ".internal")
# Values of Sec-Fetch-Site. A typed address or a bookmark has the value `none`.
OWN_SITES = frozenset({"same-origin", "none"})
# Requests that pages of `api_allowed_origins` may send (WHATWG Fetch, CORS protocol), without
# cookies, since such a page acts without its visitor's consent.
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": (
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID"
    ),
    "Access-Control-Max-Age": "7200",
}
EXPOSED = "ETag, Idempotent-Replayed, Link, Location, Retry-After"


def check_origin(config: Config) -> Response | None:
    """Refuse the current request if it names another host or comes from another site's page.

    Return the response to a CORS preflight request of a page that may use the API, else None.
    """
    host = request.headers.get("Host", "")
    if not is_own_host(host, public_url=config.public_url, allowed=config.allowed_hosts):
        raise UnknownHost
    has_session = has_session_cookie(request.scope)
    if _allowed_origin(config) and not has_session:
        is_preflight = "Access-Control-Request-Method" in request.headers
        return Response(status=204, headers=PREFLIGHT) if is_preflight else None
    if request.method not in SAFE_METHODS:
        hosts = frozenset({request.host.lower(), _authority(config.public_url)} - {""})
        require_same_origin(request.headers, hosts=hosts, must_tell=has_session)
    return None


async def share(response: Response, config: Config) -> Response:
    """Allow pages of `api_allowed_origins` to read the response to the current request.

    The function is async because Quart runs others in a thread.
    """
    if config.api_allowed_origins and request.path.startswith("/api/"):
        response.vary.add("Origin")
    if origin := _allowed_origin(config):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = EXPOSED
    return response


def _allowed_origin(config: Config) -> str:
    """Return the origin of the current request if its page may use the API, else an empty text."""
    origin = request.headers.get("Origin", "")
    is_allowed = origin in config.api_allowed_origins and request.path.startswith("/api/")
    return origin if is_allowed else ""


@lru_cache(maxsize=1024)
def is_own_host(host: str, *, public_url: str, allowed: tuple[str, ...] = ()) -> bool:
    """Return whether a Host header (RFC 9110, section 7.2) names this portal.

    Only programs that are no browsers send no host, as in HTTP/1.0.
    """
    if not host or ANY_HOST in allowed:
        return True
    name = host_name(host)
    names = {*allowed, host_name(urlsplit(public_url).netloc)}
    return bool(name) and (name in names or _is_out_of_reach(name))


def _is_out_of_reach(name: str) -> bool:
    """Return whether strangers can't make the name resolve to an address of their choice."""
    return "." not in name or name.endswith(PRIVATE_ENDINGS) or bool(counted_as(name))


def require_same_origin(
    headers: Headers, *, hosts: frozenset[str], must_tell: bool = False
) -> None:
    """Raise `CrossSiteRequest` for a request from another site's page.

    With `must_tell` a request without an origin is refused, too. `hosts` are the portal's names,
    with ports. Browsers send Sec-Fetch-Site (W3C Fetch Metadata) over https and to the local
    machine; otherwise Origin (RFC 6454) counts.
    """
    site = headers.get("Sec-Fetch-Site")
    origin = headers.get("Origin")
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
