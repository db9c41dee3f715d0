"""The app as served, in this process and with short time limits, and clients that misbehave.

Raw sockets, because no well-behaved client library sends half a request or stops reading.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypercorn import protocol as hypercorn_protocol
from hypercorn.asyncio import run as hypercorn_run
from hypercorn.asyncio import serve
from running_portal import answers, free_port, until

from portal.config import Config
from portal.web.app import create_app
from portal.web.server import connection_limit, http1
from portal.web.server.hypercorn_config import server_config

ANSWER_TIMEOUT_S = 30


@contextmanager
def silent_server() -> Iterator[str]:
    """Host and port of a server that takes connections, and that is all."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as silent:
        yield f"127.0.0.1:{silent.getsockname()[1]}"


@dataclass(frozen=True, slots=True)
class Served:
    """A running server and how to reach it."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def served(
    config: Config, monkeypatch: pytest.MonkeyPatch, *, keep_alive_s: float = 30
) -> AsyncIterator[Served]:
    """Serve the app with its limits on connections."""
    port = free_port()
    server = server_config("", host="127.0.0.1", port=port)
    server.workers = 1
    server.keep_alive_timeout = keep_alive_s
    server.graceful_timeout = 0.2
    # What `install` replaces is put back after the test.
    for module, name in ((hypercorn_run, "TCPServer"), (hypercorn_protocol, "H11Protocol")):
        monkeypatch.setattr(module, name, vars(module)[name])
    connection_limit.install(config.max_connections)
    http1.install()
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(create_app(config), server, shutdown_trigger=stop.wait))
        await until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), timeout_s=20)
        try:
            yield Served(port)
        finally:
            stop.set()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back on a connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        return json.loads(self.body)


class Peer:
    """One connection of a client that sends what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> Answer:
        """The next answer."""
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines)
            body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return Answer(int(first.split()[1]), headers, body)

    async def is_ended(self) -> bool:
        """Wait until the server has ended the connection; false when it takes far too long."""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._reader.read()
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connected(
    server: Served, *, receive_buffer_bytes: int | None = None
) -> AsyncIterator[Peer]:
    """A connection; its receive buffer may be made small before it is opened."""
    sock = socket.socket()
    sock.setblocking(False)
    if receive_buffer_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", server.port))
    reader, writer = await asyncio.open_connection(sock=sock)
    try:
        yield Peer(reader, writer)
    finally:
        writer.transport.abort()


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    """One HTTP/1.1 request; without headers of its own it has a Content-Length if a body."""
    lines = [f"{method} {path} HTTP/1.1", "Host: portal", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def ask(server: Served, method: str, path: str, *headers: str, body: bytes = b"") -> Answer:
    """Send a request on a connection of its own."""
    async with connected(server) as peer:
        await peer.send(request(method, path, *headers, body=body))
        return await peer.answer()
