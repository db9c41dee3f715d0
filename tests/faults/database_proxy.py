"""A bad line to PostgreSQL on demand: a proxy that cuts, freezes or refuses connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict

CHUNK_BYTES = 8 * 1024


@dataclass(slots=True)
class DatabaseProxy:
    """The way to one server. Faults hit all its connections at once."""

    socket: str
    cuts: int = 0
    refuses: bool = False
    """Whether new connections are reset at once."""
    _left_bytes: int | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)

    def cut(self) -> None:
        self.cuts += 1
        for writer in list(self._writers):
            writer.transport.abort()

    def go_away(self) -> None:
        """Reset all connections, and every new one."""
        self.refuses = True
        self.cut()

    def cut_after(self, count: int) -> None:
        """Reset all connections once so many more bytes have passed, either way."""
        self._left_bytes = count

    def freeze(self) -> None:
        """Let nothing pass, without closing anything."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(self.socket)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, server_writer}
        ways = [
            asyncio.create_task(self._pass_on(reader, server_writer)),
            asyncio.create_task(self._pass_on(server_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._writers -= {writer, server_writer}
            for each in (writer, server_writer):
                each.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                await self._flowing.wait()
                if self._left_bytes is not None:
                    passed, self._left_bytes = self._left_bytes, self._left_bytes - len(data)
                    if passed < len(data):
                        self._left_bytes = None
                        writer.write(data[:passed])
                        self.cut()
                        return
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def database_proxy(database_url: str) -> AsyncIterator[tuple[DatabaseProxy, str]]:
    """A proxy to the server with this address (of a socket), and the address through it."""
    settings = conninfo_to_dict(database_url)
    socket = f"{settings['host']}/.s.PGSQL.{settings.get('port') or 5432}"
    proxy = DatabaseProxy(socket)
    proxy.thaw()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user, name = settings.get("user", ""), settings["dbname"]
    password = f":{settings['password']}" if settings.get("password") else ""
    address = f"postgresql://{user}{password}@127.0.0.1:{port}/{name}"
    try:
        yield proxy, f"{address}?sslmode=disable&gssencmode=disable"
    finally:
        proxy.thaw()
        server.close()
        proxy.cut()
        await server.wait_closed()
