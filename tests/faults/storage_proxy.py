"""An HTTP proxy in front of an S3 server that injects error responses.

`bad_network` breaks connections; this proxy knows the requests. Signatures cover the host and pass
through unchanged, so clients need the proxy's address as that of storage.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import aiohttp
from aiohttp import web
from http_server import listening
from yarl import URL

CHUNK_BYTES = 64 * 1024
HOP_HEADERS = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "date"})
FAULTS = ("500 InternalError", "503 SlowDown", "507 InsufficientStorage")

# Takes the kind of a request, such as `GET videos`, and whether its address was presigned; returns
# the fault to inject, or None.
Choose = Callable[[str, bool], Awaitable[str | None]]


async def fine(kind: str, is_presigned: bool) -> None:
    """Refuse nothing."""


def weather(rng: Random, kind: str, *, share: float, limit: int) -> Choose:
    """Return a choice of faults for a share of the requests of this kind, up to a limit."""
    remaining = limit

    async def choose(request_kind: str, is_presigned: bool) -> str | None:
        nonlocal remaining
        if not remaining or request_kind != kind or rng.random() >= share:
            return None
        remaining -= 1
        return rng.choice(FAULTS)

    return choose


@dataclass(slots=True)
class StorageProxy:
    """Proxy to one S3 server. `tally` counts the injected faults by kind of request."""

    target: str
    session: aiohttp.ClientSession
    choose: Choose = fine
    url: str = ""
    tally: Counter[str] = field(default_factory=Counter)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        _, _, key = request.path.lstrip("/").partition("/")
        kind = f"{request.method} {key.partition('/')[0]}"
        fault = await self.choose(kind, "X-Amz-Signature" in request.query)
        # Botocore sends the body only after this response.
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if fault is not None:
            self.tally[f"{fault}: {kind}"] += 1
            return await _refused(request, fault)
        try:
            return await self._pass_on(request)
        except aiohttp.ClientError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()

    async def _pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        async with self.session.request(
            request.method,
            URL(self.target + request.raw_path, encoded=True),
            headers=[
                (name, value)
                for name, value in request.headers.items()
                if name.lower() not in HOP_HEADERS
            ],
            data=request.content.iter_chunked(CHUNK_BYTES) if request.can_read_body else None,
            allow_redirects=False,
        ) as answer:
            response = web.StreamResponse(status=answer.status, reason=answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in HOP_HEADERS:
                    response.headers.add(name, value)
            await response.prepare(request)
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                await response.write(chunk)
            return response


async def _refused(request: web.BaseRequest, fault: str) -> web.Response:
    """Return an error as S3 servers do, after reading the body so that clients see it."""
    async for _ in request.content.iter_chunked(CHUNK_BYTES):
        pass
    status, code = fault.split(" ")
    body = f"<Error><Code>{code}</Code><Message>Injected.</Message></Error>"
    return web.Response(status=int(status), text=body, content_type="application/xml")


@asynccontextmanager
async def storage_proxy(target: str) -> AsyncIterator[StorageProxy]:
    """Run a proxy to the S3 server at this address, without faults at first."""
    # A separate connection for each request avoids other faults.
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
    ) as session:
        proxy = StorageProxy(target, session)
        runner = web.ServerRunner(web.Server(proxy.handle), shutdown_timeout=1)
        async with listening(runner) as proxy.url:
            yield proxy
