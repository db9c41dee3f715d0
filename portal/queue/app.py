"""The queue's app: what processes enqueue with, and what the worker takes jobs with."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg import OperationalError

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
