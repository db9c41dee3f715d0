"""Tortoise's psycopg engine, on a pool that outlives restarts of the database.

Named as the engine in `database.tortoise_config`; Tortoise looks for `client_class` here.
"""

import asyncio
import select
from time import monotonic
from typing import Any

from psycopg import AsyncConnection, OperationalError
from psycopg.errors import ReadOnlySqlTransaction, _WaitTimeout  # which has no public name
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from tortoise.backends.base.client import (
    TransactionalDBClient,
    TransactionContext,
    TransactionContextPooled,
)
from tortoise.backends.psycopg.client import AsyncConnectionPool as TortoisePool
from tortoise.backends.psycopg.client import PsycopgClient, TransactionWrapper
from tortoise.connection import get_connection, get_connections
from tortoise.exceptions import DBConnectionError

from portal.concurrency import CircuitBreaker
from portal.errors import DatabaseUnavailable

# Of the one request that tries whether a database that was away is back.
TRY_TIMEOUT_S = 2.0
# A pool that gives out no connection for this long isn't busy: the database is stuck.
STUCK_S = 2.0
# After which the driver looks up from waiting, as it does by itself.
WAIT_INTERVAL_S = 0.1


class _Connection(AsyncConnection[Any]):
    """Gives up a server that does not answer at all, as after a power cut; TCP waits for hours."""

    answer_timeout_s: float | None = None
    breaker: CircuitBreaker | None = None

    async def wait(  # the library's own signature
        self,
        gen: Any,
        interval: float = WAIT_INTERVAL_S,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Any:
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        try:
            return await super().wait(gen, interval, self.answer_timeout_s)
        except _WaitTimeout as exc:
            self.pgconn.finish()
            if self.breaker is not None:
                self.breaker.record_failure()
            raise OperationalError("the database does not answer") from exc
        except ReadOnlySqlTransaction as exc:
            # A failover has demoted this server. Another connection leads to its successor.
            self.pgconn.finish()
            raise OperationalError("the database takes no writes") from exc
        except OperationalError:
            # What is still under way was waited for too long, and nobody will fetch it.
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


class _Pool(TortoisePool):
    """Hands out live connections only, and replaces dead ones at once.

    psycopg_pool's own check pauses for seconds after each dead connection that it meets; a server
    that was restarted leaves a pool full of them. With a `breaker` only one request waits for a
    database that is away.
    """

    breaker: CircuitBreaker | None = None
    _gave_at = float("-inf")

    async def getconn(  # the pool's own signature
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> AsyncConnection[Any]:
        if self.breaker is None:
            return await self._live(timeout)
        async with self.breaker.call() as is_probe:
            try:
                connection = await self._live(timeout)
            except PoolTimeout:
                if monotonic() - self._gave_at > STUCK_S:
                    self.breaker.record_failure()
                raise
            if is_probe:
                await self._require_answer(connection)
                self.breaker.record_success()
            self._gave_at = monotonic()
            return connection

    async def _live(self, timeout: float | None) -> AsyncConnection[Any]:  # noqa: ASYNC109
        deadline = monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            connection = await self._taken(deadline - monotonic())
            try:
                is_alive = await _is_alive(connection)
            except BaseException:
                await self.putconn(connection)
                raise
            if is_alive:
                return connection
            await self.putconn(connection)

    async def _taken(self, timeout: float) -> AsyncConnection[Any]:  # noqa: ASYNC109
        """As the pool's own, which forgets a cancellation that comes together with a connection."""
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        connection = await super().getconn(timeout)
        if task and task.cancelling() > before:
            await self.putconn(connection)
            raise asyncio.CancelledError
        return connection

    async def _require_answer(self, connection: Any) -> None:
        # An idle connection looks alive as long as the server's machine says nothing.
        usual_s, connection.answer_timeout_s = connection.answer_timeout_s, TRY_TIMEOUT_S
        try:
            await AsyncConnectionPool.check_connection(connection)
        except BaseException:
            await self.putconn(connection)
            raise
        connection.answer_timeout_s = usual_s


class _Transaction(TransactionContextPooled):
    """Gives its connection back also when it fails, or is cancelled, while it begins.

    Tortoise's own would keep it, and leave the task with a transaction that never began.
    """

    async def __aenter__(self) -> TransactionalDBClient:
        self.client._connection = None
        try:
            return await super().__aenter__()
        except BaseException:
            connection = self.client._connection
            if connection is not None:
                get_connections().reset(self.token)
                # The driver believes in a transaction that the server may not know.
                connection.pgconn.finish()
                await self.client._parent._pool.release(connection)
            raise


class _Client(PsycopgClient):
    """Tortoise's client, on that pool. One that could not be opened is made anew next time."""

    def __init__(
        self, *arguments: Any, fail_fast: bool, answer_timeout_s: float, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.breaker = CircuitBreaker(DatabaseUnavailable) if fail_fast else None
        self._answer_timeout_s = answer_timeout_s

    async def create_pool(self, **settings: Any) -> _Pool:
        settings |= {"check": None, "connection_class": _Connection, "configure": self._configure}
        pool = _Pool(open=False, **settings)
        pool.breaker = self.breaker
        await pool.open()
        return pool

    async def create_connection(self, with_db: bool) -> None:
        if self.breaker is not None:
            # Many may have waited here for their turn to make the pool.
            self.breaker.check()
        try:
            await super().create_connection(with_db)
        except BaseException as exc:
            if self.breaker is not None and isinstance(exc, DBConnectionError | OperationalError):
                self.breaker.record_failure()
            pool, self._pool = self._pool, None
            if pool is not None:
                await pool.close()
            raise

    def _in_transaction(self) -> TransactionContext:
        return _Transaction(TransactionWrapper(self), self._pool_init_lock)

    async def _configure(self, connection: Any) -> None:
        connection.answer_timeout_s, connection.breaker = self._answer_timeout_s, self.breaker


def transaction_connection() -> AsyncConnection[Any]:
    """The driver's connection of the current transaction; Tortoise has no public way to it.

    Jobs are enqueued on it, so that they are committed with the rows.
    """
    client = get_connection("default")
    if not isinstance(client, TransactionWrapper):
        raise TypeError("no transaction is open")
    return client._connection


def refuse_if_away() -> None:
    """Raise `DatabaseUnavailable` while the database is known to be away."""
    client = get_connection("default")
    if isinstance(client, _Client) and client.breaker is not None:
        client.breaker.check()


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
