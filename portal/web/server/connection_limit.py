"""Connection limit: how many connections clients may have, and when one is given up.

Hypercorn ends a connection that stays idle, or whose headers do not arrive, after
`keep_alive_timeout`. But it has no limit on their number, keeps those that clients have ended for
as long, waits for ever for a response to be taken, and closes at once where a client is still
sending, which takes the response from it (RFC 9112 section 9.6). So its class for a connection is
replaced by one that knows better; this and `http1` are the places that reach into Hypercorn.
"""

import asyncio
import logging
import resource
from contextlib import suppress
from functools import partial
from typing import Any, cast

from hypercorn.asyncio import run as hypercorn_run
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, Event
from hypercorn.protocol import ProtocolWrapper

from portal.telemetry.logs import Tally
from portal.web.server.capacity import Capacity
from portal.web.server.client_address import counted_as

logger = logging.getLogger(__name__)

# For all that is no connection of a client: database, storage, files.
RESERVED_DESCRIPTORS = 256
# What has not been taken this long after the end of a connection never will be.
CLOSE_TIMEOUT_S = 5.0
# A client that is told no while it sends has this long to notice.
LINGER_S = 2.0
RESPONSE = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 5\r\n"
    b"Connection: close\r\n\r\n"
)


def raise_descriptor_limit() -> int:
    """Raise the soft limit on open files to the hard limit, which is returned.

    The soft limit is 1024 on most systems, fewer than the viewers of one process.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def install(max_connections: int) -> None:
    """Limit the connections of this process; one address gets half of them at most."""
    allowed = min(max_connections, raise_descriptor_limit() - RESERVED_DESCRIPTORS)
    if allowed < max_connections:
        logger.warning(
            "The limit on open files allows %d connections, not %d", allowed, max_connections
        )
    # Looked up there for each new connection.
    vars(hypercorn_run)["TCPServer"] = partial(_LimitedConnection, Capacity(allowed))


_refused = Tally(logger, "Connections refused", action="too_many_connections")


class _Ended:
    """Stands in for the protocol of a connection that is being closed: what arrives is dropped."""

    def __init__(self, protocol: ProtocolWrapper) -> None:
        self._protocol = protocol

    async def handle(self, event: Event) -> None:
        if isinstance(event, Closed):
            await self._protocol.handle(event)


class _LimitedConnection(TCPServer):
    def __init__(self, capacity: Capacity, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._capacity = capacity
        self._has_ended = asyncio.Event()

    async def run(self) -> None:
        peer = self.writer.get_extra_info("peername")
        client = counted_as(peer[0]) if peer else ""
        if not self._capacity.acquire(client):
            _refused.add()
            self.writer.write(RESPONSE)
            self._has_ended.set()
            await self._close()
            return
        try:
            await super().run()
        finally:
            self._capacity.release(client)

    async def _read_data(self) -> None:
        try:
            await super()._read_data()
        finally:
            self._has_ended.set()
            # Or all there is of the connection is kept until it has been idle for long enough.
            await self.idle_task.stop()

    async def _close(self) -> None:
        limit = self._abort_later()
        try:
            if not self._has_ended.is_set() and not self.context.terminated.is_set():
                await self._linger()
            # Of a client that is gone already uvloop says ENOTCONN, which Hypercorn knows not of.
            with suppress(OSError):
                await super()._close()
        finally:
            limit.cancel()

    async def _linger(self) -> None:
        self.protocol = cast("ProtocolWrapper", _Ended(self.protocol))
        with suppress(OSError, RuntimeError, TimeoutError):
            self.writer.write_eof()
            async with asyncio.timeout(LINGER_S):
                await self._has_ended.wait()

    async def _initiate_server_close(self) -> None:
        self._abort_later()
        await super()._initiate_server_close()

    def _abort_later(self) -> asyncio.TimerHandle:
        """Closing waits for the last bytes to be taken; a client that stopped reading won't."""
        return self.loop.call_later(CLOSE_TIMEOUT_S, self.writer.transport.abort)
