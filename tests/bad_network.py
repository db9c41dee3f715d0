"""A TCP proxy between clients and a server that injects faults.

Signatures cover the host, so storage behind the proxy needs the proxy's address as its public one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict
from running_portal import free_port

CHUNK_BYTES = 64 * 1024

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Network:
    """Proxy to one server. Faults begin at once and affect every connection."""

    connect: Callable[[], Awaitable[Ends]]
    own_port: int = 0
    passed_bytes: int = 0
    cuts: int = 0
    on_passed: Callable[[int], None] | None = None
    """Called with `passed_bytes`, in both directions, whenever bytes have passed."""

    def __post_init__(self) -> None:
        self._writers: set[asyncio.StreamWriter] = set()
        self._cut_marks: list[int] = []
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.own_port}"

    def cut(self) -> None:
        """Reset all connections."""
        self.cuts += 1
        for writer in list(self._writers):
            writer.transport.abort()

    def cut_at(self, marks: Iterable[int]) -> None:
        """Reset all connections when these numbers of bytes have passed from now on."""
        self._cut_marks = sorted(self.passed_bytes + mark for mark in marks)

    def stall(self) -> None:
        """Stop all bytes without closing a connection."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    async def up(self) -> None:
        """Accept connections, always on the same port."""
        self.own_port = self.own_port or free_port()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.own_port)

    async def down(self) -> None:
        """Refuse connections, and reset the open ones."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        server_reader, server_writer = await self.connect()
        ways = (
            asyncio.create_task(self._pass_on(reader, server_writer)),
            asyncio.create_task(self._pass_on(server_reader, writer)),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()
            server_writer.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                await self._flowing.wait()
                before = self.passed_bytes
                self.passed_bytes += len(data)
                if self.on_passed is not None:
                    self.on_passed(self.passed_bytes)
                if self._cut_marks and self.passed_bytes >= self._cut_marks[0]:
                    writer.write(data[: self._cut_marks.pop(0) - before])
                    self.cut()
                    return
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def network_to(address: str) -> AsyncIterator[Network]:
    """Run a proxy to the server at this http address."""
    parts = urlsplit(address)
    network = Network(partial(asyncio.open_connection, parts.hostname, parts.port))
    await network.up()
    try:
        yield network
    finally:
        network.flow()
        await network.down()


@asynccontextmanager
async def network_to_database(database_url: str) -> AsyncIterator[tuple[Network, str]]:
    """Run a proxy to a database server on a socket; yields it and the URL through it."""
    settings = conninfo_to_dict(database_url)
    socket = f"{settings['host']}/.s.PGSQL.{settings.get('port') or 5432}"
    network = Network(partial(asyncio.open_unix_connection, socket))
    await network.up()
    address = f"{settings.get('user', '')}@127.0.0.1:{network.own_port}/{settings['dbname']}"
    try:
        yield network, f"postgresql://{address}?sslmode=disable&gssencmode=disable"
    finally:
        network.flow()
        await network.down()
