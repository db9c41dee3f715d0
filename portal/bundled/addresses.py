"""Hosts and ports, and checks of what listens on them."""

import errno
import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress

import aiohttp

from portal.bundled.data_folder import UpError

RESPONSE_TIMEOUT = aiohttp.ClientTimeout(total=2)
# Address for documentation (RFC 5737), to find the route of outgoing packets; nothing is sent.
ELSEWHERE = "192.0.2.1"


def authority(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_any_address(host: str) -> bool:
    """Return whether a host stands for all addresses of this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def local_peer(host: str) -> str:
    """Return the address at which this machine itself reaches a server that listens on `host`."""
    if is_any_address(host):
        return "::1" if ":" in host else "127.0.0.1"
    return host


def reachable_host(host: str) -> str:
    """Return the address at which others reach a server that listens on `host`.

    For a wildcard address that is the machine's primary address, or its name without a network.
    """
    if not is_any_address(host):
        return host
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((ELSEWHERE, 9))
        return str(probe.getsockname()[0])
    return socket.gethostname()


def check_port(host: str, port: int) -> None:
    """Raise `UpError` unless the portal can listen on a port."""
    try:
        _listen(host, port)
    except OSError as exc:
        text = f"Can't listen on {authority(host, port)}: {exc.strerror}. Choose another --host."
        if exc.errno == errno.EADDRINUSE:
            text = f"Port {port} on {host} is in use. Choose another one with --port."
        if exc.errno == errno.EACCES:
            text = f"Port {port} requires root privileges. Choose one above 1023 with --port."
        raise UpError(text) from exc


def free_port(host: str, preferred: Iterable[int] = ()) -> int:
    """Return the first preferred port that is free, or any free port."""
    for port in preferred:
        with suppress(OSError):
            return _listen(host, port)
    return _listen(host, 0)


async def http_status(host: str, port: int, path: str) -> int | None:
    """Return the status code of a GET; None without a response in time."""
    try:
        async with (
            aiohttp.ClientSession(timeout=RESPONSE_TIMEOUT) as session,
            session.get(f"http://{authority(host, port)}{path}") as response,
        ):
            return response.status
    except (aiohttp.ClientError, OSError):  # TimeoutError is an OSError
        return None


def _listen(host: str, port: int) -> int:
    """Listen for a moment and return the port; ignore closing connections of earlier servers."""
    family, kind, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1)
        return int(listener.getsockname()[1])
