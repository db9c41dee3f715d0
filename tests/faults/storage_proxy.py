"""A bad S3 server on demand: an HTTP proxy in front of a real one that answers wrongly.

`bad_network` breaks lines; this one knows what is asked for. Whoever uses it must be told its
address as that of storage: signatures cover the host, and pass through unchanged.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

import aiohttp
from aiohttp import web
from yarl import URL

CHUNK_BYTES = 64 * 1024
HOP_HEADERS = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "date"})


class Fault(StrEnum):
    """What may happen to a request."""

    ERROR = "500 InternalError"
    SLOW_DOWN = "503 SlowDown"
    FULL = "507 InsufficientStorage"
    CUT_REQUEST = "cut in the request"
    CUT_ANSWER = "cut in the answer"
    LOST_ANSWER = "done, but not answered"


CODED = frozenset({Fault.ERROR, Fault.SLOW_DOWN, Fault.FULL})


# Told the kind of a request, such as `GET videos`, and whether its address was presigned.
Choose = Callable[[str, bool], Awaitable[Fault | None]]


async def fine(kind: str, is_presigned: bool) -> Fault | None:
    return None


def weather(
    rng: Random,
    *,
    faults: Collection[Fault] = Fault,
    share: float = 1.0,
    kinds: str = ".*",
    limit: int | None = None,
) -> Choose:
    """Such faults in this share of the requests of these kinds, and no more than the limit."""
    left = limit

    async def choose(kind: str, is_presigned: bool) -> Fault | None:
        nonlocal left
        if left == 0 or not re.fullmatch(kinds, kind) or rng.random() >= share:
            return None
        left = None if left is None else left - 1
        return rng.choice(list(faults))

    return choose


@dataclass(slots=True)
class StorageProxy:
    """The way to one S3 server. `tally` counts what was done to which kind of request."""

    target: str
    session: aiohttp.ClientSession
    choose: Choose = fine
    url: str = ""
    tally: Counter[str] = field(default_factory=Counter)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        kind = _kind(request)
        fault = await self.choose(kind, "X-Amz-Signature" in request.query)
        if fault is not None:
            self.tally[f"{fault}: {kind}"] += 1
        # Botocore holds a body back until it is asked for.
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if fault in CODED:
            return await _refused(request, fault)
        if fault is Fault.CUT_REQUEST and not request.can_read_body:
            return _cut(request)
        try:
            return await self._pass_on(request, fault)
        except aiohttp.ClientError:
            return _cut(request)

    async def _pass_on(self, request: web.BaseRequest, fault: Fault | None) -> web.StreamResponse:
        async with self.session.request(
            request.method,
            URL(self.target + request.raw_path, encoded=True),
            headers=[it for it in request.headers.items() if it[0].lower() not in HOP_HEADERS],
            data=_body(request, fault) if request.can_read_body else None,
            allow_redirects=False,
        ) as answer:
            content = await answer.read() if fault else b""
            if fault is Fault.LOST_ANSWER or (fault and not content):
                return _cut(request)
            response = web.StreamResponse(status=answer.status, reason=answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in HOP_HEADERS:
                    response.headers.add(name, value)
            await response.prepare(request)
            if fault:
                await response.write(content[: len(content) // 2])
                return _cut(request)
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                await response.write(chunk)
            return response


def _kind(request: web.BaseRequest) -> str:
    """The method and the top folder; parts and multipart uploads told apart."""
    if "partNumber" in request.query:
        return f"{request.method} part"
    if request.query.keys() & {"uploadId", "uploads"}:
        return f"{request.method} multipart"
    _, _, key = request.path.lstrip("/").partition("/")
    return f"{request.method} {key.partition('/')[0]}"


async def _body(request: web.BaseRequest, fault: Fault | None) -> AsyncIterator[bytes]:
    left = (request.content_length or 1) // 2
    async for chunk in request.content.iter_chunked(CHUNK_BYTES):
        if fault is Fault.CUT_REQUEST and left < len(chunk):
            yield chunk[:left]
            raise aiohttp.ClientConnectionError
        left -= len(chunk)
        yield chunk


async def _refused(request: web.BaseRequest, fault: Fault) -> web.Response:
    """An error as S3 servers word it. They read the body first, or clients see a broken line."""
    async for _ in request.content.iter_chunked(CHUNK_BYTES):
        pass
    status, code = fault.value.split(" ")
    body = f"<Error><Code>{code}</Code><Message>Injected.</Message></Error>"
    return web.Response(status=int(status), text=body, content_type="application/xml")


def _cut(request: web.BaseRequest) -> web.Response:
    """Reset the connection; what is returned reaches nobody."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


@asynccontextmanager
async def storage_proxy(target: str) -> AsyncIterator[StorageProxy]:
    """A running proxy to the S3 server at this address; it answers well until told otherwise."""
    # A connection of its own for each request: no fault but those that were asked for.
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
    ) as session:
        proxy = StorageProxy(target, session)
        runner = web.ServerRunner(web.Server(proxy.handle), shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield proxy
        finally:
            await runner.cleanup()
