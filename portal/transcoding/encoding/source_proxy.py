"""Keep a source's address out of ffmpeg's command line, which all users of a machine can list.

The address may be signed, and ffmpeg takes the name of an input only from its arguments. So its
arguments have a name that doesn't exist, and its environment, which only its user can read, has
the address and password of a proxy on the loopback interface. The proxy redirects requests for the
name to the address of the source. The host of the source is exempt from the proxy, so ffmpeg reads
from it directly. Each seek costs an additional local round trip.
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
# Top-level domain of names that never exist (RFC 6761, section 6.4).
_HOST = "source.invalid"
_NAME = f"http://{_HOST}/source"
_USER = "portal"
_PASSWORD_BYTES = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxiedSource:
    """Source by a name that all users may see, and the environment in which ffmpeg finds it."""

    name: str
    environ: Mapping[str, str] = field(default_factory=dict)


@asynccontextmanager
async def proxied(source_url: str) -> AsyncIterator[ProxiedSource]:
    """Give a source a name for as long as the context lasts; a path is its name."""
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
    """Return the host as it is written, because ffmpeg compares it as text."""
    host = netloc.rpartition("@")[2]
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _response(head: bytes, source_url: str, password: str) -> bytes:
    credentials = b"Basic " + b64encode(f"{_USER}:{password}".encode())
    if not compare_digest(_header(head, b"proxy-authorization"), credentials):
        # ffmpeg sends the password after this response.
        status = "407 Proxy Authentication Required"
        header = 'Proxy-Authenticate: Basic realm="source"'
    elif _header(head, b"host").partition(b":")[0] != _HOST.encode():
        status = "403 Forbidden"
        header = "Cache-Control: no-store"
    else:
        status = "302 Found"
        header = f"Location: {source_url}"
    lines = (f"HTTP/1.1 {status}", header, "Content-Length: 0", "Connection: close", "", "")
    return "\r\n".join(lines).encode("latin-1")


def _header(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        field_name, _, value = line.partition(b":")
        if field_name.strip().lower() == name:
            return value.strip()
    return b""
