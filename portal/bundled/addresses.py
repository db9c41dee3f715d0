"""Hosts, ports and whether something answers there."""

import errno
import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress

import aiohttp

from portal.bundled.data_folder import UpError

ANSWER_TIMEOUT = aiohttp.ClientTimeout(total=2)
# Reserved for documentation (RFC 5737): asked for the route, never sent to.
ELSEWHERE = "192.0.2.1"


def authority(host: str, port: int) -> str:
    """`host:port`, with the brackets of an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_any_address(host: str) -> bool:
    """Whether the host stands for all addresses of this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def local_peer(host: str) -> str:
    """How this machine itself reaches what listens on `host`."""
    if is_any_address(host):
        return "::1" if ":" in host else "127.0.0.1"
    return host


def reachable_host(host: str) -> str:
    """How others reach what listens on `host`: its primary address, else the machine's name."""
    if not is_any_address(host):
        return host
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((ELSEWHERE, 9))
        return str(probe.getsockname()[0])
    return socket.gethostname()


def check_port(host: str, port: int) -> None:
    """Raise `UpError`, in one line with the remedy, unless the port can be listened on."""
    try:
        _listen(host, port)
    except OSError as exc:
        text = f"cannot listen on {authority(host, port)}: {exc.strerror}; choose another --host"
        if exc.errno == errno.EADDRINUSE:
            text = f"port {port} on {host} is in use: choose another with --port"
        if exc.errno == errno.EACCES:
            text = f"port {port} needs special rights: choose one above 1023 with --port"
        raise UpError(text) from exc


def free_port(host: str, preferred: Iterable[int] = ()) -> int:
    """The first of the preferred ports that is free, else any free one."""
    for port in preferred:
        with suppress(OSError):
            return _listen(host, port)
    return _listen(host, 0)


async def http_status(host: str, port: int, path: str) -> int | None:
    """The status code of a GET, None when nothing answers in time."""
    try:
        async with (
            aiohttp.ClientSession(timeout=ANSWER_TIMEOUT) as session,
            session.get(f"http://{authority(host, port)}{path}") as answer,
        ):
            return answer.status
    except (aiohttp.ClientError, OSError):  # a time limit is one, too
        return None


def _listen(host: str, port: int) -> int:
    """Listen for a moment; returns the port. Connections that are just ending do not matter."""
    family, kind, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1)
        return int(listener.getsockname()[1])
