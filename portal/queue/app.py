"""procrastinate's app, for processes that enqueue jobs and for the worker."""

import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, TypeAlias

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg import OperationalError

from portal.database.connection import (
    BACKOFF,
    CONNECT_TIMEOUT_S,
    RECONNECT_TIMEOUT_S,
    with_keepalives,
)
from portal.database.outages import is_outage
from portal.queue.rows import WORKER_PREFIX
from portal.retry import retry

Queue: TypeAlias = App
# Error of a statement on the queue's own connections.
QueueUnavailable = ConnectorException

# A starting worker runs periodic tasks that became due within this time.
PERIODIC_DELAY_S = 3600


def queue_app(connector: PsycopgConnector) -> Queue:
    """Return an app without tasks of the portal. `open_async` opens the connector's pool."""
    return App(connector=connector, periodic_defaults={"max_delay": PERIODIC_DELAY_S})


def open_queue(database_url: str) -> Queue:
    """Return an app with its own connections, which runs no jobs of the portal."""
    return queue_app(PsycopgConnector(conninfo=database_url))


# App that enqueues and cancels jobs on the connection of the current transaction, and has no other.
IN_TRANSACTION = queue_app(PsycopgConnector())


@contextmanager
def database_errors() -> Iterator[None]:
    """Raise psycopg's operational errors in the block without procrastinate's wrapper.

    Other errors of statements stay a `ConnectorException`.
    """
    try:
        yield
    except ConnectorException as exc:
        if isinstance(exc.__cause__, OperationalError):
            raise exc.__cause__ from None
        raise


def _retried(method: Callable[..., Awaitable[Any]]) -> Any:
    @wraps(method)
    async def retried(self: "WorkerConnector", *positional: Any, **named: Any) -> Any:
        work = partial(method, self, *positional, **named)
        return await retry(work, on=self.is_worth_repeating, backoff=BACKOFF, part="Database")

    return retried


class WorkerConnector(PsycopgConnector):
    """Connector that repeats a worker's statements until the database is back.

    Otherwise procrastinate's worker would end, and cancel its jobs, at the first failed statement.
    All its statements may be repeated: recovery handles a job whose start was committed but not
    confirmed. Nothing is repeated once `is_ending` is set.
    """

    def __init__(self, database_url: str) -> None:
        process = f"{WORKER_PREFIX}{os.getpid()}@{socket.gethostname()}"
        super().__init__(
            conninfo=with_keepalives(database_url),
            kwargs={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": process},
            timeout=CONNECT_TIMEOUT_S,
            # The same as in `database.connection.tortoise_config`.
            reconnect_timeout=RECONNECT_TIMEOUT_S,
        )
        self.is_ending = False

    execute_query_async = _retried(PsycopgConnector.execute_query_async)
    execute_query_one_async = _retried(PsycopgConnector.execute_query_one_async)
    execute_query_all_async = _retried(PsycopgConnector.execute_query_all_async)
    # Polling finds the jobs whose notification is lost.
    listen_notify = _retried(PsycopgConnector.listen_notify)

    def is_worth_repeating(self, exc: Exception) -> bool:
        """Return whether a statement failed in an outage and its worker continues."""
        return (
            not self.is_ending and isinstance(exc, ConnectorException) and is_outage(exc.__cause__)
        )
