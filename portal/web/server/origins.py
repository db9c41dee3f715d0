"""Origin check: whether a browser sent an unsafe request from the portal's own pages.

What a form does should be what someone meant, with the session of someone signed in above all.
Browsers say where a request comes from; programs that are no browsers say nothing and are let
through, unless they send the cookie of a session.
"""

from urllib.parse import urlsplit

from werkzeug.datastructures import Headers
from werkzeug.sansio.utils import get_host

from portal.errors import CrossSiteRequest
from portal.web.server.asgi import SAFE_METHODS, App, HTTPScope, Receive, Send, header
from portal.web.server.credentials import has_session_cookie

# `none` is the user's own doing: a typed address, a bookmark.
OWN_SITES = frozenset({"same-origin", "none"})


class OriginCheck:
    """Refuses unsafe requests that another site's page sends."""

    def __init__(self, app: App, *, public_url: str) -> None:
        self._app = app
        self._public_host = _host(public_url)

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        if scope["method"] not in SAFE_METHODS:
            found = scope["headers"]
            headers = Headers([(it.decode(), value.decode("latin-1")) for it, value in found])
            # The name that the request was sent to, which `hosts` has checked.
            host = header(scope, b"host") or None
            own_host = get_host(scope["scheme"], host, scope.get("server")).lower()
            hosts = frozenset({own_host, self._public_host} - {""})
            require_same_origin(headers, hosts=hosts, must_tell=has_session_cookie(scope))
        await self._app(scope, receive, send)


def require_same_origin(
    headers: Headers, *, hosts: frozenset[str], must_tell: bool = False
) -> None:
    """Raise `CrossSiteRequest` for a request from another site's page; or that may be, if it must.

    `hosts` are the names this portal is reached by, ports included. Sec-Fetch-Site (W3C Fetch
    Metadata) counts where the browser sends it, which it does over https and to this machine;
    else Origin (RFC 6454).
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        if site not in OWN_SITES:
            raise CrossSiteRequest
        return
    origin = headers.get("Origin")
    if must_tell if origin is None else _host(origin) not in hosts:
        raise CrossSiteRequest


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
