"""The queue's app: what processes enqueue with, and what the worker takes jobs with."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, TypeAlias

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg import OperationalError

from portal.database.connection import BACKOFF, CONNECT_TIMEOUT_S, RECONNECT_TIMEOUT_S
from portal.database.outages import is_outage
from portal.retry import retry

Queue: TypeAlias = App
# The database's error when a statement is run on the queue's own connections.
QueueUnavailable = ConnectorException

# A worker that starts runs the periodic tasks that were due this long ago at most.
PERIODIC_DELAY_S = 3600


def queue_app(connector: PsycopgConnector) -> Queue:
    """An app on this connector, whose pool is opened by who needs it (`open_async`).

    Enqueuing needs none: it uses the connection of the current transaction.
    """
    return App(connector=connector, periodic_defaults={"max_delay": PERIODIC_DELAY_S})


def open_queue(database_url: str) -> Queue:
    """The app of a process that enqueues and looks after jobs, and runs none."""
    return queue_app(PsycopgConnector(conninfo=database_url))


@contextmanager
def database_errors() -> Iterator[None]:
    """Around statements in a caller's transaction: the driver's errors are raised as they are."""
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
        return await retry(work, on=self.is_worth_repeating, backoff=BACKOFF, what="Database")

    return retried


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

    execute_query_async = _retried(PsycopgConnector.execute_query_async)
    execute_query_one_async = _retried(PsycopgConnector.execute_query_one_async)
    execute_query_all_async = _retried(PsycopgConnector.execute_query_all_async)
    # Jobs whose news is missed are found by polling.
    listen_notify = _retried(PsycopgConnector.listen_notify)

    def is_worth_repeating(self, exc: Exception) -> bool:
        """Whether a statement failed by an outage, and its worker is to go on."""
        return (
            not self.is_ending and isinstance(exc, ConnectorException) and is_outage(exc.__cause__)
        )
