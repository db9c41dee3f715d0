"""Requests to addresses that people typed in, kept away from private networks.

Each socket is opened through a check of the very address that it connects to. The spelling of an
address, a second resolution of its name, and redirects can't get around that. Callers follow
redirects themselves, if at all, and check each with `address_fault`.
"""

import errno
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import aiohttp

from portal.config import Config
from portal.locale.messages import Message
from portal.text import host_name, http_address

Network = IPv4Network | IPv6Network

MAX_ADDRESS_LENGTH = 2000
# All other IPv6 addresses are special: mapped IPv4, NAT64, local, multicast.
PUBLIC_IPV6 = ip_network("2000::/3")
# Python counts these as public. The third has the metadata service of Oracle, the last of Azure.
SPECIAL = tuple(map(ip_network, ("2002::/16", "3fff::/20", "192.0.0.0/24", "168.63.129.16/32")))


class AddressRefused(OSError):
    """The address is in a network that requests must not reach."""


class RequestFailed(Exception):
    """A request failed; the text is the reason, for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_allowed(address: str, networks: Sequence[Network]) -> bool:
    """Return whether requests may reach an IP address: a public one, or one in the networks.

    Raises `ValueError` for a text that isn't an IP address, such as the name of a host.
    """
    parsed = ip_address(address)
    if any(parsed in network for network in networks):
        return True
    is_special = parsed.is_multicast or any(parsed in network for network in SPECIAL)
    return parsed.is_global and not is_special and (parsed.version == 4 or parsed in PUBLIC_IPV6)


def address_fault(url: str, config: Config) -> str | None:
    """Return what is wrong with an address for requests, for people; None if nothing is.

    The addresses that a host name resolves to are checked when a request connects.
    """
    parts = http_address(url)
    is_plain = len(url) <= MAX_ADDRESS_LENGTH and url.isprintable()
    if parts is None or not is_plain or "@" in parts.netloc or parts.port == 0:
        return Message(
            "Give an address like https://example.org/path, without a user's name in it."
        )
    if parts.scheme != "https" and not config.outgoing_allow_http:
        return Message("Give an https address.")
    host = str(parts.hostname)
    with suppress(ValueError):
        return None if is_allowed(host, config.outgoing_networks) else _refusal(host)
    if _is_host_name(host):
        return None
    return Message("Give an address with the name of a host in it, such as example.org.")


def _is_host_name(host: str) -> bool:
    """Return whether a name, in letters of any language, can be looked up."""
    try:
        return bool(host_name(host.encode("idna").decode()))
    except UnicodeError:
        return False


@asynccontextmanager
async def open_session(
    *, networks: Sequence[Network], timeout_s: float, idle_s: float | None = None
) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session whose requests reach public addresses, and those in these networks.

    A request with its response takes at most `timeout_s`. Connecting, and each wait for data, take
    at most `idle_s`. For other addresses requests raise `aiohttp.ClientConnectorError`, with the
    words of an `AddressRefused`.
    """

    def open_socket(info: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, (address, *_) = info
        if not is_allowed(address, networks):
            raise AddressRefused(errno.EACCES, _refusal(address))
        return socket.socket(family, kind, protocol)

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(socket_factory=open_socket),
        timeout=aiohttp.ClientTimeout(total=timeout_s, connect=idle_s, sock_read=idle_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        # A small response may unpack to a large one.
        auto_decompress=False,
    ) as session:
        yield session


async def read_start(response: aiohttp.ClientResponse, *, max_bytes: int) -> bytes:
    """Return the beginning of a response's body, at most this long."""
    body = b""
    while len(body) < max_bytes and (more := await response.content.read(max_bytes - len(body))):
        body += more
    return body


def failure_words(exc: Exception) -> str:
    """Return why a request failed, for people, without the addresses of its host name."""
    match exc:
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(exc.certificate_error, "verify_message", "")
            return Message("The server's certificate is not valid: %(reason)s.", reason=reason)
        case aiohttp.ClientConnectorDNSError():
            return Message("The server's name could not be found.")
        case TimeoutError():
            return Message("The server did not answer in time.")
        case OSError(errno=errno.EACCES):
            return Message(
                "The server's name leads to a network that this portal sends no requests to."
            )
        case aiohttp.ClientConnectorError():
            return Message("The server could not be reached.")
        case RequestFailed():
            return exc.reason
        case aiohttp.ClientResponseError() | ValueError():
            return Message("The server's answer is not valid.")
    return Message("The server closed the connection too early.")


def _refusal(address: str) -> str:
    return Message(
        "%(address)s is no public address, and OUTGOING_NETWORKS doesn't have it", address=address
    )
