"""Request validation: refuses what is no proper HTTP, and what the server lets through anyway.

That is a request target that is no path, a body whose end is told in two ways (RFC 9112 section
6.1, request smuggling), a host that can't be one (section 3.2), another major version, and more
headers than any client needs. `http1` refuses what can be seen in the raw bytes only.
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

from portal.errors import AmbiguousLength, BadTarget, InvalidHost, OtherVersion, TooManyHeaders
from portal.web.server.asgi import App, HTTPScope, Receive, Send, header

# A browser sends about twenty.
MAX_HEADERS = 100
# As RFC 9112 section 3.2.2 has them; what stands in them of a host is not looked at.
ABSOLUTE_FORM = ("http://", "https://")
# As RFC 3986 section 3.2.2 has it, in labels of DNS (RFC 1035 section 2.3.4), with the underscore
# that proxies' own names of servers may have.
LABEL = "[a-z0-9_-]{1,63}"
HOST = re.compile(rf"({LABEL}(\.{LABEL})*\.?|\[[0-9a-f:.]+\])(:[0-9]{{1,5}})?", re.IGNORECASE)
MAX_HOST_LENGTH = 253 + len(":65535")


class RequestValidation:
    """Lets proper requests through."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        validate(scope)
        scope["path"] = path_of(scope["path"])
        await self._app(scope, receive, send)


def validate(scope: HTTPScope) -> None:
    """Raise what is wrong with a request, if anything."""
    names = [name for name, _ in scope["headers"]]
    is_chunked = b"transfer-encoding" in names
    if not scope["http_version"].startswith("1."):
        raise OtherVersion
    if len(names) > MAX_HEADERS:
        raise TooManyHeaders
    if is_chunked and (b"content-length" in names or scope["http_version"] == "1.0"):
        raise AmbiguousLength
    # An empty one, or none as in HTTP/1.0, is allowed; `http1` refuses several.
    if not is_host(header(scope, b"host")):
        raise InvalidHost


def path_of(target: str) -> str:
    """The path of a request target; raises `BadTarget` if it has none."""
    try:
        is_absolute = target.lower().startswith(ABSOLUTE_FORM)
        path = (urlsplit(target).path or "/") if is_absolute else target
    except ValueError:
        raise BadTarget from None
    if not path.startswith("/"):
        raise BadTarget
    return path


@lru_cache(maxsize=1024)
def is_host(host: str) -> bool:
    """Whether this can be the name or address, and port, of a server, or is empty."""
    if not host:
        return True
    if len(host) > MAX_HOST_LENGTH or not HOST.fullmatch(host):
        return False
    try:
        # Both raise: an address in brackets that is none, and a port that is too large.
        return urlsplit(f"//{host}").port != 0
    except ValueError:
        return False
