"""Tortoise's psycopg engine, on a pool that outlives restarts of the database.

Named as the engine in `database.tortoise_config`; Tortoise looks for `client_class` here.
"""

from __future__ import annotations

import select
from time import monotonic
from typing import Any

from psycopg import AsyncConnection, OperationalError
from psycopg_pool import AsyncConnectionPool
from tortoise.backends.psycopg.client import AsyncConnectionPool as TortoisePool
from tortoise.backends.psycopg.client import PsycopgClient


class _Pool(TortoisePool):
    """Hands out live connections only, and replaces dead ones at once.

    psycopg_pool's own check pauses for seconds after each dead connection that it meets; a server
    that was restarted leaves a pool full of them.
    """

    async def getconn(  # the pool's own signature
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> AsyncConnection[Any]:
        deadline = monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            connection = await super().getconn(deadline - monotonic())
            try:
                is_alive = await _is_alive(connection)
            except BaseException:
                await self.putconn(connection)
                raise
            if is_alive:
                return connection
            await self.putconn(connection)


class _Client(PsycopgClient):
    """Tortoise's client, on that pool. One that could not be opened is made anew next time."""

    async def create_pool(self, **settings: Any) -> _Pool:
        settings["check"] = None
        pool = _Pool(open=False, **settings)
        await pool.open()
        return pool

    async def create_connection(self, with_db: bool) -> None:
        try:
            await super().create_connection(with_db)
        except BaseException:
            pool, self._pool = self._pool, None
            if pool is not None:
                await pool.close()
            raise


async def _is_alive(connection: AsyncConnection[Any]) -> bool:
    """Check a pooled connection, with a round trip only when there is reason for doubt.

    An idle connection has nothing to read unless the server closed it, so a poll of its socket
    tells the healthy case without asking the server before every query.
    """
    if connection.closed:
        return False
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    if not poller.poll(0):
        return True
    try:
        await AsyncConnectionPool.check_connection(connection)
    except OperationalError:
        return False
    return True


client_class = _Client
