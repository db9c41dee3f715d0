"""Request validation: refuses what is no proper HTTP, and what the server lets through anyway.

That is a request target that is no path, a body whose end is told in two ways (RFC 9112 section
6.1, request smuggling), a host that can't be one (section 3.2), another major version, and more
headers than any client needs. `http1` refuses what can be seen in the raw bytes only.
"""

from urllib.parse import urlsplit

from portal.errors import (
    AmbiguousLength,
    BadTarget,
    InvalidHost,
    OtherVersion,
    TooManyHeaders,
)
from portal.text import host_name
from portal.web.server.asgi import App, HTTPScope, Receive, Send, header

# A browser sends about twenty.
MAX_HEADERS = 100
# As RFC 9112 section 3.2.2 has them; what stands in them of a host is not looked at.
ABSOLUTE_FORM = ("http://", "https://")


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
    host = header(scope, b"host")
    if host and not host_name(host):
        raise InvalidHost


def path_of(target: str) -> str:
    """The path of a request target, with one slash in front; raises `BadTarget` if it has none.

    Routing drops further ones, and the middlewares have to see the address that it sees.
    """
    try:
        is_absolute = target.lower().startswith(ABSOLUTE_FORM)
        path = (urlsplit(target).path or "/") if is_absolute else target
    except ValueError:
        raise BadTarget from None
    if not path.startswith("/"):
        raise BadTarget
    return f"/{path.lstrip('/')}"
