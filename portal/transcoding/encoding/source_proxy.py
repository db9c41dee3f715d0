"""Keep a source's address out of ffmpeg's command line, which everyone on a machine can list.

The address may be signed, and ffmpeg takes an input's name nowhere but from its arguments. So it
is given a name that leads nowhere, and in its environment, which only its own user can read, a
proxy on the loopback interface. That answers requests for the name, if they bring the password,
with a redirect to the address; the source's host itself is exempt from the proxy, so what is read
comes straight from there. ffmpeg asks again for every seek, which costs a local round trip.
"""

import asyncio
import secrets
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import urlsplit

_REQUEST_TIMEOUT_S = 10
_MAX_HEAD_BYTES = 16 * 1024
# Reserved for names that exist nowhere (RFC 6761 section 6.4).
_HOST = "source.invalid"
_NAME = f"http://{_HOST}/source"
_USER = "portal"
_PASSWORD_BYTES = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxiedSource:
    """What ffmpeg is to read, by a name that anyone may see, and what it needs to find it."""

    name: str
    environ: Mapping[str, str] = field(default_factory=dict)


@asynccontextmanager
async def proxied(source_url: str) -> AsyncIterator[ProxiedSource]:
    """Name a source for as long as the context lasts; a path stands for itself."""
    parts = urlsplit(source_url)
    if parts.scheme not in ("http", "https"):
        yield ProxiedSource(name=source_url)
        return
    password = secrets.token_urlsafe(_PASSWORD_BYTES)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        with suppress(OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(head, source_url, password))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES)
    async with server:
        port = server.sockets[0].getsockname()[1]
        proxy = f"http://{_USER}:{password}@127.0.0.1:{port}"
        environ = {"http_proxy": proxy, "no_proxy": _host(parts.netloc)}
        yield ProxiedSource(name=_NAME, environ=environ)


def _host(netloc: str) -> str:
    """The host as it is written: ffmpeg compares it letter by letter."""
    host = netloc.rpartition("@")[2]
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _response(head: bytes, source_url: str, password: str) -> bytes:
    credentials = b"Basic " + b64encode(f"{_USER}:{password}".encode())
    if not compare_digest(_header(head, b"proxy-authorization"), credentials):
        # It sends the password when it is asked to.
        status = "407 Proxy Authentication Required"
        header = 'Proxy-Authenticate: Basic realm="source"'
    elif _header(head, b"host").partition(b":")[0] != _HOST.encode():
        status, header = "403 Forbidden", "Cache-Control: no-store"
    else:
        status, header = "302 Found", f"Location: {source_url}"
    lines = (f"HTTP/1.1 {status}", header, "Content-Length: 0", "Connection: close", "", "")
    return "\r\n".join(lines).encode("latin-1")


def _header(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        found, _, value = line.partition(b":")
        if found.strip().lower() == name:
            return value.strip()
    return b""
