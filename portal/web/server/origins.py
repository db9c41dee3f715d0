"""Tells whether a browser sent a request from the portal's own pages, and to one of its names.

The portal has no sessions to steal, but what a form does should be what someone meant. Browsers
say where a request comes from; programs that are no browsers say nothing and are let through.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from quart import request
from werkzeug.datastructures import Headers

from portal.config import Config
from portal.errors import CrossSiteRequest, UnknownHost
from portal.web.context import web_context
from portal.web.server.hosts import is_own_host

# RFC 9110 section 9.2.1: these ask for nothing to be changed.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

# `none` is the user's own doing: a typed address, a bookmark.
OWN_SITES = frozenset({"same-origin", "none"})


async def refuse_other_names() -> None:
    """Raise `UnknownHost` for a request to a name that may be anyone's; see `hosts.py`."""
    config = web_context().config
    host = request.headers.get("Host", "")
    if not is_own_host(host, public_url=config.public_url, allowed=config.allowed_hosts):
        raise UnknownHost


async def refuse_other_sites() -> None:
    """Raise `CrossSiteRequest` for an unsafe request that another site's page sends."""
    if request.method not in SAFE_METHODS:
        hosts = own_hosts(request.host, web_context().config)
        require_same_origin(request.headers, hosts=hosts)


def require_same_origin(headers: Headers, *, hosts: frozenset[str]) -> None:
    """Raise `CrossSiteRequest` for a request from another site's page.

    `hosts` are the names this portal is reached by, ports included: the public one and the
    request's own, which `refuse_other_names` has looked at. Sec-Fetch-Site (W3C Fetch Metadata)
    counts where the browser sends it, which it does over https and to this machine; else Origin
    (RFC 6454).
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        if site not in OWN_SITES:
            raise CrossSiteRequest
        return
    origin = headers.get("Origin")
    if origin is not None and _host(origin) not in hosts:
        raise CrossSiteRequest


def own_hosts(host: str, config: Config) -> frozenset[str]:
    """The names this portal is reached by: the one a request used, and the public one."""
    return frozenset({host.lower(), _host(config.public_url)} - {""})


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
