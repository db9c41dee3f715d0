"""The queue's app: what processes enqueue with, and what the worker takes jobs with."""

from __future__ import annotations

from typing import TypeAlias

from procrastinate import App
from procrastinate.exceptions import ConnectorException

from portal.queue.connector import Connector

Queue: TypeAlias = App
# The database's error when a statement is run on the queue's own connections.
QueueUnavailable = ConnectorException

# A worker that starts runs the periodic tasks that were due this long ago at most.
PERIODIC_DELAY_S = 3600


def queue_app(connector: Connector) -> Queue:
    """An app on this connector, whose pool is opened by who needs it (`open_async`).

    Enqueuing needs none: it uses the connection of the transaction at hand.
    """
    return App(connector=connector, periodic_defaults={"max_delay": PERIODIC_DELAY_S})


def open_queue(database_url: str) -> Queue:
    """The app of a process that enqueues and looks after jobs, and runs none."""
    return queue_app(Connector(conninfo=database_url))
