"""Connections of the pool: their check before each use, and the connection of a transaction.

Tortoise opens the pool with the settings in `connection.tortoise_config`.
"""

import asyncio
import os
import select
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from socket import SHUT_RDWR, socket
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool
from tortoise.backends.psycopg.client import PsycopgClient, TransactionWrapper
from tortoise.connection import get_connection

Connection = AsyncConnection[Any]


class ConnectionCheck:
    """The pool's check of a connection before each use, with a time limit on that use.

    A use is one statement or one transaction. Without the limit psycopg would wait for hours for a
    server that keeps its connections open but has stopped answering.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._timers: dict[Connection, asyncio.TimerHandle] = {}

    async def __call__(self, connection: Connection) -> None:
        """Raise psycopg's error for a dead connection; start the time limit of a live one."""
        _checks[connection] = self
        self.start_limit(connection)
        # An idle connection has nothing to read unless the server has closed it. The poll spares
        # healthy connections a round trip before each statement.
        poller = select.poll()
        poller.register(connection.fileno(), select.POLLIN)
        if poller.poll(0):
            await AsyncConnectionPool.check_connection(connection)

    def start_limit(self, connection: Connection) -> None:
        """Start the time limit of a use again."""
        if timer := self._timers.get(connection):
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers[connection] = loop.call_later(self._limit_s, self._end_use, connection)

    def _end_use(self, connection: Connection) -> None:
        """Shut a connection down that is still in use, so that its statement fails."""
        del self._timers[connection]
        if connection.closed or connection.info.transaction_status == TransactionStatus.IDLE:
            return
        with suppress(OSError), socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(SHUT_RDWR)


# Checks by the connections that they have checked.
_checks: WeakKeyDictionary[Connection, ConnectionCheck] = WeakKeyDictionary()


class TransactionClient(TransactionWrapper):
    """Tortoise's client for the statements of one transaction."""

    def __init__(self, client: PsycopgClient, connection: Connection) -> None:
        super().__init__(client)
        self.connection = connection
        # Functions that run right before the commit.
        self.last_work: list[Callable[[], Awaitable[None]]] = []

    def acquire_connection(  # type: ignore[override]  # Tortoise only enters and exits the result
        self,
    ) -> AbstractAsyncContextManager[Connection]:
        """Return the transaction's connection, which serializes concurrent statements itself."""
        return nullcontext(self.connection)


def before_commit(work: Callable[[], Awaitable[None]]) -> None:
    """Run work as late as possible in the current transaction, in the order of the calls.

    Work of a savepoint that is rolled back is dropped.
    """
    _transaction_client().last_work.append(work)


def transaction_connection() -> Connection:
    """Return psycopg's connection of the current transaction.

    Jobs are enqueued on it, so that they are committed together with the rows.
    """
    return _transaction_client().connection


def extend_transaction() -> None:
    """Start the time limit of the current transaction again, after an answer of the server.

    For transactions that compute for seconds between their statements.
    """
    connection = transaction_connection()
    _checks[connection].start_limit(connection)


def _transaction_client() -> TransactionClient:
    client = get_connection("default")
    if not isinstance(client, TransactionClient):
        raise TypeError("No transaction is open. Do this inside of `transaction()`.")
    return client
