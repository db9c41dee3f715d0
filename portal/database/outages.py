"""Tell an outage of the database from an error of a statement.

Only an outage is worth waiting for: a statement that the database refuses is refused again, and
whoever repeats it for an hour keeps others waiting.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool

from portal.errors import Unavailable

# SQLSTATE classes (PostgreSQL, appendix A): a broken connection, too few resources, and an operator
# who stops the server.
OUTAGE_CLASSES = ("08", "53", "57P")
# One of several transactions was chosen to give way, and succeeds when it is repeated.
GAVE_WAY = ("40001", "40P01")


def is_outage(error: BaseException | None) -> bool:
    """Whether the same work is likely to succeed once the database or storage is back.

    Errors of storage are translated in `storage.calls`: only its outages are `Unavailable`.
    """
    if isinstance(error, Unavailable | psycopg_pool.PoolTimeout):
        return True
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        # A failover has demoted this server. A new connection leads to its successor.
        return True
    if not isinstance(error, psycopg.OperationalError):
        return False
    # The driver's own errors have no state: the server was not reached, or did not answer.
    return error.sqlstate is None or error.sqlstate.startswith((*OUTAGE_CLASSES, *GAVE_WAY))


@contextmanager
def skipped_in_outage() -> Iterator[None]:
    """Suppress an error of the block that is an outage (`is_outage`); other errors are raised.

    For optional work: execution continues after the block, whose first part may have been done.
    """
    try:
        yield
    except Exception as exc:
        if not is_outage(exc):
            raise
