"""Keeps a worker, and the jobs it runs, alive while the database is away."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, LiteralString, TypeVar

from procrastinate import PsycopgConnector
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException
from psycopg import OperationalError

from portal.concurrency.retry import retry
from portal.database.connection import BACKOFF, CONNECT_TIMEOUT_S, RECONNECT_TIMEOUT_S

Result = TypeVar("Result")
Row = dict[str, Any]


class WorkerConnector(PsycopgConnector):
    """Repeats a worker's statements until the database is back, unless the worker is to end.

    Without that procrastinate's worker ends, and cancels its jobs, at the first that fails. All
    of them may be repeated: a job that was given out without the answer arriving is recovered.
    """

    def __init__(self, database_url: str) -> None:
        super().__init__(
            conninfo=database_url,
            kwargs={"connect_timeout": CONNECT_TIMEOUT_S},
            timeout=CONNECT_TIMEOUT_S,
            # As in `database.connection.tortoise_config`.
            reconnect_timeout=RECONNECT_TIMEOUT_S,
        )
        self.is_ending = False

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        """Execute a statement."""
        await self._retried(partial(super().execute_query_async, query, **arguments))

    async def execute_query_one_async(self, query: LiteralString, **arguments: Any) -> Row:
        """Execute a statement and return its row."""
        return await self._retried(partial(super().execute_query_one_async, query, **arguments))

    async def execute_query_all_async(self, query: LiteralString, **arguments: Any) -> list[Row]:
        """Execute a statement and return its rows."""
        return await self._retried(partial(super().execute_query_all_async, query, **arguments))

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Listen until cancelled. Jobs whose news is missed are found by polling."""
        await self._retried(partial(super().listen_notify, on_notification, channels))

    async def _retried(self, work: Callable[[], Awaitable[Result]]) -> Result:
        return await retry(work, on=self._is_outage, backoff=BACKOFF, what="Database")

    def _is_outage(self, exc: Exception) -> bool:
        return (
            not self.is_ending
            and isinstance(exc, ConnectorException)
            and isinstance(exc.__cause__, OperationalError)
        )
