"""Distinction between an outage of the database or of storage and an error of a statement.

Only work that failed in an outage is repeated. The database would refuse a faulty statement again.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool

from portal.errors import Unavailable

# SQLSTATE classes (PostgreSQL, appendix A) of broken connections, insufficient resources, and a
# server that an operator stops.
OUTAGE_CLASSES = ("08", "53", "57P")
# Serialization failure and deadlock: the transaction succeeds when it is repeated.
GAVE_WAY = ("40001", "40P01")


def is_outage(error: BaseException | None) -> bool:
    """Return whether the same work can succeed once the database or storage is back.

    `storage.calls` translates storage's errors: only its outages are `Unavailable`.
    """
    if isinstance(error, Unavailable | psycopg_pool.PoolTimeout):
        return True
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        # A failover has demoted this server. A new connection leads to its successor.
        return True
    if not isinstance(error, psycopg.OperationalError):
        return False
    # Errors without a state come from the driver: the server was unreachable or did not answer.
    return error.sqlstate is None or error.sqlstate.startswith((*OUTAGE_CLASSES, *GAVE_WAY))


def is_temporary(error: BaseException | None) -> bool:
    """Return whether a worker can succeed with the same work later.

    That is so after an outage, and after a statement that took too long, such as one that waited
    for a lock of a migration.
    """
    return isinstance(error, psycopg.errors.QueryCanceled) or is_outage(error)


@contextmanager
def skipped_in_outage() -> Iterator[None]:
    """Suppress an outage of the database or of storage (`is_outage`) in the block of optional work.

    Nothing is logged. Execution continues after the block, whose first part may have taken effect.
    """
    try:
        yield
    except Exception as exc:
        if not is_outage(exc):
            raise
