"""A bad S3 server on demand: an HTTP proxy in front of a real one that answers wrongly.

`bad_network` breaks lines; this one knows what is asked for, so that one kind of call may fail
while others work. Whoever uses it must be told its address as that of storage: signatures cover
the host, and pass through unchanged.
"""

import io
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

import aiohttp
from aiohttp import web
from yarl import URL

CHUNK_BYTES = 64 * 1024
HOP_HEADERS = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "date"})
LIST_ENTRIES = re.compile(rb"<(Part|Contents|Upload)>.*</\1>", re.DOTALL)


class Fault(StrEnum):
    """What may happen to a request."""

    ERROR = "500 InternalError"
    SLOW_DOWN = "503 SlowDown"
    FULL = "507 InsufficientStorage"
    CUT_REQUEST = "cut in the request"
    CUT_ANSWER = "cut in the answer"
    LOST_ANSWER = "done, but not answered"


CODED = frozenset({Fault.ERROR, Fault.SLOW_DOWN, Fault.FULL})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, by what it is for."""

    method: str
    key: str
    query: Mapping[str, str]

    @property
    def kind(self) -> str:
        """Such as `GET videos`: the method and the top folder; lists, parts, masters told apart."""
        if self.is_list:
            return "LIST parts" if "uploadId" in self.query else "LIST objects"
        if "uploadId" in self.query or "uploads" in self.query:
            return f"{self.method} {'part' if 'partNumber' in self.query else 'multipart'}"
        is_master = self.key.endswith("/master.m3u8")
        return f"{self.method} {'master' if is_master else self.key.partition('/')[0]}"

    @property
    def is_list(self) -> bool:
        is_parts = "uploadId" in self.query and "partNumber" not in self.query
        return self.method == "GET" and (is_parts or "list-type" in self.query)


Choose = Callable[[Asked], Fault | None]


def fine(asked: Asked) -> Fault | None:
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

    def choose(asked: Asked) -> Fault | None:
        nonlocal left
        if left == 0 or not re.fullmatch(kinds, asked.kind) or rng.random() >= share:
            return None
        left = None if left is None else left - 1
        return rng.choice(list(faults))

    return choose


@dataclass(slots=True)
class StorageProxy:
    """The way to one S3 server. `tally` counts what was done to which kind of request."""

    target: str
    rng: Random
    choose: Choose = fine
    before: Callable[[Asked], Awaitable[None]] | None = None
    """Awaited before a request is passed on."""
    lists_late: bool = False
    """Answers each list with what the same list held when asked before; at first with nothing."""
    url: str = ""
    tally: Counter[str] = field(default_factory=Counter)
    _lists: dict[str, bytes] = field(default_factory=dict)
    _session: aiohttp.ClientSession | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        asked = _asked(request)
        if self.before is not None:
            await self.before(asked)
        fault = self.choose(asked)
        if fault is not None:
            self.tally[f"{fault}: {asked.kind}"] += 1
        _invite_body(request)
        if fault in CODED and fault is not None:
            return await _refused(request, fault)
        try:
            return await self._pass_on(request, asked, fault)
        except aiohttp.ClientError:
            return _cut(request)

    async def _pass_on(
        self, request: web.BaseRequest, asked: Asked, fault: Fault | None
    ) -> web.StreamResponse:
        assert self._session is not None
        async with self._session.request(
            request.method,
            URL(self.target + request.raw_path, encoded=True),
            headers=[it for it in request.headers.items() if it[0].lower() not in HOP_HEADERS],
            data=self._body(request, fault) if request.can_read_body else None,
            allow_redirects=False,
        ) as answer:
            if fault is Fault.LOST_ANSWER:
                await answer.read()
            if fault in (Fault.LOST_ANSWER, Fault.CUT_REQUEST):
                return _cut(request)
            if asked.is_list and self.lists_late:
                return await self._late(request, answer)
            return await self._answered(request, answer, fault)

    async def _body(self, request: web.BaseRequest, fault: Fault | None) -> AsyncIterator[bytes]:
        left = self.rng.randrange(request.content_length or 1)
        async for chunk in request.content.iter_chunked(CHUNK_BYTES):
            if fault is Fault.CUT_REQUEST and left < len(chunk):
                yield chunk[:left]
                raise aiohttp.ClientConnectionError
            left -= len(chunk)
            yield chunk

    async def _answered(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, fault: Fault | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in HOP_HEADERS:
                response.headers.add(name, value)
        length = int(answer.headers.get("Content-Length", 0))
        if fault is Fault.CUT_ANSWER and (not length or request.method == "HEAD"):
            return _cut(request)
        left = self.rng.randrange(length) if fault is Fault.CUT_ANSWER else None
        await response.prepare(request)
        async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
            if left is not None and left < len(chunk):
                await response.write(chunk[:left])
                return _cut(request)
            left = None if left is None else left - len(chunk)
            await response.write(chunk)
        return response

    async def _late(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        fresh = await answer.read()
        if answer.status != 200:
            return web.Response(status=answer.status, body=fresh, content_type="application/xml")
        body = self._lists.get(request.raw_path, LIST_ENTRIES.sub(b"", fresh))
        self._lists[request.raw_path] = fresh
        return web.Response(body=body, content_type="application/xml")


async def send(address: str, content: bytes) -> int:
    """Put content to a signed address, as it is written; returns the status."""
    body, headers = io.BytesIO(content), {"Content-Type": "video/mp4"}
    async with (
        aiohttp.ClientSession() as session,
        session.put(URL(address, encoded=True), data=body, headers=headers) as answer,
    ):
        return answer.status


@asynccontextmanager
async def storage_proxy(target: str, *, seed: int = 1) -> AsyncIterator[StorageProxy]:
    """A running proxy to the S3 server at this address; it answers well until told otherwise."""
    proxy = StorageProxy(target, Random(seed))  # noqa: S311  # no secret
    runner = web.ServerRunner(web.Server(proxy.handle), shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(host, port)] = runner.addresses
    proxy.url = f"http://{host}:{port}"
    # A connection of its own for each request: no fault but those that were asked for.
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
    ) as session:
        proxy._session = session
        try:
            yield proxy
        finally:
            await runner.cleanup()


def _asked(request: web.BaseRequest) -> Asked:
    _, _, key = request.path.lstrip("/").partition("/")
    return Asked(request.method, key, dict(request.query))


def _invite_body(request: web.BaseRequest) -> None:
    """Botocore holds a body back until it is asked for."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


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
