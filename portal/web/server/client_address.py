"""Client address: the name under which limits count a request.

That is the address it comes from. Behind proxies, and only behind those that `TRUSTED_PROXIES`
names, it is what they say in X-Forwarded-For. The standard header, Forwarded (RFC 7239), is not
read: a proxy that writes one of the two passes the other on as the client sent it.
"""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from portal.web.server.asgi import App, HTTPScope, Receive, Send
from portal.web.server.request_context import state_of

Network = IPv4Network | IPv6Network

# A client usually has a whole network of IPv6 addresses: those that share so many first bits.
IPV6_CLIENT_BITS = 64
# Addresses whose reading is remembered; each costs about a hundred bytes.
REMEMBERED = 8192
LONGEST_ADDRESS = 64


class ClientAddress:
    """Sets the client in a request's state."""

    def __init__(self, app: App, *, trusted_proxies: Sequence[Network]) -> None:
        self._app = app
        self._trusted_proxies = trusted_proxies
        self._is_proxy = lru_cache(REMEMBERED)(self._look_up)

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        state_of(scope).client = self._identify(scope)
        await self._app(scope, receive, send)

    def _identify(self, scope: HTTPScope) -> str:
        peer = (scope.get("client") or ("",))[0]
        client = counted_as(peer)
        if self._trusted_proxies and self._is_proxy(peer):
            client = self._forwarded(scope, client)
        return client

    def _forwarded(self, scope: HTTPScope, client: str) -> str:
        """The first address, seen from here, that is no proxy of ours; or the farthest proxy."""
        notes = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        for note in reversed(notes.split(b",")):
            address = note.strip()[:LONGEST_ADDRESS].decode("latin-1")
            if not counted_as(address):
                break
            client = counted_as(address)
            if not self._is_proxy(address):
                break
        return client

    def _look_up(self, address: str) -> bool:
        parsed = _parse(address)
        return parsed is not None and any(parsed in network for network in self._trusted_proxies)


@lru_cache(REMEMBERED)
def counted_as(address: str) -> str:
    """The address itself, the /64 network of an IPv6 address, or nothing if it is neither."""
    parsed = _parse(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((parsed, IPV6_CLIENT_BITS), strict=False))
    return "" if parsed is None else str(parsed)


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
