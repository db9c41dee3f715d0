"""Keeps the queue's lanes, and the jobs they run, alive while the database is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, LiteralString, TypeVar

from procrastinate import PsycopgConnector
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException
from psycopg import OperationalError

from portal.database.connection import CONNECT_TIMEOUT_S, OUTAGE_INTERVAL_S, RECONNECT_TIMEOUT_S

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class PatientConnector(PsycopgConnector):
    """Repeats a worker's statements until the database is back, unless the worker is to end.

    With procrastinate's own a lane ends, and cancels what it runs, at the first that fails. All
    of them may be repeated: a job that was given out without the answer arriving is recovered.
    """

    def __init__(self, database_url: str) -> None:
        super().__init__(
            conninfo=database_url,
            kwargs={"connect_timeout": CONNECT_TIMEOUT_S},
            timeout=CONNECT_TIMEOUT_S,
            # As in `database.tortoise_config`.
            reconnect_timeout=RECONNECT_TIMEOUT_S,
        )
        self.is_ending = False

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        """Execute a statement."""
        await self._over_outage(partial(super().execute_query_async, query, **arguments))

    async def execute_query_one_async(
        self, query: LiteralString, **arguments: Any
    ) -> dict[str, Any]:
        """Execute a statement and return its row."""
        return await self._over_outage(partial(super().execute_query_one_async, query, **arguments))

    async def execute_query_all_async(
        self, query: LiteralString, **arguments: Any
    ) -> list[dict[str, Any]]:
        """Execute a statement and return its rows."""
        return await self._over_outage(partial(super().execute_query_all_async, query, **arguments))

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Listen until cancelled. Jobs whose news is missed are found when the lane looks."""
        await self._over_outage(partial(super().listen_notify, on_notification, channels))

    async def _over_outage(self, work: Callable[[], Awaitable[Result]]) -> Result:
        while True:
            try:
                return await work()
            except ConnectorException as exc:
                if self.is_ending or not isinstance(exc.__cause__, OperationalError):
                    raise
                logger.warning("Database away, trying again", extra={"action": "database_retry"})
            await asyncio.sleep(OUTAGE_INTERVAL_S)
