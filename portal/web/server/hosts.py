"""Host check: which names this portal answers to.

A page at evil.example may have its name resolve to this machine once it is loaded (DNS
rebinding); to the browser the portal then is part of that page's own site. What gives it away is
the Host header, which still says evil.example. Addresses, and names that public DNS does not
hold, cannot be made to point here by a stranger, so they need no setting.
"""

from functools import lru_cache, partial
from urllib.parse import urlsplit

from portal.config.values import ANY_HOST
from portal.errors import UnknownHost
from portal.text import host_name
from portal.web.server.asgi import App, HTTPScope, Receive, Send, header
from portal.web.server.client_address import counted_as

# Reserved: RFC 6761 and 6762, RFC 8375, and ICANN's name for private networks.
PRIVATE_ENDINGS = (".localhost", ".local", ".home.arpa", ".internal")


class HostCheck:
    """Refuses requests to names that may be anyone's."""

    def __init__(self, app: App, *, public_url: str, allowed: tuple[str, ...]) -> None:
        self._app = app
        self._is_own = partial(is_own_host, public_url=public_url, allowed=allowed)

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        if not self._is_own(header(scope, b"host")):
            raise UnknownHost
        await self._app(scope, receive, send)


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
