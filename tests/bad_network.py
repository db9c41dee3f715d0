"""A bad network on demand: a TCP proxy between clients and storage that breaks things.

Storage behind it must be told this address as its public one, since signatures cover the host.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

CHUNK_BYTES = 64 * 1024


@dataclass
class Network:
    """The way to one server. All faults begin at once and hit every connection."""

    host: str
    port: int
    own_port: int = 0
    uploaded_bytes: int = 0
    """Bytes that clients sent and that got through, sent again or not."""
    cuts: int = 0
    on_upload: Callable[[int], None] | None = None
    """Told of `uploaded_bytes` as they pass."""

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
        """Reset all connections each time so many more bytes have been uploaded from now on."""
        self._cut_marks = sorted(self.uploaded_bytes + mark for mark in marks)

    def stall(self) -> None:
        """Let nothing pass, without closing anything."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    async def up(self) -> None:
        """Take connections, always on the same port."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.own_port)
            self.own_port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Refuse connections and reset those there are."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        server_reader, server_writer = await asyncio.open_connection(self.host, self.port)
        ways = (
            asyncio.create_task(self._forth(reader, server_writer)),
            asyncio.create_task(self._back(server_reader, writer)),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._writers.discard(writer)
            for each in (writer, server_writer):
                each.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _forth(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                await self._flowing.wait()
                self.uploaded_bytes += len(data)
                if self.on_upload is not None:
                    self.on_upload(self.uploaded_bytes)
                if self._cut_marks and self.uploaded_bytes >= self._cut_marks[0]:
                    self._cut_marks.pop(0)
                    self.cut()
                    return
                writer.write(data)
                await writer.drain()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def network_to(address: str) -> AsyncIterator[Network]:
    """A proxy to the server at this http address."""
    parts = urlsplit(address)
    network = Network(parts.hostname or "127.0.0.1", parts.port or 80)
    await network.up()
    try:
        yield network
    finally:
        network.flow()
        await network.down()
